// cpython/snapshot.h: the frames of a thread that runs on while we look at it.
//
// No lock holds the thread still, so what one walk reads need never have been true at one time. It is believed only if
// a second and a third reading of the same words agree with it: first from the outermost frame to the innermost, then
// back again. A word at distance d from the innermost frame is so read at both ends of a time that grows with d only
// (the innermost frame twice in a row), and to change it and change it back unseen the thread would have to return
// through d frames and call as many again, twice, within that time. The time is measured, too: a reader that was
// interrupted does not believe what it has read. (A double collect, after Afek et al., Atomic Snapshots of Shared
// Memory, 1993, with the second one palindromic and a deadline in place of sequence numbers.)
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include "base/clock.h"
#include "cpython/walk.h"

namespace plimsoll::cpython {

// One word as it was read.
struct LoggedLoad {
  Address at{};
  std::uint64_t value = 0;
  std::uint8_t size = 0;  // bytes: 1, 4 or 8
};

// Reads through another Reader and keeps what it has read. When the log is full, nothing more can be read.
template <memory::Reader M>
class LoggingReader {
 public:
  LoggingReader(const M& memory, std::span<LoggedLoad> log) : memory_(memory), log_(log) {}

  template <typename Word>
  [[nodiscard]] bool load(Address at, Word& out) const {
    if (count_ == log_.size() || !memory_.load(at, out)) return false;
    log_[count_++] = {at, out, sizeof(Word)};
    return true;
  }
  [[nodiscard]] bool read(Address at, void* out, std::size_t size) const {
    auto* bytes = static_cast<std::uint8_t*>(out);
    for (std::size_t i = 0; i < size; ++i)
      if (!load(offset_by(at, i), bytes[i])) return false;
    return true;
  }
  // Whether all words but the one at `moving` read the same again, in reverse order and then in order. In between,
  // at_turn() is called.
  template <typename AtTurn>
  [[nodiscard]] bool holds(Address moving, AtTurn at_turn) const {
    for (std::size_t i = count_; i-- > 0;)
      if (log_[i].at != moving && !is_same(log_[i])) return false;
    at_turn();
    for (std::size_t i = 0; i < count_; ++i)
      if (log_[i].at != moving && !is_same(log_[i])) return false;
    return true;
  }
  [[nodiscard]] std::size_t count() const { return count_; }
  // Whether a word is among the first that were read.
  [[nodiscard]] bool has_read(Address at) const {
    constexpr std::size_t kFirst = 16;
    for (std::size_t i = 0; i < std::min(count_, kFirst); ++i)
      if (log_[i].at == at) return true;
    return false;
  }

 private:
  [[nodiscard]] bool is_same(const LoggedLoad& load) const {
    if (load.size == sizeof(std::uint64_t)) return is_still(load, std::uint64_t{});
    if (load.size == sizeof(std::uint32_t)) return is_still(load, std::uint32_t{});
    return is_still(load, std::uint8_t{});
  }
  template <typename Word>
  [[nodiscard]] bool is_still(const LoggedLoad& load, Word word) const {
    return memory_.load(load.at, word) && word == load.value;
  }

  const M& memory_;
  const std::span<LoggedLoad> log_;
  mutable std::size_t count_ = 0;
};

namespace internal {

// The position of a frame, if it was the frame of `code` just before and just after; else kNoPosition.
template <memory::Reader M>
std::int32_t position_while(const M& memory, const Layout& layout, Address frame, Address code) {
  const auto is_of_code = [&] {
    std::uint64_t executable = 0;
    return memory.load(offset_by(frame, layout.frame.executable), executable) &&
           Address{executable & ~layout.executable_tag_mask} == code;
  };
  if (!is_of_code()) return kNoPosition;
  const std::int32_t position = position_of(memory, layout, frame, code);
  return is_of_code() ? position : kNoPosition;
}

}  // namespace internal

// So many words are read of each frame at most.
inline constexpr std::size_t kLoadsPerFrame = 12;

// A proof that takes longer than this was interrupted. (A load takes two at most, if nothing has changed.)
inline constexpr std::int64_t kNsPerLoad = 10;

// The frames of another thread of this process as they were at one time during the call, or is_proven = false: then
// the thread has moved, or the chain was no chain, and `out` must not be used. The line of the innermost frame is one
// that it passed during the call. `before_proof` is called with the walk before it is proven, so that what its frames
// refer to can be noted while it must still exist, and with a reader: what is read by that is part of the proof.
struct Snapshot {
  Walk walk;
  std::int64_t time_ns = 0;  // CLOCK_MONOTONIC, when all of it was true: who lived then is who is meant
  bool is_proven = false;
};

template <memory::Reader M, typename BeforeProof>
Snapshot snapshot_thread(const M& memory, const Layout& layout, Address code_type, Address tstate,
                         std::span<PyFrame> out, std::span<LoggedLoad> log, BeforeProof before_proof,
                         std::int64_t ns_per_load = kNsPerLoad) {
  constexpr std::int64_t kLeastNs = 1'000;
  Snapshot snapshot;
  const LoggingReader<M> logging(memory, log);
  Address innermost{};
  if (!current_frame(logging, layout, tstate, innermost)) return snapshot;
  snapshot.walk = walk_thread(logging, layout, code_type, tstate, out);
  if (!is_proven(snapshot.walk.stop)) return snapshot;
  // One that is being pushed may have its caller's place in the bytecode, but not yet its own.
  if (snapshot.walk.leaf_skipped) return snapshot;
  before_proof(snapshot.walk, logging);
  snapshot.time_ns = monotonic_ns();
  // The innermost frame goes on all the time, so its position is not compared, but read again, right between two
  // readings of whose it is. (`out` begins with that frame's code, unless it is an entry from C, which has no
  // position.)
  const Address moving = offset_by(innermost, layout.frame.position);
  const bool is_at_code = snapshot.walk.count > 0 && logging.has_read(moving);
  const bool holds = logging.holds(moving, [&] {
    if (is_at_code) out[0].position = internal::position_while(memory, layout, innermost, out[0].code);
  });
  if (!holds || (is_at_code && out[0].position == kNoPosition)) return snapshot;
  const std::int64_t most_ns = kLeastNs + ns_per_load * static_cast<std::int64_t>(logging.count());
  snapshot.is_proven = monotonic_ns() - snapshot.time_ns <= most_ns;
  return snapshot;
}

}  // namespace plimsoll::cpython
