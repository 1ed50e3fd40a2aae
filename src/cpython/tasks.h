// cpython/tasks.h: asyncio's tasks, and what each of them awaits, read out of a target's memory.
//
// A task that does not run has its coroutine, which is suspended in the await of another one, and so on, down to the
// Future (or other object) that the whole chain waits for. The rules are those of await_chain.h; every walk is bounded.
// Not for signal handlers: it allocates.
#pragma once

#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>
#include <string>
#include <vector>

#include "cpython/await_chain.h"
#include "cpython/code_object.h"
#include "memory/reader.h"

namespace plimsoll::cpython {

// A task's coroutine, what that awaits, and so on.
struct AwaitChain {
  std::vector<PyFrame> frames;  // outermost first, as far as it does not run
  AwaitEnd end = AwaitEnd::kEnded;
  Address awaited{};
  std::string awaited_type;
  Address executing{};
};

// A task as it was read.
struct TaskRecord {
  Address task{};
  Address loop{};
  std::string name;
  std::vector<Address> awaiters;  // Futures and tasks that await it, in no order
  bool has_more_awaiters = false;
  AwaitChain chain;
};

// More than any program has: a longer list is none.
inline constexpr std::size_t kMostTasks = 100'000;
inline constexpr std::size_t kMostAwaiters = 1'000;            // of one
inline constexpr std::uint64_t kMostAwaiterSlots = 4'000'000;  // that are looked at for all of them
inline constexpr std::uint64_t kMostTaskSlots = 1U << 20U;     // of sets of tasks

// Reads tasks through a Reader, whose copies must stay the same meanwhile: types are looked at once.
template <memory::Reader M>
class TaskReader {
 public:
  // All must outlive it. `max_depth`: of a chain.
  TaskReader(const M& memory, const TaskPlaces& places, std::size_t max_depth)
      : memory_(memory), places_(places), tasks_(places.tasks), max_depth_(max_depth) {}

  // Adds the tasks of a list, as addresses. False if it does not come round to its head: then those up to there.
  bool list(Address head, std::vector<Address>& out) const {
    Address node{};
    if (!load(head, tasks_.node.next, node)) return false;
    Address before = head;
    while (node != head) {
      Address back{};
      if (out.size() >= kMostTasks || (raw(node) & 7U) != 0 || !load(node, tasks_.node.previous, back) ||
          back != before)
        return false;
      out.push_back(Address{raw(node) - tasks_.task.node});
      before = node;
      if (!load(node, tasks_.node.next, node)) return false;
    }
    return true;
  }

  // Up to 3.13: adds all tasks of the interpreter, as addresses, in no order. False if they were being changed: then
  // those that were found.
  bool all(std::vector<Address>& out) const {
    const FutureCallbacks& known = *tasks_.callbacks;
    std::uint64_t slots_left = kMostTaskSlots;
    const auto add = [&](Address task) {
      // (What a weak reference is to may have gone.)
      if (is_task(memory_, tasks_, task)) out.push_back(task);
      return out.size() < kMostTasks;
    };
    const auto follow = [&](Address reference) {
      Address task{};
      return !load(reference, known.referent, task) || add(task);
    };
    const auto is_read = [&](Address set, const auto& visit) {
      return is_null(set) || internal::scan_set(memory_, tasks_, set, slots_left, visit) == AwaiterScan::kAll;
    };
    const bool has_eager = is_read(known.eager_tasks, add);
    return is_read(known.task_references, follow) && has_eager;
  }

  // False if it is no task, or cannot be read.
  bool read(Address task, TaskRecord& out) {
    out = {};
    out.task = task;
    TaskHead head;
    if (!read_head(memory_, tasks_, task, head) || !read_name(head.name, out.name)) return false;
    out.loop = head.loop;
    read_awaiters(task, out);
    if (!is_null(head.coroutine)) read_chain(head.coroutine, out.chain);
    return true;
  }

  // Those who await a Future, as far as they can be read.
  void read_awaiters(Address future, TaskRecord& out) {
    const auto kind_of = [this](Address object) { return look_at_type(object).kind; };
    const AwaiterScan scan = each_awaiter(memory_, places_, future, kind_of, slots_left_, [&](Address awaiter) {
      if (out.awaiters.size() == kMostAwaiters) return false;
      out.awaiters.push_back(awaiter);
      return true;
    });
    out.has_more_awaiters = out.has_more_awaiters || scan != AwaiterScan::kAll;
  }

