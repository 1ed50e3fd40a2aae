// cpython/tasks.h: asyncio's tasks, and what each of them awaits, read out of a target's memory.
//
// A task that does not run has its coroutine, which is suspended in the await of another one, and so on, down to the
// Future (or other object) that the whole chain waits for. Nothing that is read is trusted: what proves to be no
// coroutine ends the chain, and every walk is bounded. Not for signal handlers: it allocates.
#pragma once

#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>
#include <string>
#include <vector>

#include "cpython/code_object.h"
#include "cpython/object_fields.h"
#include "cpython/task_layout.h"
#include "cpython/walk.h"
#include "memory/reader.h"

namespace plimsoll::cpython {

// What a chain of coroutines ends in.
enum class AwaitEnd : std::uint8_t {
  kNothing,     // it lets others go first (asyncio.sleep(0)), or waits for a Future that is written in Python
  kNotBegun,    // the innermost coroutine has not run its first line
  kEnded,       // it has returned
  kFuture,      // `awaited` is a Future, or a Task
  kOther,       // `awaited` is another object, of the type `awaited_type`
  kExecuting,   // it runs: its frames are on the stack of a thread, the outermost of them is `executing`
  kTooDeep,     // the innermost coroutines are missing
  kUnreadable,  // the same, as what should be one is none
};

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
inline constexpr std::size_t kMostTaskNameBytes = 400;

// Reads tasks through a Reader, whose copies must stay the same meanwhile: types are looked at once.
template <memory::Reader M>
class TaskReader {
 public:
  // All must outlive it. `max_depth`: of a chain.
  TaskReader(const M& memory, const Layout& layout, const TaskLayout& tasks, Address code_type, std::size_t max_depth)
      : memory_(memory), layout_(layout), tasks_(tasks), code_type_(code_type), max_depth_(max_depth) {}

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

  // Whether a Future is a Task. False also if it cannot be read.
  bool is_task(Address future) const {
    std::uint8_t flag = 0;
    return !is_null(future) && memory_.load(offset_by(future, tasks_.task.is_task), flag) && flag == 1;
  }

  // False if it is no task, or cannot be read.
  bool read(Address task, TaskRecord& out) {
    out = {};
    out.task = task;
    Address coroutine{};
    Address name{};
    if (!is_task(task) || !load(task, tasks_.task.loop, out.loop) || !load(task, tasks_.task.name, name) ||
        !load(task, tasks_.task.coroutine, coroutine) || !read_name(name, out.name))
      return false;
    read_awaiters(task, out);
    if (!is_null(coroutine)) read_chain(coroutine, out.chain);
    return true;
  }

  // Those who await a Future.
  void read_awaiters(Address future, TaskRecord& out) const {
    Address awaiter{};
    std::uint8_t is_set = 0;
    if (!load(future, tasks_.task.awaited_by, awaiter) || is_null(awaiter) ||
        !memory_.load(offset_by(future, tasks_.task.awaited_by_is_set), is_set))
      return;
    if (is_set != 0)
      read_set(awaiter, out);
    else
      add_awaiter(awaiter, out);
  }

