// cpython/tasks_test.cc: tasks and what they await, in drawn memory.
#include "cpython/tasks.h"

#include <gtest/gtest.h>

#include <array>
#include <map>

#include "cpython/debug_offsets_testing.h"
#include "cpython/testing.h"

namespace plimsoll::cpython {
namespace {

using testing::DrawnInterpreter;

// Coroutines, Futures and tasks of one version in a drawn interpreter.
class Drawing {
 public:
  explicit Drawing(const testing::DrawnOffsets& offsets) : python(offsets.layout().value()) {
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

  auto reader(std::size_t max_depth = 100) {
    return TaskReader<memory::FakeMemory>(python.memory, python.layout, layout, DrawnInterpreter::kCodeType, max_depth);
  }
  TaskRecord read(Address task, std::size_t max_depth = 100) {
    TaskRecord record;
    EXPECT_TRUE(reader(max_depth).read(task, record));
    return record;
  }
  std::string frames(const TaskRecord& record) { return python.text(record.chain.frames); }

 private:
  std::map<std::string, Address> types_;
};

struct Interpreter {
  const char* name;
  testing::DrawnOffsets (*offsets)();
};
std::ostream& operator<<(std::ostream& out, const Interpreter& interpreter) { return out << interpreter.name; }

class Tasks : public ::testing::TestWithParam<Interpreter> {
 protected:
  Drawing drawing{GetParam().offsets()};
};

TEST_P(Tasks, HaveTheFramesOfTheirCoroutinesDownToTheFuture) {
  // GIVEN a task whose coroutine awaits another one through all that can stand between
  const Address future = drawing.future();
  const Address innermost = drawing.coroutine("sleep", drawing.awaiting(future), "generator");
  const Address agen = drawing.coroutine("numbers", drawing.wrapper("coroutine_wrapper", innermost), "async_generator");
  const Address main = drawing.coroutine("main", drawing.wrapper("async_generator_asend", agen));
  // WHEN it is read
  const TaskRecord record = drawing.read(drawing.task(drawing.text(U"first"), main));
  // THEN the frames are there, and what they wait for
  EXPECT_EQ(record.name, "first");
  EXPECT_EQ(record.loop, Address{0x5000});
  EXPECT_EQ(drawing.frames(record), "main@4 numbers@4 sleep@4");
  EXPECT_EQ(record.chain.end, AwaitEnd::kFuture);
  EXPECT_EQ(record.chain.awaited, future);
  EXPECT_EQ(record.chain.awaited_type, "_asyncio.Future");
}

TEST_P(Tasks, SayWhatTheyDoWhenTheyDoNotWaitForAFuture) {
  const auto end_of = [&](Address coroutine) {
    return drawing.read(drawing.task(drawing.text(U"t"), coroutine)).chain.end;
  };
  const auto in_state = [&](std::int8_t state) { return drawing.coroutine_in("main", {}, state, "coroutine"); };
  EXPECT_EQ(end_of(in_state(drawing.layout.coroutine.created)), AwaitEnd::kNotBegun);
  EXPECT_EQ(end_of(in_state(drawing.layout.coroutine.executing)), AwaitEnd::kExecuting);
  EXPECT_EQ(end_of(drawing.coroutine("main", drawing.object("uvloop.Handle", Drawing::kHeapType))), AwaitEnd::kOther);
  EXPECT_EQ(end_of({}), AwaitEnd::kEnded);
  // One that gives way is suspended, but in no await.
  const std::int8_t yielded = static_cast<std::int8_t>(drawing.layout.coroutine.first_awaiting - 1);
  EXPECT_EQ(end_of(in_state(yielded)), AwaitEnd::kNothing);
  // One that has returned has its frame still; one that waits, and has no frame, is none.
  EXPECT_EQ(end_of(in_state(drawing.layout.coroutine.first_ended)), AwaitEnd::kEnded);
  const Address torn = in_state(yielded);
  drawing.put(offset_by(torn, drawing.layout.coroutine.frame), drawing.python.layout.frame.executable,
              DrawnInterpreter::kNone);
  EXPECT_EQ(end_of(torn), AwaitEnd::kUnreadable);
}

TEST_P(Tasks, AreNotMisledByClassesThatAreCalledLikePythonsOwn) {
  // GIVEN a class of the program with the name of one of the interpreter
  const Address imposter = drawing.object("coroutine", Drawing::kHeapType);
  const TaskRecord record = drawing.read(drawing.task(drawing.text(U"t"), imposter));
  EXPECT_EQ(record.chain.end, AwaitEnd::kOther);
  EXPECT_EQ(record.chain.awaited_type, "coroutine");
}

TEST_P(Tasks, HaveTheNamesThatNobodyHasAskedForYet) {
  const Address number = drawing.object("int", Drawing::kLong);
  drawing.put(number, drawing.layout.integer.tag, std::uint64_t{1U << 3U});
  drawing.put(number, drawing.layout.integer.digits, std::uint32_t{1234});
  EXPECT_EQ(drawing.read(drawing.task(number, {})).name, "Task-1234");
  // A number of more digits than any count has is none.
  drawing.put(number, drawing.layout.integer.tag, std::uint64_t{9U << 3U});
  TaskRecord record;
  EXPECT_FALSE(drawing.reader().read(drawing.task(number, {}), record));
}

TEST_P(Tasks, KnowWhoAwaitsThem) {
  const Address one = drawing.task(drawing.text(U"one"), {});
  const Address two = drawing.task(drawing.text(U"two"), {});
  const Address shared = drawing.task(drawing.text(U"shared"), {});
  EXPECT_TRUE(drawing.read(shared).awaiters.empty());
  // WHEN one awaits it
  drawing.put(shared, drawing.layout.task.awaited_by, one);
  EXPECT_EQ(drawing.read(shared).awaiters, std::vector<Address>{one});
  // AND WHEN several do, and one does not any more
  const Address set = drawing.python.allocate();
  const Address table = drawing.python.allocate();
  drawing.put(shared, drawing.layout.task.awaited_by, set);
  drawing.put(shared, drawing.layout.task.awaited_by_is_set, std::uint8_t{1});
  drawing.put(set, drawing.layout.set.table, table);
  drawing.put(set, drawing.layout.set.mask, std::uint64_t{7});
  for (std::uint32_t entry = 0; entry < 8; ++entry) {
    drawing.put(table, entry * 16, entry == 2 ? one : entry == 5 ? two : entry == 6 ? Address{0x7200} : Address{});
    drawing.put(table, entry * 16 + 8, entry == 6 ? ~std::uint64_t{0} : std::uint64_t{entry});
  }
  EXPECT_EQ(drawing.read(shared).awaiters, (std::vector<Address>{one, two}));
  // A set that says that it is larger than its memory has what could be read.
  drawing.put(set, drawing.layout.set.mask, ~std::uint64_t{0});
  EXPECT_EQ(drawing.read(shared).awaiters, (std::vector<Address>{one, two}));
}

TEST_P(Tasks, AreFoundInListsThatComeRound) {
  const Address first = drawing.task(drawing.text(U"first"), {});
  const Address second = drawing.task(drawing.text(U"second"), {});
  const Address head = drawing.list({first, second});
  std::vector<Address> found;
  EXPECT_TRUE(drawing.reader().list(head, found));
  EXPECT_EQ(found, (std::vector<Address>{first, second}));
  // WHEN a node's neighbour does not know it, as while the list changes, or when it is another's memory by now
  drawing.put(offset_by(second, drawing.layout.task.node), drawing.layout.node.previous, head);
  found.clear();
  // THEN the list ends before it, and says so
  EXPECT_FALSE(drawing.reader().list(head, found));
  EXPECT_EQ(found, std::vector<Address>{first});
}

TEST_P(Tasks, EndHoweverTheirCoroutinesAreTied) {
  // GIVEN two coroutines that await each other, which no program can make
  const Address left = drawing.coroutine("left", {});
  const Address right = drawing.coroutine("right", left);
  const Address frame = offset_by(left, drawing.layout.coroutine.frame);
  const Address stack = drawing.python.allocate();
  drawing.put(frame, drawing.layout.coroutine.stack_top, stack);
  drawing.python.memory.put(Address{raw(stack) - drawing.layout.coroutine.awaited}, right);
  const TaskRecord record = drawing.read(drawing.task(drawing.text(U"t"), left), 10);
  EXPECT_EQ(record.chain.frames.size(), 10U);
  EXPECT_EQ(record.chain.end, AwaitEnd::kTooDeep);
}

TEST_P(Tasks, AreNoneWhereMemoryIsSomethingElse) {
  TaskRecord record;
  EXPECT_FALSE(drawing.reader().read(Address{0x1234560}, record));
  EXPECT_FALSE(drawing.reader().read(drawing.future(), record));
  // A coroutine that cannot be read leaves a task with a name.
  const TaskRecord torn = drawing.read(drawing.task(drawing.text(U"torn"), Address{0x1234560}));
  EXPECT_EQ(torn.name, "torn");
  EXPECT_EQ(torn.chain.end, AwaitEnd::kUnreadable);
}

INSTANTIATE_TEST_SUITE_P(Versions, Tasks,
                         ::testing::Values(Interpreter{"3_14", testing::offsets_3_14},
                                           Interpreter{"3_14t", testing::offsets_3_14t},
                                           Interpreter{"3_15", testing::offsets_3_15},
                                           Interpreter{"3_15t", testing::offsets_3_15t}),
                         [](const auto& version) { return std::string("on_") + version.param.name; });

}  // namespace
}  // namespace plimsoll::cpython
