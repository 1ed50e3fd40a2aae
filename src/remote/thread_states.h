// remote/thread_states.h: the threads that an interpreter knows.
#pragma once

#include <algorithm>
#include <boost/unordered/unordered_flat_set.hpp>
#include <cstdint>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

#include "cpython/layout.h"
#include "cpython/walk.h"
#include "os/process.h"

namespace plimsoll::remote {

// A thread state, and which thread it is of.
struct ThreadState {
  Address address{};
  Address interpreter{};
  std::uint64_t pthread = 0;     // as its own C library calls it
  std::uint64_t native_id = 0;   // as it calls itself to the kernel; 0: not known by the interpreter (up to 3.10)
  std::uint64_t learned_id = 0;  // likewise, as its own C library knows it; 0: that was not asked

  [[nodiscard]] std::uint64_t tid() const { return learned_id != 0 ? learned_id : native_id; }
};

// More interpreters and threads than any program has: a list that is longer is none.
inline constexpr std::size_t kMostInterpreters = 4096;
inline constexpr std::size_t kMostThreads = 65536;

// Which thread a state says it is of.
template <memory::Reader M>
bool load_whose(const M& memory, const cpython::Layout& layout, ThreadState& state) {
  const bool is_known = layout.tstate.native_thread_id != cpython::kNoField;
  return memory.load(offset_by(state.address, layout.tstate.thread_id), state.pthread) &&
         (!is_known || memory.load(offset_by(state.address, layout.tstate.native_thread_id), state.native_id));
}

// Whether it says so of the same thread as before. Up to 3.11 it is its maker's until the thread itself writes that it
// is its own: one word after the other, so that it is neither's in between.
template <memory::Reader M>
bool is_still_its(const M& memory, const cpython::Layout& layout, const ThreadState& state) {
  ThreadState now = state;
  return load_whose(memory, layout, now) && now.pthread == state.pthread && now.native_id == state.native_id;
}

// The thread states of all interpreters, as far as the lists can be read. They change while they are read: what is
// found may have ended since.
template <memory::Reader M>
std::vector<ThreadState> thread_states(const M& memory, const cpython::Layout& layout, Address runtime) {
  std::vector<ThreadState> found;
  boost::unordered_flat_set<std::uint64_t> seen;  // a list that changes while it is read may lead back to its beginning
  Address interpreter{};
  if (!memory::load_address(memory, offset_by(runtime, layout.runtime.interpreters), interpreter)) return found;
  for (std::size_t i = 0; i < kMostInterpreters && !is_null(interpreter) && seen.insert(raw(interpreter)).second; ++i) {
    Address state{};
    if (!memory::load_address(memory, offset_by(interpreter, layout.runtime.threads), state)) return found;
    while (!is_null(state) && found.size() < kMostThreads && seen.insert(raw(state)).second) {
      ThreadState thread{state, interpreter};
      if (!load_whose(memory, layout, thread) ||
          !memory::load_address(memory, offset_by(state, layout.tstate.next), state))
        break;
      found.push_back(thread);
    }
    if (!memory::load_address(memory, offset_by(interpreter, layout.runtime.next_interpreter), interpreter)) break;
  }
  return found;
}

// The kernel's task that a thread state is of; null if it is none of these.
inline const os::Task* task_of(std::span<const os::Task> tasks, const ThreadState& state) {
  const auto found = std::find_if(tasks.begin(), tasks.end(), [&](const os::Task& task) {
    return static_cast<std::uint64_t>(task.inner_tid) == state.tid();
  });
  return found == tasks.end() ? nullptr : &*found;
}

// Whom threads are, as their C library knows it: its own record of a thread, at whose address `pthread` points, has the
// kernel's id at the same place for all threads. It is the place at which they have most ids of tasks, each its own:
// the upper half of a pointer may look like an id, too, but is the same for all (of a place of 8 bytes, it is the
// second).
template <memory::Reader M>
void learn_ids(const M& memory, const std::vector<std::uint32_t>& ids, std::span<ThreadState* const> states) {
  constexpr std::size_t kWords = 512;
  constexpr std::size_t kEnough = 64;                      // threads to learn from
  std::vector<std::pair<std::size_t, std::uint32_t>> met;  // a place, and an id that is there
  std::uint32_t word = 0;
  const auto load = [&](const ThreadState& state, std::size_t place) {
    return memory.load(Address{state.pthread + place * sizeof word}, word);
  };
  const auto is_id = [&] { return word != 0 && std::binary_search(ids.begin(), ids.end(), word); };
  for (const ThreadState* state : states.first(std::min(states.size(), kEnough)))
    for (std::size_t place = 0; place < kWords && load(*state, place); ++place)
      if (is_id()) met.emplace_back(place, word);
  if (met.empty()) return;
  std::sort(met.begin(), met.end());
  met.erase(std::unique(met.begin(), met.end()), met.end());
  std::vector<std::size_t> different(kWords);
  for (const auto& [place, id] : met) ++different[place];
  std::size_t best = 0;
  const auto worth = [&](std::size_t place) { return std::pair(different[place], place % 2 == 0); };
  for (std::size_t place = 1; place < kWords; ++place)
    if (worth(place) > worth(best)) best = place;
  for (ThreadState* state : states)
    if (load(*state, best) && is_id()) state->learned_id = word;
}

// Fills in the ids of threads that the interpreter does not know (up to 3.10), or not any more: where C code has called
// fork and Python was not told, its only thread has its parent's. Such a state is of a task of which no other one is.
template <memory::Reader M>
void learn_ids(const M& memory, std::span<const os::Task> tasks, std::span<ThreadState> states) {
  std::vector<std::uint32_t> ids, taken;
  for (const os::Task& task : tasks) ids.push_back(static_cast<std::uint32_t>(task.inner_tid));
  std::sort(ids.begin(), ids.end());
  std::vector<ThreadState*> lost;
  for (ThreadState& state : states)
    if (std::binary_search(ids.begin(), ids.end(), state.native_id))
      taken.push_back(static_cast<std::uint32_t>(state.native_id));
    else
      lost.push_back(&state);
  std::sort(taken.begin(), taken.end());
  std::vector<std::uint32_t> left;
  std::set_difference(ids.begin(), ids.end(), taken.begin(), taken.end(), std::back_inserter(left));
  if (!left.empty() && !lost.empty()) learn_ids(memory, left, std::span<ThreadState* const>(lost));
}

// The type of code objects, if the interpreter has no symbol for it: that of what the outermost frame runs, if its name
// is "code".
template <memory::Reader M>
Address find_code_type(const M& memory, const cpython::Layout& layout, std::span<const ThreadState> states) {
  constexpr std::size_t kMostStates = 64;
  constexpr int kMostFrames = 1000;
  for (const ThreadState& state : states.first(std::min(states.size(), kMostStates))) {
    Address frame{};
    if (!cpython::current_frame(memory, layout, state.address, frame)) continue;
    for (int i = 0; i < kMostFrames && !is_null(frame); ++i) {
      std::uint64_t executable = 0;
      Address type{};
      Address name{};
      std::uint64_t text = 0;
      constexpr std::uint64_t kCode = 0x65646f63;  // "code\0"
      if (memory.load(offset_by(frame, layout.frame.executable), executable) &&
          memory::load_address(memory, offset_by(Address{executable & ~layout.executable_tag_mask}, layout.object.type),
                               type) &&
          memory::load_address(memory, offset_by(type, layout.object.var_size + 8), name) && memory.load(name, text) &&
          (text & 0xff'ffff'ffffU) == kCode)
        return type;
      if (!memory::load_address(memory, offset_by(frame, layout.frame.previous), frame)) break;
    }
  }
  return {};
}

}  // namespace plimsoll::remote
