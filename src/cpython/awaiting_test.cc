// cpython/awaiting_test.cc: stacks of threads in a task's step, in drawn memory.
#include "cpython/awaiting.h"

#include <gtest/gtest.h>

#include "cpython/tasks_testing.h"

namespace plimsoll::cpython {
namespace {

using testing::DrawnTasks;
using Outcome = AwaitingStack::Outcome;

// A thread with an event loop, and tasks.
class Awaiting : public ::testing::TestWithParam<testing::TasksVersion> {
 protected:
  // A task that is suspended: `function` awaits a Future.
  Address task(std::u32string_view name, const std::string& function) {
    return drawing.task(drawing.text(name), drawing.coroutine(function, drawing.awaiting(drawing.future())));
  }
  // The thread runs a task, whose coroutine `function` has called "work".
  Address run(std::u32string_view name, const std::string& function) {
    const Address coroutine = drawing.coroutine_in(function, {}, drawing.layout.coroutine.executing, "coroutine");
    const Address frame = offset_by(coroutine, drawing.layout.coroutine.frame);
    drawing.put(frame, python.layout.frame.previous, python.shim(python.draw_stack("step@2 | loop@2 |")));
    thread = python.thread_state(python.frame("work", 6, frame));
    const Address running = drawing.task(drawing.text(name), coroutine);
    drawing.put(thread, drawing.layout.tstate.running_task, running);
    return running;
  }

  // The stack with those who await it, innermost frame first; "!" before it if outer ones are missing.
  template <typename Entries = NoEntries>
  std::string stack(std::size_t max_depth = 32, Entries entries = {}) {
    std::vector<PyFrame> slots(max_depth + 128);
    const Walk walk = walk_thread(python.memory, python.layout, testing::DrawnInterpreter::kCodeType, thread,
                                  std::span(slots).first(max_depth), entries);
    last = put_awaiting(python.memory, drawing.places(), thread, slots, walk, max_depth);
    std::string out;
    EXPECT_TRUE(each_from_outermost(std::span<const PyFrame>(slots).first(last.count),
                                    [&](const PyFrame& frame, std::string_view name) {
                                      std::string text = python.text({&frame, 1});
                                      if (frame.position == kTaskMark)
                                        text = is_null(frame.code) ? "[several]" : "[" + std::string(name) + "]";
                                      if (frame.position == kEntryMark) text = "|";
                                      out = text + (out.empty() ? "" : " ") + out;
                                      return true;
                                    }));
    return (last.stop == WalkStop::kTruncated ? "!" : "") + out;
  }