  // The tasks among Futures that await something, and those that await it through other Futures, by address.
  std::vector<Address> tasks_among(std::vector<Address> waiting, bool& has_more) const {
    constexpr std::size_t kMostBetween = 100;
    std::vector<Address> tasks, between;
    while (!waiting.empty()) {
      const Address awaiter = waiting.back();
      waiting.pop_back();
      if (is_task(awaiter)) {
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

  // What an object's type is called; empty if that cannot be read.
  std::string type_of(Address object) {
    const Type* type = look_at_type(object);
    return type == nullptr ? std::string() : type->name;
  }

 private:
  // What an object is to a chain.
  enum class Kind : std::uint8_t { kOther, kGenerator, kWrapper, kFutureIterator, kText, kInteger };
  // A type that was looked at.
  struct Type {
    Kind kind = Kind::kOther;
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

  // A program can call its classes what it wants, but they are made at run time, and the interpreter's own are not.
  static Kind kind_of(std::string_view name, std::uint64_t flags) {
    if ((flags & type_flag::kText) != 0) return Kind::kText;
    if ((flags & type_flag::kInt) != 0) return Kind::kInteger;
    if (name == "_asyncio.FutureIter") return Kind::kFutureIterator;
    if ((flags & type_flag::kHeapType) != 0) return Kind::kOther;
    if (name == "coroutine" || name == "generator" || name == "async_generator") return Kind::kGenerator;
    if (name == "coroutine_wrapper" || name == "async_generator_asend" || name == "async_generator_athrow" ||
        name == "anext_awaitable")
      return Kind::kWrapper;
    return Kind::kOther;
  }

  const Type* look_at_type(Address object) {
    Address type{};
    if (is_null(object) || (raw(object) & 7U) != 0 || !load(object, layout_.object.type, type)) return nullptr;
    const auto [place, is_new] = types_.try_emplace(raw(type));
    if (!is_new) return &place->second;
    Address name{};
    std::uint64_t flags = 0;
    if (load(type, tasks_.type.name, name) && read_c_string(name, place->second.name) &&
        memory_.load(offset_by(type, tasks_.type.flags), flags))
      place->second.kind = kind_of(place->second.name, flags);
    else
      place->second.name.clear();
    return &place->second;
  }

  bool read_name(Address object, std::string& out) {
    const Type* type = look_at_type(object);
    if (type == nullptr) return false;
    if (type->kind == Kind::kText) {
      if (!read_text(memory_, layout_, object, out)) return false;
      if (out.size() > kMostTaskNameBytes) {
        std::size_t end = kMostTaskNameBytes;
        while (end > 0 && (static_cast<unsigned char>(out[end]) & 0xc0U) == 0x80U) --end;
        out.resize(end);
      }
      return true;
    }
    std::uint64_t number = 0;
    if (type->kind != Kind::kInteger || !read_integer(object, number)) return false;
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

  static void add_awaiter(Address awaiter, TaskRecord& out) {
    if (out.awaiters.size() < kMostAwaiters)
      out.awaiters.push_back(awaiter);
    else
      out.has_more_awaiters = true;
  }

  void read_set(Address set, TaskRecord& out) const {
    Address table{};
    std::uint64_t mask = 0;
    if (!load(set, tasks_.set.table, table) || !memory_.load(offset_by(set, tasks_.set.mask), mask)) return;
    for (std::uint64_t i = 0; i <= mask; ++i) {
      if (out.has_more_awaiters || ++slots_ > kMostAwaiterSlots) {
        out.has_more_awaiters = true;
        return;
      }
      constexpr std::uint64_t kEntry = 16, kRemoved = ~std::uint64_t{0};
      Address key{};
      std::uint64_t hash = 0;
      if (!memory::load_address(memory_, offset_by(table, i * kEntry), key) ||
          !memory_.load(offset_by(table, i * kEntry + 8), hash))
        return;
      if (!is_null(key) && hash != kRemoved) add_awaiter(key, out);
    }
  }

  // One coroutine of a chain. What it awaits, or null if the chain ends here.
  Address step_into(Address coroutine, AwaitChain& out) {
    const Address frame = offset_by(coroutine, tasks_.coroutine.frame);
    std::uint8_t byte = 0;
    if (!memory_.load(offset_by(coroutine, tasks_.coroutine.frame_state), byte))
      return finish(AwaitEnd::kUnreadable, out);
    const auto state = static_cast<std::int8_t>(byte);
    // (Its frame is still there, but is none any more.)
    if (state >= tasks_.coroutine.first_ended)
      return finish(out.frames.empty() ? AwaitEnd::kEnded : AwaitEnd::kNothing, out);
    PyFrame found;
    if (!internal::look_at_frame(memory_, layout_, code_type_, frame, found).found)
      return finish(AwaitEnd::kUnreadable, out);
    if (state == tasks_.coroutine.executing) {
      out.executing = frame;
      return finish(AwaitEnd::kExecuting, out);
    }
    out.frames.push_back(found);
    const bool awaits = state >= tasks_.coroutine.first_awaiting && state <= tasks_.coroutine.last_awaiting;
    if (!awaits) return finish(state == tasks_.coroutine.created ? AwaitEnd::kNotBegun : AwaitEnd::kNothing, out);
    Address top{};
    Address awaited{};
    if (!load(frame, tasks_.coroutine.stack_top, top) ||
        !memory::load_address(memory_, Address{raw(top) - tasks_.coroutine.awaited}, awaited))
      return finish(AwaitEnd::kUnreadable, out);
    return Address{raw(awaited) & ~layout_.executable_tag_mask};
  }
  static Address finish(AwaitEnd end, AwaitChain& out) {
    out.end = end;
    return {};
  }

  // What an object passes an await on to; null if the chain ends here.
  Address step(Address object, AwaitChain& out) {
    const Type* type = look_at_type(object);
    if (type == nullptr) return finish(AwaitEnd::kUnreadable, out);
    const Kind kind = type->kind;
    if (kind == Kind::kGenerator) return step_into(object, out);
    if (kind == Kind::kWrapper || kind == Kind::kFutureIterator) {
      // What it is for is its first member. (An iterator that is done has let go of its Future.)
      Address inner{};
      if (!load(object, layout_.object.type + 8, inner)) return finish(AwaitEnd::kUnreadable, out);
      if (is_null(inner)) return finish(AwaitEnd::kNothing, out);
      if (kind == Kind::kWrapper) return inner;
      out.awaited = inner;
      out.awaited_type = type_of(inner);
      return finish(AwaitEnd::kFuture, out);
    }
    out.awaited = object;
    out.awaited_type = type->name;
    return finish(AwaitEnd::kOther, out);
  }

  void read_chain(Address object, AwaitChain& out) {
    for (std::size_t steps = 0; !is_null(object); ++steps) {
      if (steps == max_depth_) {
        out.end = AwaitEnd::kTooDeep;
        return;
      }
      object = step(object, out);
    }
  }

  const M& memory_;
  const Layout& layout_;
  const TaskLayout& tasks_;
  const Address code_type_;
  const std::size_t max_depth_;
  mutable std::uint64_t slots_ = 0;
  boost::unordered_flat_map<std::uint64_t, Type> types_;
};

}  // namespace plimsoll::cpython
