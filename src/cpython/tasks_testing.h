// cpython/tasks_testing.h: asyncio's tasks drawn into a FakeMemory, for tests only. No product code may include it.
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "cpython/await_chain.h"
#include "cpython/testing.h"

namespace plimsoll::cpython::testing {

// Coroutines, Futures and tasks of one version in a drawn interpreter.
class DrawnTasks {
 public:
  explicit DrawnTasks(const testing::DrawnOffsets& offsets) : python(offsets.layout().value()) {
    const std::string general = offsets.bytes();
    constexpr std::array<std::uint64_t, 13> kAsyncio{168,    136,   96,  108, 109, 128, 152,
                                                     225864, 10880, 936, 864, 872, 880};
    layout = task_layout_from_tables(python.layout, reinterpret_cast<const unsigned char*>(general.data()),
                                     reinterpret_cast<const unsigned char*>(kAsyncio.data()))
                 .take();
  }

  DrawnInterpreter python;
  TaskLayout layout;

  static constexpr std::uint64_t kHeapType = 1U << 9U, kLong = 1U << 24U, kUnicode = 1U << 28U;
  Address object(const std::string& type, std::uint64_t flags = 0) {
    const Address at = python.allocate();
    auto& known = types_[type];
    if (is_null(known)) {
      known = python.allocate();
      const Address name = python.allocate();
      python.memory.put_bytes(name, type + '\0');
      python.memory.put(offset_by(known, layout.type.name), name);
      python.memory.put(offset_by(known, layout.type.flags), flags);
    }
    put(at, python.layout.object.type, known);
    return at;
  }
  template <typename T>
  void put(Address object, std::uint32_t offset, T value) {
    python.memory.put(offset_by(object, offset), value);
  }
  [[nodiscard]] std::uint32_t first_member() const { return python.layout.object.type + 8; }

  // A coroutine (or "generator", ...) in the function `name`, suspended while it awaits an object; `state` says if not.
  Address coroutine(const std::string& name, Address awaited, const std::string& type = "coroutine") {
    return coroutine_in(name, awaited, layout.coroutine.first_awaiting, type);
  }
  Address coroutine_in(const std::string& name, Address awaited, std::int8_t state, const std::string& type) {
    const Address at = object(type);
    const Address frame = offset_by(at, layout.coroutine.frame);
    put(at, layout.coroutine.frame_state, static_cast<std::uint8_t>(state));
    put(frame, python.layout.frame.previous, Address{});
    put(frame, python.layout.frame.executable, python.code(name));
    put(frame, python.layout.frame.owner, std::uint8_t{1});
    if (python.layout.frame.tlbc_index != kNoField) put(frame, python.layout.frame.tlbc_index, std::uint32_t{1});
    python.put_position(frame, name, 4);
    const Address stack = python.allocate();
    put(frame, layout.coroutine.stack_top, stack);
    python.memory.put(Address{raw(stack) - layout.coroutine.awaited}, raw(awaited) | 1U);
    return at;
  }
  // A C Future, or a task, if it has a coroutine.
  Address future(const std::string& type = "_asyncio.Future") {
    const Address at = object(type, kHeapType);
    put(at, layout.task.is_task, std::uint8_t{0});
    put(at, layout.task.awaited_by, Address{});
    put(at, layout.task.awaited_by_is_set, std::uint8_t{0});
    return at;
  }
  Address task(Address name, Address coroutine) {
    const Address at = future("_asyncio.Task");
    put(at, layout.task.is_task, std::uint8_t{1});
    put(at, layout.task.loop, Address{0x5000});
    put(at, layout.task.name, name);
    put(at, layout.task.coroutine, coroutine);
    return at;
  }
  Address text(std::u32string_view words) {
    const Address at = python.str(words);
    put(at, python.layout.object.type, type_of(object("str", kUnicode)));
    return at;
  }
  Address wrapper(const std::string& type, Address inner, std::uint64_t flags = 0) {
    const Address at = object(type, flags);
    put(at, first_member(), inner);
    return at;
  }
  Address awaiting(Address future) { return wrapper("_asyncio.FutureIter", future, kHeapType); }
  Address type_of(Address object) {
    Address type{};
    (void)memory::load_address(python.memory, offset_by(object, python.layout.object.type), type);
    return type;
  }
  // A set, in a table of eight places of which one has been given up.
  Address set_of(const std::vector<Address>& keys) {
    const Address set = object("set");
    const Address table = python.allocate();
    put(set, layout.set.table, table);
    put(set, layout.set.mask, std::uint64_t{7});
    put(set, layout.set.used, std::uint64_t{keys.size()});
    for (std::uint32_t place = 0; place < 8; ++place) {
      const bool is_removed = place == 6;
      const Address key = place < keys.size() ? keys[place] : is_removed ? Address{0x7200} : Address{};
      put(table, place * 16, key);
      put(table, place * 16 + 8, is_removed ? ~std::uint64_t{0} : std::uint64_t{place});
    }
    return set;
  }
  void await(Address future, Address awaiter) { put(future, layout.task.awaited_by, awaiter); }
  void await(Address future, const std::vector<Address>& awaiters) {
    await(future, set_of(awaiters));
    put(future, layout.task.awaited_by_is_set, std::uint8_t{1});
  }

  // A ring of tasks behind a head.
  Address list(const std::vector<Address>& tasks) {
    const Address head = python.allocate();
    Address before = head;
    const auto link = [&](Address node) {
      put(before, layout.node.next, node);
      put(node, layout.node.previous, before);
      before = node;
    };
    for (const Address task : tasks) link(offset_by(task, layout.task.node));
    link(head);
    return head;
  }

  [[nodiscard]] TaskPlaces places() const { return {python.layout, layout, DrawnInterpreter::kCodeType}; }

 private:
  std::map<std::string, Address> types_;
};

// A version that publishes where its tasks are.
struct TasksVersion {
  const char* name;
  DrawnOffsets (*offsets)();
};
inline std::ostream& operator<<(std::ostream& out, const TasksVersion& version) { return out << version.name; }
inline constexpr TasksVersion kTasksVersions[] = {
    {"3_14", offsets_3_14}, {"3_14t", offsets_3_14t}, {"3_15", offsets_3_15}, {"3_15t", offsets_3_15t}};

}  // namespace plimsoll::cpython::testing