  // The tasks among Futures that await something, and those that await it through other Futures, by address.
  std::vector<Address> tasks_among(std::vector<Address> waiting, bool& has_more) {
    constexpr std::size_t kMostBetween = 100;
    std::vector<Address> tasks, between;
    while (!waiting.empty()) {
      const Address awaiter = waiting.back();
      waiting.pop_back();
      if (is_task(memory_, tasks_, awaiter)) {
        tasks.push_back(awaiter);
      } else if (between.size() == kMostBetween || tasks.size() > kMostAwaiters) {
        has_more = true;
      } else if (std::find(between.begin(), between.end(), awaiter) == between.end()) {
        between.push_back(awaiter);
        TaskRecord further;
        read_awaiters(awaiter, further);
        waiting.insert(waiting.end(), further.awaiters.begin(), further.awaiters.end());
      }
    }
    std::sort(tasks.begin(), tasks.end());
    tasks.erase(std::unique(tasks.begin(), tasks.end()), tasks.end());
    return tasks;
  }

 private:
  // A type that was looked at.
  struct Type {
    AwaitKind kind = AwaitKind::kUnreadable;
    std::string name;
  };

  bool load(Address object, std::uint32_t offset, Address& out) const {
    return memory::load_address(memory_, offset_by(object, offset), out);
  }

  bool read_c_string(Address at, std::string& out) const {
    constexpr std::size_t kMost = 200;
    out.clear();
    for (std::uint8_t byte = 1; out.size() < kMost; out += static_cast<char>(byte))
      if (!memory_.load(offset_by(at, out.size()), byte))
        return false;
      else if (byte == 0)
        return true;
    return true;
  }

  const Type& look_at_type(Address object) {
    Address type{};
    if (!load_type(memory_, places_.layout, object, type)) return types_[0];  // of none
    const auto [place, is_new] = types_.try_emplace(raw(type));
    if (!is_new) return place->second;
    Address name{};
    std::uint64_t flags = 0;
    if (load(type, tasks_.type.name, name) && read_c_string(name, place->second.name) &&
        memory_.load(offset_by(type, tasks_.type.flags), flags))
      place->second.kind = await_kind(place->second.name, flags);
    else
      place->second.name.clear();
    return place->second;
  }

  bool read_name(Address object, std::string& out) {
    const AwaitKind kind = look_at_type(object).kind;
    if (kind == AwaitKind::kText) {
      char bytes[kMostTaskNameBytes];
      std::size_t size = 0;
      if (!read_text_start(memory_, places_.layout, object, bytes, size)) return false;
      out.assign(bytes, size);
      return true;
    }
    std::uint64_t number = 0;
    if (kind != AwaitKind::kInteger || !read_integer(object, number)) return false;
    out = "Task-" + std::to_string(number);
    return true;
  }

  bool read_integer(Address object, std::uint64_t& out) const {
    constexpr unsigned kNonSizeBits = 3, kDigitBits = 30;
    constexpr std::uint64_t kMostDigits = 2;
    std::uint64_t tag = 0;
    if (!memory_.load(offset_by(object, tasks_.integer.tag), tag) || tag >> kNonSizeBits > kMostDigits) return false;
    out = 0;
    for (std::uint64_t i = 0; i < tag >> kNonSizeBits; ++i) {
      std::uint32_t digit = 0;
      if (!memory_.load(offset_by(object, tasks_.integer.digits + 4 * i), digit)) return false;
      out |= std::uint64_t{digit} << (kDigitBits * i);
    }
    return true;
  }

  void read_chain(Address object, AwaitChain& out) {
    for (std::size_t steps = 0; !is_null(object); ++steps) {
      if (steps == max_depth_) {
        out.end = AwaitEnd::kTooDeep;
        return;
      }
      const AwaitStep step = step_along(memory_, places_, object, look_at_type(object).kind);
      if (step.has_frame) out.frames.push_back(step.frame);
      const bool has_ended = step.end == AwaitEnd::kEnded && !out.frames.empty();
      out.end = has_ended ? AwaitEnd::kNothing : step.end;
      out.executing = step.executing;
      out.awaited = step.awaited;
      if (!is_null(step.awaited)) out.awaited_type = look_at_type(step.awaited).name;
      object = step.next;
    }
  }

  const M& memory_;
  const TaskPlaces places_;
  const TaskLayout& tasks_;
  const std::size_t max_depth_;
  std::uint64_t slots_left_ = kMostAwaiterSlots;
  boost::unordered_flat_map<std::uint64_t, Type> types_;
};

}  // namespace plimsoll::cpython
