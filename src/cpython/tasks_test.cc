// cpython/tasks_test.cc: tasks and what they await, in drawn memory.
#include "cpython/tasks.h"

#include <gtest/gtest.h>

#include "cpython/tasks_testing.h"

namespace plimsoll::cpython {
namespace {

using testing::DrawnInterpreter;
using testing::DrawnTasks;

// With a reader of them.
struct Drawing : DrawnTasks {
  using DrawnTasks::DrawnTasks;

  auto reader(std::size_t max_depth = 100) {
    return TaskReader<memory::FakeMemory>(python.memory, places(), max_depth);
  }
  TaskRecord read(Address task, std::size_t max_depth = 100) {
    TaskRecord record;
    EXPECT_TRUE(reader(max_depth).read(task, record));
    return record;
  }
  std::string frames(const TaskRecord& record) { return python.text(record.chain.frames); }
};

class Tasks : public ::testing::TestWithParam<testing::TasksVersion> {
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
  EXPECT_EQ(end_of(drawing.coroutine("main", drawing.object("uvloop.Handle", DrawnTasks::kHeapType))),
            AwaitEnd::kOther);
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
  const Address imposter = drawing.object("coroutine", DrawnTasks::kHeapType);
  const TaskRecord record = drawing.read(drawing.task(drawing.text(U"t"), imposter));
  EXPECT_EQ(record.chain.end, AwaitEnd::kOther);
  EXPECT_EQ(record.chain.awaited_type, "coroutine");
}

TEST_P(Tasks, HaveTheNamesThatNobodyHasAskedForYet) {
  const Address number = drawing.object("int", DrawnTasks::kLong);
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
  drawing.await(shared, one);
  EXPECT_EQ(drawing.read(shared).awaiters, std::vector<Address>{one});
  // AND WHEN several do, and one does not any more
  drawing.await(shared, std::vector{one, two});
  EXPECT_EQ(drawing.read(shared).awaiters, (std::vector<Address>{one, two}));
  EXPECT_FALSE(drawing.read(shared).has_more_awaiters);
  // A set that says that it is larger than its memory has what could be read, and one that says that there are more.
  const Address set = drawing.set_of({one, two});
  drawing.await(shared, set);
  drawing.put(set, drawing.layout.set.mask, ~std::uint64_t{0});
  EXPECT_EQ(drawing.read(shared).awaiters, (std::vector<Address>{one, two}));
  EXPECT_TRUE(drawing.read(shared).has_more_awaiters);
  drawing.put(set, drawing.layout.set.mask, std::uint64_t{7});
  drawing.put(set, drawing.layout.set.used, std::uint64_t{3});
  EXPECT_TRUE(drawing.read(shared).has_more_awaiters);
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

INSTANTIATE_TEST_SUITE_P(Versions, Tasks, ::testing::ValuesIn(testing::kTasksVersions),
                         [](const auto& version) { return std::string("on_") + version.param.name; });

}  // namespace
}  // namespace plimsoll::cpython
