// capture/awaiting_tasks_test.cc: from a thread in a task's step to the sample of it.
#include "capture/awaiting_tasks.h"

#include <gtest/gtest.h>

#include "capture/resolve.h"
#include "capture/tasks_testing.h"
#include "capture/walk_into.h"

namespace plimsoll::capture {
namespace {

class AwaitingTasks : public ::testing::Test {
 protected:
  AwaitingTasks() {
    EXPECT_TRUE(memory::FaultGuard::ensure_installed().ok());
    interpreter.tasks = testing::fake_task_layout();
  }
  // A sample of the thread, as it is passed on.
  std::string sample(std::size_t max_depth = 64) {
    std::vector<cpython::PyFrame> slots(max_depth + awaiting_slots(interpreter));
    RawSample raw;
    raw.time_ns = testing::later();
    written = walk_into(raw, interpreter, thread.state(), Called{}, slots, registry.seen(), cpython::NoEntries{});
    own = raw.frame_count;
    EXPECT_TRUE(resolver.resolve(raw, std::span(slots).first(written.used)));
    return sink.log.back();
  }

  testing::TaskThread thread{4};
  Interpreter interpreter{testing::fake_layout(), address_of(&testing::kFakeCodeType), Address{}, nullptr, {}, {}};
  CodeRegistry registry{testing::fake_layout()};
  testing::LoggingSink sink;
  Resolver resolver{testing::fake_layout(), registry, sink, Trust::kValidated};
  WrittenStack written;
  std::size_t own = 0;
};

TEST_F(AwaitingTasks, AreOnTheStackOfWhatTheyAwait) {
  EXPECT_EQ(sample(), "sample [task main]:0 main:11 [task batch]:0 batches:11 [task fetch 12]:0 fetch:11 work:10");
  EXPECT_EQ(own, 2U);
  // They may die before their sample is read: whoever does so tells.
  EXPECT_TRUE(registry.seen().may_contain(thread.batch.address()));
}

TEST_F(AwaitingTasks, AreNotLookedForUnlessAskedFor) {
  interpreter.tasks.reset();
  EXPECT_EQ(sample(), "sample loop:10 loop:10 fetch:11 work:10");
  EXPECT_EQ(written.tasks, cpython::AwaitingStack::Outcome::kNoStep);
}

TEST_F(AwaitingTasks, LeaveTheStackAsItWasIfTheyMakeNoSense) {
  // GIVEN one who awaits, and should be suspended
  thread.middle.own_coroutine.state = testing::FakeTask::kExecuting;
  // WHEN a sample is taken THEN it is there, and counted; and what was tried is known to the ring
  EXPECT_EQ(sample(), "sample loop:10 loop:10 fetch:11 work:10");
  EXPECT_EQ(written.tasks, cpython::AwaitingStack::Outcome::kUnreadable);
  EXPECT_GT(written.touched, written.used);
}

TEST_F(AwaitingTasks, CountAmongTheFramesThatAreKept) {
  EXPECT_EQ(sample(4), "sample ... batches:11 [task fetch 12]:0 fetch:11 work:10");
}

}  // namespace
}  // namespace plimsoll::capture