  DrawnTasks drawing{GetParam().offsets()};
  testing::DrawnInterpreter& python = drawing.python;
  Address thread{};
  AwaitingStack last;
};

TEST_P(Awaiting, TasksStandInPlaceOfTheEventLoop) {
  const Address fetch = run(U"fetch", "fetch");
  EXPECT_EQ(stack(), "work@6 fetch@4 [fetch]");
  EXPECT_EQ(last.outcome, Outcome::kFound);
  // GIVEN a task that awaits it, through a Future, from an inner coroutine
  const Address gathering = drawing.future();
  const Address inner = drawing.coroutine("inner", drawing.awaiting(gathering));
  const Address main = drawing.task(drawing.text(U"M\u00fcller \u26f5"), drawing.coroutine("main", inner));
  drawing.await(fetch, gathering);
  drawing.await(gathering, main);
  // WHEN it is read THEN its frames follow, innermost first, and its name
  EXPECT_EQ(stack(), "work@6 fetch@4 [fetch] inner@4 main@4 [M\u00fcller \u26f5]");
  EXPECT_EQ(last.own, 2U);
}

TEST_P(Awaiting, TasksWithoutANameHaveNone) {
  const Address fetch = run(U"fetch", "fetch");
  const Address number = drawing.object("int", DrawnTasks::kLong);
  drawing.await(fetch, drawing.task(number, drawing.coroutine("main", drawing.awaiting(drawing.future()))));
  EXPECT_EQ(stack(), "work@6 fetch@4 [fetch] main@4 []");
}

TEST_P(Awaiting, LongNamesAreCutBetweenCharacters) {
  // GIVEN a name of three bytes a character: four hundred are no multiple of that
  run(std::u32string(300, U'\u26f5'), "fetch");
  const std::string shown = stack();
  EXPECT_EQ(shown.size(), std::string("work@6 fetch@4 []").size() + kMostTaskNameBytes / 3 * 3);
  EXPECT_TRUE(shown.ends_with("\u26f5]"));
}

TEST_P(Awaiting, MarksOfEntriesFromCStayBesideTheirFrames) {
  run(U"fetch", "fetch");
  EXPECT_EQ(stack(32, EntryMarks{}), "work@6 fetch@4 | [fetch]");
  EXPECT_EQ(last.own, 3U);
}

TEST_P(Awaiting, StacksEndWhereSeveralAwait) {
  const Address fetch = run(U"fetch", "fetch");
  const Address one = task(U"one", "one");
  drawing.await(fetch, std::vector{one, task(U"two", "two")});
  EXPECT_EQ(stack(), "work@6 fetch@4 [fetch] [several]");
  // One that awaits it in two ways is one.
  const Address gathering = drawing.future();
  drawing.await(gathering, one);
  drawing.await(fetch, std::vector{one, gathering});
  EXPECT_EQ(stack(), "work@6 fetch@4 [fetch] one@4 [one]");
}

TEST_P(Awaiting, NothingIsBelievedOfASetThatIsBeingChanged) {
  const Address fetch = run(U"fetch", "fetch");
  const Address set = drawing.set_of({task(U"one", "one")});
  const std::string as_walked = "work@6 fetch@4 step@2 loop@2";
  // GIVEN a second awaiter that is on its way into a larger table
  drawing.await(fetch, std::vector{task(U"one", "one")});
  drawing.await(fetch, set);
  drawing.put(set, drawing.layout.set.used, std::uint64_t{2});
  EXPECT_EQ(stack(), as_walked);
  EXPECT_EQ(last.outcome, Outcome::kUnreadable);
  // and a set that is not said to be one yet
  drawing.put(fetch, drawing.layout.task.awaited_by_is_set, std::uint8_t{0});
  drawing.put(set, drawing.layout.set.used, std::uint64_t{1});
  EXPECT_EQ(stack(), as_walked);
  EXPECT_EQ(last.outcome, Outcome::kUnreadable);
}

TEST_P(Awaiting, StacksAreTheEventLoopsWhereTheWayIsTorn) {
  const Address fetch = run(U"fetch", "fetch");
  const Address main = task(U"main", "main");
  const std::string as_walked = "work@6 fetch@4 step@2 loop@2";
  const auto is_left_alone = [&] { return stack() == as_walked && last.outcome == Outcome::kUnreadable; };
  drawing.await(fetch, main);
  // GIVEN an awaiter whose name makes no sense
  drawing.put(main, drawing.layout.task.name, Address{8});
  EXPECT_TRUE(is_left_alone());
  // whose coroutine has ended, or runs
  drawing.put(main, drawing.layout.task.name, drawing.text(U"main"));
  for (const std::int8_t state : {drawing.layout.coroutine.first_ended, drawing.layout.coroutine.executing}) {
    drawing.put(main, drawing.layout.task.coroutine, drawing.coroutine_in("main", {}, state, "coroutine"));
    EXPECT_TRUE(is_left_alone());
  }
  // that cannot be read at all
  drawing.await(fetch, Address{0x1234560});
  EXPECT_TRUE(is_left_alone());
  // or a task that should run, and is on no stack
  drawing.await(fetch, Address{});
  const Address elsewhere = drawing.coroutine_in("fetch", {}, drawing.layout.coroutine.executing, "coroutine");
  drawing.put(fetch, drawing.layout.task.coroutine, elsewhere);
  EXPECT_TRUE(is_left_alone());
}

TEST_P(Awaiting, StacksAreLeftAloneBetweenSteps) {
  const Address fetch = run(U"fetch", "fetch");
  const auto is_left_alone = [&] {
    return stack() == "work@6 fetch@4 step@2 loop@2" && last.outcome == Outcome::kNoStep;
  };
  // GIVEN a thread whose task has not begun its step, or is no more in it
  for (const std::int8_t state : {drawing.layout.coroutine.created, drawing.layout.coroutine.first_awaiting}) {
    drawing.put(fetch, drawing.layout.task.coroutine, drawing.coroutine_in("fetch", {}, state, "coroutine"));
    EXPECT_TRUE(is_left_alone());
  }
  // and one that runs no task
  drawing.put(thread, drawing.layout.tstate.running_task, Address{});
  EXPECT_TRUE(is_left_alone());
}

TEST_P(Awaiting, TheStepLastsAsLongAsItsFrameIsOnTheStack) {
  const Address fetch = run(U"fetch", "fetch");
  Address coroutine{};
  ASSERT_TRUE(memory::load_address(python.memory, offset_by(fetch, drawing.layout.task.coroutine), coroutine));
  // GIVEN a coroutine that has just said that it is suspended, and has yet to return to the event loop
  drawing.put(coroutine, drawing.layout.coroutine.frame_state, drawing.layout.coroutine.first_awaiting);
  EXPECT_EQ(stack(), "work@6 fetch@4 [fetch]");
}

TEST_P(Awaiting, WhoCallsTheFirstStepOfAnEagerTaskStays) {
  // GIVEN a coroutine that was called by another one that runs
  const Address child = run(U"child", "child");
  Address coroutine{};
  ASSERT_TRUE(memory::load_address(python.memory, offset_by(child, drawing.layout.task.coroutine), coroutine));
  const auto frame_of = [&](Address of) { return offset_by(of, drawing.layout.coroutine.frame); };
  const Address parent = drawing.coroutine_in("parent", {}, drawing.layout.coroutine.executing, "coroutine");
  drawing.put(frame_of(parent), python.layout.frame.previous, python.shim(python.draw_stack("step@2 | loop@2 |")));
  drawing.put(frame_of(coroutine), python.layout.frame.previous,
              python.shim(python.frame("create_task", 8, frame_of(parent))));
  // WHEN it is read THEN all around it follows
  EXPECT_EQ(stack(), "work@6 child@4 [child] create_task@8 parent@4 step@2 loop@2");
  EXPECT_EQ(last.own, 2U);
  EXPECT_EQ(stack(32, EntryMarks{}), "work@6 child@4 | [child] create_task@8 parent@4 step@2 loop@2");
  EXPECT_EQ(last.own, 3U);
  // also of one without room
  EXPECT_EQ(stack(5), "!work@6 child@4 [child] create_task@8 parent@4");
  EXPECT_EQ(stack(4), "!work@6 child@4 [child] create_task@8");
  // AND a task that awaits it says why it runs
  drawing.await(child, std::vector{task(U"one", "one"), task(U"two", "two")});
  EXPECT_EQ(stack(), "work@6 child@4 [child] [several]");
  // as the event loop does, in a generator or not, if no coroutine has called it
  drawing.await(child, Address{});
  drawing.put(parent, python.layout.object.type, drawing.type_of(drawing.object("generator")));
  EXPECT_EQ(stack(), "work@6 child@4 [child]");
}

TEST_P(Awaiting, StacksEndInRingsAndWhereThereIsNoRoom) {
  const Address fetch = run(U"fetch", "fetch");
  const Address left = task(U"left", "left");
  const Address right = task(U"right", "right");
  drawing.await(fetch, left);
  drawing.await(left, right);
  drawing.await(right, left);
  EXPECT_EQ(stack(), "!work@6 fetch@4 [fetch] left@4 [left] right@4 [right]");
  EXPECT_EQ(stack(4), "!work@6 fetch@4 [fetch] left@4");
  EXPECT_EQ(stack(2), "!work@6 fetch@4");
  // A stack that has been cut before the task's own frame is that of what was called.
  EXPECT_EQ(stack(1), "!work@6");
  EXPECT_EQ(last.outcome, Outcome::kNoStep);
}

INSTANTIATE_TEST_SUITE_P(Versions, Awaiting, ::testing::ValuesIn(testing::kTasksVersions),
                         [](const auto& version) { return std::string("on_") + version.param.name; });

}  // namespace
}  // namespace plimsoll::cpython
