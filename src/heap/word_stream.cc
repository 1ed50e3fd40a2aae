#include "heap/word_stream.h"

namespace plimsoll::heap {

void WordStream::take_beside() {
  thread_.start("plimsoll-rows", [this] { run(); });
}

void WordStream::pass_on() {
  Piece& piece = pieces_[filled_ % kPieces];
  piece.size = static_cast<std::size_t>(at_ - piece.words.data());
  if (!thread_.is_there()) {
    take(piece);
    return begin_piece();
  }
  std::unique_lock lock(mutex_);
  ++filled_;
  // To wake the thread takes as long as to fill the better part of a piece.
  const bool is_worth_it = filled_ - taken_ >= kPieces / 2;
  if (is_worth_it) has_changed_.notify_all();
  wait(lock, [this] { return filled_ - taken_ < kPieces; });
  begin_piece();
}

void WordStream::take(const Piece& piece) noexcept {
  if (piece.size == 0 || error_) return;
  try {
    take_({piece.words.data(), piece.size});
  } catch (...) {
    error_ = std::current_exception();
  }
}

template <typename IsMet>
void WordStream::wait(std::unique_lock<std::mutex>& lock, IsMet is_met) {
  while (!is_met()) {
    lock.unlock();
    const bool has_helped = meanwhile_();
    lock.lock();
    if (!has_helped && !is_met()) has_changed_.wait(lock);
  }
}

void WordStream::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wait(lock, [this] { return filled_ != taken_ || is_over_; });
    if (filled_ == taken_) return;
    const Piece& piece = pieces_[taken_ % kPieces];
    lock.unlock();
    take(piece);
    lock.lock();
    ++taken_;
    if (filled_ - taken_ == kPieces / 2) has_changed_.notify_all();
  }
}

void WordStream::finish() {
  pass_on();
  join();
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void WordStream::join() {
  if (!thread_.is_there()) return;
  {
    const std::lock_guard guard(mutex_);
    is_over_ = true;
  }
  has_changed_.notify_all();
  thread_.join();
}

}  // namespace plimsoll::heap
