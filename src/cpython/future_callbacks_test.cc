// cpython/future_callbacks_test.cc: who waits for a Future up to 3.13, in drawn memory.
#include "cpython/future_callbacks.h"

#include <gtest/gtest.h>

#include "cpython/tasks.h"
#include "cpython/testing.h"

namespace plimsoll::cpython {
namespace {

// Futures, tasks and their callbacks of one version.
class Callbacks : public ::testing::TestWithParam<Layout> {
 protected:
  Callbacks() {
    known.current_tasks = dict({});
    known.future_type = type();
    known.task_type = type(known.future_type);
    known.wakeup_type = type();
    known.wakeup_method = has_wrapper() ? Address{} : Address{0x5100};
    known.function_type = type();
    known.cell_type = type();
    known.closures[1] = {python.code("done"), 2};
    known.method_type = type();
    known.group_member_done = object(known.function_type);
    known.partial_type = type();
    known.release_waiter = object(known.function_type);
    if (python.layout.version.minor >= 13) known.running_loop = 312;
  }
  // 3.9 wakes tasks by an object of its own, later versions by a method of C.
  [[nodiscard]] bool has_wrapper() const { return python.layout.version.minor == 9; }

  template <typename T>
  void put(Address object, std::uint64_t offset, T value) {
    python.memory.put(offset_by(object, offset), value);
  }
  Address type(Address base = {}, std::uint64_t flags = 0) {
    const Address at = python.allocate();
    put(at, type_field::kBase, base);
    put(at, type_field::kFlags, flags);
    return at;
  }
  Address object(Address type) {
    const Address at = python.allocate();
    put(at, python.layout.object.type, type);
    return at;
  }
  Address tuple(const std::vector<Address>& items) {
    const Address at = object(tuple_type);
    put(at, python.layout.object.var_size, std::uint64_t{items.size()});
    for (std::size_t i = 0; i < items.size(); ++i) put(at, known.fields.tuple_items + i * 8, items[i]);
    return at;
  }
  // With a table of its own.
  Address dict(const std::vector<std::pair<Address, Address>>& items) {
    const Address at = object(dict_type), keys = python.allocate();
    put(at, container_field::kDictUsed, std::uint64_t{items.size()});
    put(at, container_field::kDictKeys, keys);
    put(at, container_field::kDictValues, Address{});
    const bool is_sized = known.fields.keys_style == KeysStyle::kSized;
    put(keys, is_sized ? 32 : 24, std::uint64_t{items.size()});
    if (is_sized) {
      put(keys, 8, std::uint64_t{8});
    } else {
      for (const std::uint64_t log2 : {8, 9}) put(keys, log2, std::uint8_t{3});
      put(keys, 10, std::uint8_t{0});
      put(keys, 16, std::uint64_t{5 - items.size()});
    }
    for (std::size_t i = 0; i < items.size(); ++i) {
      const std::uint64_t entry = (is_sized ? 48U : 40U) + i * 24;
      put(keys, entry, std::uint64_t{i});  // its hash
      put(keys, entry + 8, items[i].first);
      put(keys, entry + 16, items[i].second);
    }
    return at;
  }
  Address future(Address type) {
    const Address at = object(type);
    put(at, known.first, Address{});
    put(at, known.others, Address{});
    return at;
  }
  Address future() { return future(type(known.future_type)); }
  Address task(Address waits_for) {
    const Address at = future(type(known.task_type));
    put(at, known.waits_for, waits_for);
    return at;
  }
  Address wakeup(Address task) {
    const Address at = object(known.wakeup_type);
    put(at, known.wakeup_self, task);
    if (!has_wrapper()) put(at, 16, known.wakeup_method);
    return at;
  }
  Address closure(Address content) {
    const Address cell = object(known.cell_type), at = object(known.function_type);
    put(cell, container_field::kCellContent, content);
    put(at, known.function_code, python.code("done"));
    put(at, known.function_closure, tuple({{}, {}, cell}));
    return at;
  }
  // A method or a partial: a function, and what it is bound to.
  Address bound(Address type, Address function, Address to) {
    const Address at = object(type);
    put(at, 16, function);
    put(at, 24, to);
    return at;
  }
  Address group(Address parent) {
    const Address type = this->type({}, type_flag::kHeapType), at = object(type);
    put(type, type_field::kDictOffset, std::uint64_t{16});
    put(at, 16, dict({{python.str(U"_loop"), {}}, {python.str(U"_parent_task"), parent}}));
    return at;
  }
  void call(Address future, const std::vector<Address>& callbacks) {
    put(future, known.first, callbacks.front());
    if (callbacks.size() == 1) return;
    const Address list = object(type({}, type_flag::kList)), items = python.allocate();
    put(list, python.layout.object.var_size, std::uint64_t{callbacks.size() - 1});
    put(list, container_field::kListItems, items);
    for (std::size_t i = 1; i < callbacks.size(); ++i) put(items, (i - 1) * 8, tuple({callbacks[i], {}}));
    put(future, known.others, list);
  }
  AwaiterScan scan(Address future, std::uint64_t places = 100) {
    found.clear();
    return scan_callbacks(python.memory, python.layout, known, future, places, [&](Address awaiter) {
      found.push_back(awaiter);
      return true;
    });
  }
  AwaiterScan scan_of(Address callback) {
    const Address at = future();
    call(at, {callback});
    return scan(at);
  }

