// capture/last_stack.h: a stack as its difference from the one before.
//
// Most of what a tick finds was there at the last one. The ring's memory is cold, as the drain thread had it last: a
// deep stack that is written whole costs the program a cache miss for every four frames, its innermost frames alone
// next to nothing. So a thread's ticks keep the last stack in memory of their own, and so does who reads the records.
#pragma once

#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "capture/raw_sample.h"

namespace plimsoll::capture {

// The last stack of one thread, and room for the next. All but the constructor is async-signal-safe, for one handler at
// a time.
class LastStack {
 public:
  LastStack() = default;
  // Of up to `slots` frames. Memory is used as it is touched.
  explicit LastStack(std::size_t slots) : slots_(slots), memory_(new std::byte[2 * slots * sizeof(cpython::PyFrame)]) {}

  // Where the next stack is to be written, innermost frame first.
  [[nodiscard]] std::span<cpython::PyFrame> room() const { return {at(1 - kept_), slots_}; }
  // How many of the first `count` slots of the room, from their end, are as in the last stack.
  [[nodiscard]] std::size_t same_outer(std::size_t count) const {
    const cpython::PyFrame* next = at(1 - kept_) + count;
    const cpython::PyFrame* last = at(kept_) + count_;
    const std::size_t most = std::min(count, count_);
    std::size_t same = 0;
    while (same < most && is_same(*--next, *--last)) ++same;
    return same;
  }
  // The first `count` slots of the room are the last stack from now on.
  void keep(std::size_t count) {
    kept_ = 1 - kept_;
    count_ = count;
  }
  void forget() { count_ = 0; }

 private:
  static bool is_same(const cpython::PyFrame& a, const cpython::PyFrame& b) {
    return a.code == b.code && a.position == b.position && a.reserved == b.reserved;
  }
  [[nodiscard]] cpython::PyFrame* at(std::size_t half) const {
    return reinterpret_cast<cpython::PyFrame*>(memory_.get()) + half * slots_;
  }

  std::size_t slots_ = 0;
  std::unique_ptr<std::byte[]> memory_;
  std::size_t kept_ = 0;   // which half has the last stack
  std::size_t count_ = 0;  // its slots
};

// The last stacks of all threads, where records are read. For one thread at a time.
class LastStacks {
 public:
  // The whole stack of a record with Stack::kOnLast whose own slots are `inner`. Valid until the next call. False if
  // the record refers to more than is known: it is not to be believed.
  bool complete(const RawSample& raw, std::span<const cpython::PyFrame> inner,
                std::span<const cpython::PyFrame>& whole) {
    std::vector<cpython::PyFrame>& last = stacks_[raw.thread.index()];
    if (raw.same_outer > last.size()) return false;
    next_.assign(inner.begin(), inner.end());
    next_.insert(next_.end(), last.end() - raw.same_outer, last.end());
    last.swap(next_);
    whole = last;
    return raw.frame_count <= whole.size();
  }
  // Nothing more comes of a thread.
  void forget(ThreadSerial thread) { stacks_.erase(thread.index()); }

 private:
  boost::unordered_flat_map<std::uint32_t, std::vector<cpython::PyFrame>> stacks_;  // by ThreadSerial
  std::vector<cpython::PyFrame> next_;                                              // kept to save allocations
};

}  // namespace plimsoll::capture
