// cpython/task_layout_test.cc: the tables of coroutines and tasks, believed only where they can be true.
#include "cpython/task_layout.h"

#include <gtest/gtest.h>

#include <array>

#include "cpython/debug_offsets_testing.h"

namespace plimsoll::cpython {
namespace {

using testing::DrawnOffsets;

// As 3.14.10 publishes it.
using Asyncio = std::array<std::uint64_t, 13>;
constexpr Asyncio kAsyncio{168, 136, 96, 108, 109, 128, 152, 225864, 10880, 936, 864, 872, 880};

Result<TaskLayout> layout_of(const DrawnOffsets& drawn, const Asyncio& asyncio = kAsyncio) {
  const std::string offsets = drawn.bytes();
  return task_layout_from_tables(drawn.layout().value(), reinterpret_cast<const unsigned char*>(offsets.data()),
                                 reinterpret_cast<const unsigned char*>(asyncio.data()));
}

TEST(TaskLayout, HasWhatTheTablesSay) {
  const TaskLayout layout = layout_of(testing::offsets_3_14()).take();
  EXPECT_EQ(layout.task.name, 136U);
  EXPECT_EQ(layout.task.awaited_by, 96U);
  EXPECT_EQ(layout.task.is_task, 108U);
  EXPECT_EQ(layout.task.awaited_by_is_set, 109U);
  EXPECT_EQ(layout.task.coroutine, 128U);
  EXPECT_EQ(layout.task.node, 152U);
  EXPECT_EQ(layout.interpreter.tasks, 10880U);
  EXPECT_EQ(layout.tstate.running_loop, 864U);
  EXPECT_EQ(layout.tstate.running_task, 872U);
  EXPECT_EQ(layout.tstate.tasks, 880U);
  EXPECT_EQ(layout.coroutine.frame, 72U);
  EXPECT_EQ(layout.coroutine.frame_state, 67U);
  EXPECT_EQ(layout.coroutine.stack_top, 64U);
  EXPECT_EQ(layout.set.table, 40U);
  EXPECT_EQ(layout.set.mask, 32U);
  EXPECT_EQ(layout.type.flags, 168U);
  EXPECT_EQ(layout.integer.digits, 24U);
  EXPECT_EQ(layout.node.previous, 8U);
}

TEST(TaskLayout, FindsTheSameFieldsIn315) {
  // GIVEN a version whose table has other fields in between, and whose coroutines keep an index above what they await
  const TaskLayout layout = layout_of(testing::offsets_3_15()).take();
  EXPECT_EQ(layout.coroutine.frame, 72U);
  EXPECT_EQ(layout.coroutine.stack_top, 64U);
  EXPECT_EQ(layout.coroutine.awaited, 16U);
  EXPECT_EQ(layout.set.table, 40U);
  EXPECT_EQ(layout.type.name, 24U);
  EXPECT_EQ(layout.node.previous, 8U);
}

TEST(TaskLayout, KnowsThatObjectsOfFreeThreadedBuildsAreLarger) {
  EXPECT_EQ(layout_of(testing::offsets_3_14()).value().task.loop, 16U);
  EXPECT_EQ(layout_of(testing::offsets_3_14t()).value().task.loop, 32U);
}

TEST(TaskLayout, RefusesWhatCannotBe) {
  // GIVEN each number of the module's table in turn WHEN it is too large for its structure THEN it is named
  for (std::size_t place = 0; place < kAsyncio.size(); ++place) {
    Asyncio asyncio = kAsyncio;
    asyncio[place] = std::uint64_t{1} << 40U;
    const Result<TaskLayout> layout = layout_of(testing::offsets_3_14(), asyncio);
    ASSERT_FALSE(layout.ok()) << place;
    EXPECT_NE(layout.error().message.find("impossible offset for"), std::string::npos);
  }
  for (const char* field : {"gen_object.gi_iframe", "set_object.table", "long_object.ob_digit", "llist_node.next",
                            "interpreter_frame.stackpointer"}) {
    DrawnOffsets drawn = testing::offsets_3_15();
    drawn[field] = 1'000'000;
    EXPECT_FALSE(layout_of(drawn).ok()) << field;
  }
}

TEST(TaskLayout, SaysWhichVersionsTell) {
  const Result<TaskLayout> layout = layout_of(testing::offsets_3_13());
  ASSERT_FALSE(layout.ok());
  EXPECT_EQ(layout.error().kind, ErrorKind::kUnsupported);
  EXPECT_NE(layout.error().message.find("3.14"), std::string::npos);
}

}  // namespace
}  // namespace plimsoll::cpython
