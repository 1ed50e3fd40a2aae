// cpython/future_callbacks.h: who awaits a Future up to CPython 3.13, by what it will call when it is done; and which
// task a thread runs.
//
// asyncio has few ways to wait for something, and each leaves a callback of its own: a task's wakeup for a plain await,
// a function of gather, shield or wait with the next Future in its closure, a TaskGroup's method. They are known by
// their types, code objects and functions, as the interpreter at hand has them (FutureCallbacks). Other callbacks are
// the program's and wait for nothing, as far as asyncio itself says from 3.14 on. What is one of asyncio's but does not
// lead where it should is torn. Every walk is bounded, nothing is allocated: async-signal-safe if `memory` is.
#pragma once

#include <array>
#include <string_view>

#include "cpython/object_view.h"
#include "cpython/task_layout.h"

namespace plimsoll::cpython {

// Whether those who await a Future were all seen.
enum class AwaiterScan : std::uint8_t {
  kAll,
  kStopped,  // the visitor has had enough, or there were more places to look at than there should be
  kTorn,     // they cannot be read, or are being changed
};

// What a callback says of who waits.
enum class CallbackKind : std::uint8_t {
  kOther,    // nothing: it is the program's
  kAwaiter,  // a Future or task, which waits
  kTorn,     // it is asyncio's, but does not lead to one
};

namespace internal {

// Words that are read of dicts and the like, in one look.
inline constexpr std::uint64_t kCallbackWords = 8192;

// Whether an object's type is `type`, or derived from it.
template <memory::Reader M>
bool is_of_type(const M& memory, Address object, Address type) {
  constexpr std::uint32_t kType = 8;  // in the head of an object, with a GIL
  constexpr int kDeepest = 16;
  Address at{};
  if (is_null(object) || (raw(object) & 7U) != 0 || !memory::load_address(memory, offset_by(object, kType), at))
    return false;
  for (int depth = 0; depth < kDeepest && !is_null(at); ++depth) {
    if (at == type) return true;
    if ((raw(at) & 7U) != 0 || !memory::load_address(memory, offset_by(at, type_field::kBase), at)) return false;
  }
  return false;
}

// Whether an object that is a key of a dict is this text, of ASCII.
template <memory::Reader M>
bool is_text(const ObjectView<M>& view, Address object, std::string_view text) {
  std::array<char, 32> bytes{};
  if (text.size() > bytes.size() || view.word(object, view.layout().unicode.length) != text.size()) return false;
  const Content content = text_content(view, object);
  return content.kind == 1 && view.memory().read(content.at, bytes.data(), text.size()) &&
         std::string_view(bytes.data(), text.size()) == text;
}

// Whether a C string is this text.
template <memory::Reader M>
bool is_c_string(const ObjectView<M>& view, Address at, std::string_view text) {
  std::array<char, 32> bytes{};
  return text.size() + 1 < bytes.size() && view.memory().read(at, bytes.data(), text.size() + 1) &&
         std::string_view(bytes.data()) == text;
}

// What a dict has under a name, or an attribute of an instance; null if nothing.
template <memory::Reader M>
Address value_in_dict(const ObjectView<M>& view, Address dict, std::string_view name) {
  constexpr std::uint64_t kMostKeys = 512;
  Address found{};
  if (is_null(dict)) return found;
  const auto look = [&](Address key, Address value) {
    if (is_null(found) && is_text(view, key, name)) found = value;
  };
  each_item(view, dict, look, kMostKeys);
  return found;
}

template <memory::Reader M>
Address attribute(const ObjectView<M>& view, Address object, std::string_view name) {
  ClassFacts type;
  type.address = view.type_of(object);
  type.flags = view.word(type.address, type_field::kFlags);
  type.basic_size = view.word(type.address, type_field::kBasicSize);
  type.item_size = view.word(type.address, type_field::kItemSize);
  type.dict_offset = view.template number<std::int64_t>(type.address, type_field::kDictOffset);
  const Attributes attributes = attributes_of(view, object, type);
  if (is_null(attributes.values)) return value_in_dict(view, attributes.dict, name);
  constexpr std::uint64_t kMostShared = 64;
  const KeyTable names = shared_names(view, type);
  if (!names.is_sound) return {};
  Address found{};
  std::uint64_t place = 0;
  view.template each_row<2>(names.entries, std::min({names.count, attributes.capacity, kMostShared}),
                            [&](const auto& row) {
                              if (is_null(found) && row[0] != 0 && is_text(view, Address{row[0]}, name))
                                found = view.pointer(attributes.values, place * sizeof(Address));
                              ++place;
                            });
  return found;
}

// The Future in a cell of a function's closure, if it is one of those that have one.
template <memory::Reader M>
CallbackKind follow_function(const ObjectView<M>& view, const FutureCallbacks& known, Address function, Address& out) {
  const Address code = view.pointer(function, known.function_code);
  for (const FutureCallbacks::Closure& closure : known.closures) {
    if (is_null(closure.code) || closure.code != code) continue;
    const Address cells = view.pointer(function, known.function_closure);
    if (is_null(cells) || view.item_count(cells) <= closure.cell) return CallbackKind::kTorn;
    const Address cell = view.pointer(cells, known.fields.tuple_items + closure.cell * sizeof(Address));
    if (is_null(cell) || view.type_of(cell) != known.cell_type) return CallbackKind::kTorn;
    out = view.pointer(cell, container_field::kCellContent);
    return is_of_type(view.memory(), out, known.future_type) || is_of_type(view.memory(), out, known.task_type)
               ? CallbackKind::kAwaiter
               : CallbackKind::kTorn;
  }
  return CallbackKind::kOther;
}

// Whether a callback wakes a task.
template <memory::Reader M>
bool is_wakeup(const ObjectView<M>& view, const FutureCallbacks& known, Address callback, Address type) {
  constexpr std::uint32_t kDefinition = 16;  // of a method of C; its first member is its name
  if (!known.wakeup_is_method)
    return is_null(known.wakeup_type)
               ? is_c_string(view, view.pointer(type, type_field::kName), "TaskWakeupMethWrapper")
               : type == known.wakeup_type;
  if (type != known.wakeup_type) return false;
  const Address definition = view.pointer(callback, kDefinition);
  return is_null(known.wakeup_method) ? is_c_string(view, view.pointer(definition, 0), "task_wakeup")
                                      : definition == known.wakeup_method;
}

// Who waits for `future` with this callback.
template <memory::Reader M>
CallbackKind follow_callback(const ObjectView<M>& view, const FutureCallbacks& known, Address future, Address callback,
                             Address& out) {
  // The first members of a method or a partial: its function; its object, or a tuple of arguments.
  constexpr std::uint32_t kFunction = 16, kBound = 24;
  const M& memory = view.memory();
  const Address type = view.type_of(callback);
  if (is_null(type)) return CallbackKind::kTorn;
  if (is_wakeup(view, known, callback, type)) {
    out = view.pointer(callback, known.wakeup_self);
    const bool waits = is_of_type(memory, out, known.task_type) && view.pointer(out, known.waits_for) == future;
    return waits ? CallbackKind::kAwaiter : CallbackKind::kTorn;
  }
  if (type == known.function_type) return follow_function(view, known, callback, out);
  if (type == known.method_type && !is_null(known.group_member_done)) {
    if (view.pointer(callback, kFunction) != known.group_member_done) return CallbackKind::kOther;
    out = attribute(view, view.pointer(callback, kBound), "_parent_task");
    return is_of_type(memory, out, known.task_type) ? CallbackKind::kAwaiter : CallbackKind::kTorn;
  }
  if (type == known.partial_type && !is_null(known.release_waiter)) {
    if (view.pointer(callback, kFunction) != known.release_waiter) return CallbackKind::kOther;
    const Address arguments = view.pointer(callback, kBound);
    if (is_null(arguments) || view.item_count(arguments) != 1) return CallbackKind::kTorn;
    out = view.pointer(arguments, known.fields.tuple_items);
    return is_of_type(memory, out, known.future_type) ? CallbackKind::kAwaiter : CallbackKind::kTorn;
  }
  return CallbackKind::kOther;
}

}  // namespace internal

// Calls visit(Address) for each Future or task that waits for a Future, until it returns false. At most `places_left`
// callbacks are looked at.
template <memory::Reader M, typename Visit>
AwaiterScan scan_callbacks(const M& memory, const Layout& layout, const FutureCallbacks& known, Address future,
                           std::uint64_t& places_left, Visit visit) {
  const ObjectView<M> view(memory, layout, known.fields, internal::kCallbackWords);
  Address callback{}, others{};
  if (!memory::load_address(memory, offset_by(future, known.first), callback) ||
      !memory::load_address(memory, offset_by(future, known.others), others))
    return AwaiterScan::kTorn;
  const auto take = [&] {
    Address awaiter{};
    const CallbackKind kind = internal::follow_callback(view, known, future, callback, awaiter);
    if (kind == CallbackKind::kTorn) return AwaiterScan::kTorn;
    return kind == CallbackKind::kOther || visit(awaiter) ? AwaiterScan::kAll : AwaiterScan::kStopped;
  };
  if (!is_null(callback))
    if (const AwaiterScan scan = take(); scan != AwaiterScan::kAll) return scan;
  if (is_null(others)) return AwaiterScan::kAll;
  const std::uint64_t count = view.item_count(others);
  const Address items = view.pointer(others, container_field::kListItems);
  if ((view.word(view.type_of(others), type_field::kFlags) & type_flag::kList) == 0) return AwaiterScan::kTorn;
  for (std::uint64_t i = 0; i < count; ++i) {
    if (places_left == 0) return AwaiterScan::kStopped;
    --places_left;
    // With the context to call it in.
    const Address pair = view.pointer(items, i * sizeof(Address));
    if (is_null(pair) || view.item_count(pair) != 2) return AwaiterScan::kTorn;
    callback = view.pointer(pair, known.fields.tuple_items);
    if (const AwaiterScan scan = take(); scan != AwaiterScan::kAll) return scan;
  }
  return AwaiterScan::kAll;
}

namespace internal {

// The event loop that a thread runs; null if it runs none. False if that cannot be read.
template <memory::Reader M>
bool load_running_loop(const ObjectView<M>& view, const FutureCallbacks& known, Address tstate, Address& loop) {
  if (known.running_loop != kNoField)
    return memory::load_address(view.memory(), offset_by(tstate, known.running_loop), loop);
  Address dict{};
  if (!memory::load_address(view.memory(), offset_by(tstate, known.fields.thread.dict), dict)) return false;
  loop = value_in_dict(view, dict, "__asyncio_running_event_loop__");
  if (is_null(loop) || known.loop_in_holder == 0) return true;
  return memory::load_address(view.memory(), offset_by(loop, known.loop_in_holder), loop);
}

}  // namespace internal

// The task whose step a thread is in; null if it is in none. False if that cannot be told.
template <memory::Reader M>
bool load_current_task(const M& memory, const Layout& layout, const FutureCallbacks& known, Address tstate,
                       Address& task) {
  // Of loops of all threads.
  constexpr std::uint64_t kMostLoops = 1024;
  task = {};
  std::uint64_t used = 0;
  if (!memory.load(offset_by(known.current_tasks, container_field::kDictUsed), used)) return false;
  if (used == 0) return true;
  const ObjectView<M> view(memory, layout, known.fields, internal::kCallbackWords);
  Address loop{};
  if (!internal::load_running_loop(view, known, tstate, loop)) return false;
  if (is_null(loop)) return true;
  std::uint64_t found = 0;
  each_item(
      view, known.current_tasks,
      [&](Address key, Address value) {
        ++found;
        if (key == loop) task = value;
      },
      kMostLoops);
  // While another thread changes it, it may not have all.
  return !is_null(task) || found == used;
}

}  // namespace plimsoll::cpython