  testing::DrawnInterpreter python{GetParam()};
  TaskLayout tasks = older_task_layout(GetParam()).value();
  FutureCallbacks& known = *tasks.callbacks;
  Address tuple_type = python.allocate(), dict_type = python.allocate();
  std::vector<Address> found;
};

TEST_P(Callbacks, EachWayToWaitLeadsToWhoWaits) {
  const Address awaited = future();
  const Address waits = task(awaited), gathering = future(), parent = task({}), waiter = future();
  call(awaited, {wakeup(waits), closure(gathering), bound(known.method_type, known.group_member_done, group(parent)),
                 bound(known.partial_type, known.release_waiter, tuple({waiter}))});
  EXPECT_EQ(scan(awaited), AwaiterScan::kAll);
  EXPECT_EQ(found, (std::vector{waits, gathering, parent, waiter}));
  EXPECT_EQ(scan(awaited, 2), AwaiterScan::kStopped);
}

TEST_P(Callbacks, WakeupsAreKnownByTheirNamesWhereTheirAddressesAreNot) {
  const Address awaited = future(), name = python.allocate(), definition = python.allocate();
  python.memory.put_bytes(name, std::string(has_wrapper() ? "TaskWakeupMethWrapper" : "task_wakeup") + '\0');
  put(definition, 0, name);
  put(known.wakeup_type, type_field::kName, name);
  known.wakeup_method = definition;
  const Address waits = task(awaited);
  call(awaited, {wakeup(waits)});
  known.wakeup_method = {};
  if (has_wrapper()) known.wakeup_type = {};
  EXPECT_EQ(scan(awaited), AwaiterScan::kAll);
  EXPECT_EQ(found, (std::vector{waits}));
  python.memory.put_bytes(name, std::string("another") + '\0');
  EXPECT_EQ(scan(awaited), AwaiterScan::kAll);
  EXPECT_TRUE(found.empty());
}

TEST_P(Callbacks, TheProgramsOwnWaitForNothing) {
  const Address own = object(known.function_type);
  put(own, known.function_code, python.code("own"));
  for (const Address callback :
       {own, object(type()), bound(known.method_type, own, group({})), bound(known.partial_type, own, tuple({}))}) {
    EXPECT_EQ(scan_of(callback), AwaiterScan::kAll);
    EXPECT_TRUE(found.empty());
  }
  EXPECT_EQ(scan(future()), AwaiterScan::kAll);
}

TEST_P(Callbacks, WhatDoesNotLeadWhereItShouldIsTorn) {
  const Address elsewhere = task(future());
  for (const Address callback : {wakeup(elsewhere), wakeup(future()), closure({}), closure(object(type())),
                                 bound(known.method_type, known.group_member_done, group(future())),
                                 bound(known.method_type, known.group_member_done, object(type())),
                                 bound(known.partial_type, known.release_waiter, tuple({})), Address{0x5200}}) {
    EXPECT_EQ(scan_of(callback), AwaiterScan::kTorn);
    EXPECT_TRUE(found.empty());
  }
  const Address listless = future();
  put(listless, known.others, object(type()));
  EXPECT_EQ(scan(listless), AwaiterScan::kTorn);
}

TEST_P(Callbacks, TheTaskThatRunsIsThatOfTheThreadsLoop) {
  const Address thread = python.allocate(), loop = object(type()), holder = object(type());
  Address running{};
  const auto look = [&] { return load_current_task(python.memory, python.layout, known, thread, running); };
  // GIVEN no tasks at all THEN nothing else is looked at
  EXPECT_TRUE(look() && is_null(running));
  // GIVEN tasks of two loops in a thread without a loop
  const Address own = task({}), other = task({});
  const bool says_itself = known.running_loop != kNoField;
  const std::uint32_t at = says_itself ? known.running_loop : known.fields.thread.dict;
  put(thread, at, Address{});
  known.current_tasks = dict({{object(type()), other}, {loop, own}});
  EXPECT_TRUE(look() && is_null(running));
  // GIVEN one with a loop THEN it is the loop's task
  put(holder, known.loop_in_holder, loop);
  const Address name = python.str(U"__asyncio_running_event_loop__");
  put(thread, at, says_itself ? loop : dict({{name, known.loop_in_holder == 0 ? loop : holder}}));
  EXPECT_TRUE(look());
  EXPECT_EQ(running, own);
  // GIVEN a dict that says it has one more than is there THEN nothing is said
  known.current_tasks = dict({{object(type()), other}});
  EXPECT_TRUE(look() && is_null(running));
  put(known.current_tasks, container_field::kDictUsed, std::uint64_t{2});
  EXPECT_FALSE(look());
}

TEST_P(Callbacks, AllTasksAreThoseThatAreReferredToAndThoseInTheirFirstStep) {
  const auto set = [&](const std::vector<Address>& keys, std::uint64_t used) {
    const Address at = python.allocate(), table = python.allocate();
    put(at, tasks.set.table, table);
    put(at, tasks.set.mask, std::uint64_t{7});
    put(at, tasks.set.used, used);
    for (std::uint64_t i = 0; i < 8; ++i) {
      put(table, i * 16, i < keys.size() ? keys[i] : Address{});
      put(table, i * 16 + 8, i);
    }
    return at;
  };
  const auto reference = [&](Address to) {
    const Address at = object(type());
    put(at, known.referent, to);
    return at;
  };
  const auto all = [&](bool is_whole) {
    std::vector<Address> out;
    EXPECT_EQ(TaskReader(python.memory, {python.layout, tasks, {}}, 10).all(out), is_whole);
    return out;
  };
  // GIVEN no set at all
  EXPECT_TRUE(all(true).empty());
  // GIVEN weak references to two tasks, to one that is gone (so to None), and a task in its first step
  const Address first = task({}), second = task({}), eager = task({}), none = object(type());
  known.task_references = set({reference(first), {}, reference(none), reference(second)}, 3);
  known.eager_tasks = set({eager}, 1);
  EXPECT_EQ(all(true), (std::vector{eager, first, second}));
  // GIVEN a set that says that it has more than is there: it is being changed
  known.task_references = set({reference(first)}, 2);
  EXPECT_EQ(all(false), (std::vector{eager, first}));
}

std::vector<Layout> older_layouts() {
  std::vector<Layout> layouts;
  for (const Layout& layout : testing::all_layouts())
    if (older_task_layout(layout).ok()) layouts.push_back(layout);
  return layouts;
}

TEST(OlderTaskLayout, IsThereForOlderVersionsWithAGil) { EXPECT_EQ(older_layouts().size(), 5U); }

INSTANTIATE_TEST_SUITE_P(Versions, Callbacks, ::testing::ValuesIn(older_layouts()),
                         [](const auto& layout) { return testing::test_name(layout.param); });

}  // namespace
}  // namespace plimsoll::cpython
