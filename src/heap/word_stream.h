// heap/word_stream.h: words that one thread writes and another one takes, in their order.
#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <utility>

#include "os/own_thread.h"

namespace plimsoll::heap {

// So that who looks at a heap, while a program stands still, only writes down what it sees. Words go a piece at a time;
// what is put at once comes in one piece. Written to by one thread.
class WordStream {
 public:
  static constexpr std::size_t kPieceWords = 4096;
  using Take = std::function<void(std::span<const std::uint64_t>)>;
  using Meanwhile = std::function<bool()>;

  // `meanwhile`: what a thread does that would wait for the other one, until that says that there is nothing to do.
  // Throws nothing.
  explicit WordStream(
      Take take, Meanwhile meanwhile = [] { return false; })
      : take_(std::move(take)), meanwhile_(std::move(meanwhile)) {
    begin_piece();
  }
  WordStream(const WordStream&) = delete;
  WordStream& operator=(const WordStream&) = delete;
  ~WordStream() { join(); }

  // From now on `take` is called by a thread of its own, which is none of the program's (os/own_thread.h). Before that,
  // and if the system gives none, it is called by who puts.
  void take_beside();

  // Room for `count` words, kPieceWords at most, which must all be written.
  std::uint64_t* put(std::size_t count) {
    if (static_cast<std::size_t>(end_ - at_) < count) pass_on();
    std::uint64_t* room = at_;
    at_ += count;
    return room;
  }
  // All has been taken then; or `take` has thrown something, which is thrown here: not where words are put, between
  // functions in C, and not in a thread that the program would end with. Nothing was taken after that. Whatever is put
  // later is taken by who puts.
  void finish();

 private:
  // Half a megabyte in all would be too much for a CPU's cache; fewer would be waited for.
  static constexpr std::size_t kPieces = 8;
  // Words that go together.
  struct Piece {
    std::array<std::uint64_t, kPieceWords> words;
    std::size_t size;
  };

  void begin_piece() {
    at_ = pieces_[filled_ % kPieces].words.data();
    end_ = at_ + kPieceWords;
  }
  void pass_on();
  void take(const Piece& piece) noexcept;
  template <typename IsMet>
  void wait(std::unique_lock<std::mutex>& lock, IsMet is_met);
  void run();
  void join();

  Take take_;
  Meanwhile meanwhile_;
  std::exception_ptr error_;  // of the thread, until it is joined
  std::unique_ptr<std::array<Piece, kPieces>> room_ = std::make_unique_for_overwrite<std::array<Piece, kPieces>>();
  std::span<Piece, kPieces> pieces_{*room_};
  std::uint64_t* at_ = nullptr;   // of the piece that is being filled
  std::uint64_t* end_ = nullptr;  // likewise

  std::mutex mutex_;  // guards what follows
  std::condition_variable has_changed_;
  std::size_t filled_ = 0, taken_ = 0;  // pieces, since the beginning
  bool is_over_ = false;
  os::OwnThread thread_;
};

}  // namespace plimsoll::heap
