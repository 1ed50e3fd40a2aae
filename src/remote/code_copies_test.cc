#include "remote/code_copies.h"

#include <gtest/gtest.h>

#include "capture/testing.h"
#include "memory/local.h"

namespace plimsoll::remote {
namespace {

TEST(CodeRoom, HasLinesAsLongAsThereIsRoomForThemAndThenNames) {
  // GIVEN room for less than two code objects
  const cpython::Layout layout = capture::testing::fake_layout();
  const memory::LocalReader memory;
  const capture::testing::FakeFunction function("work");
  CodeRoom room(sizeof(cpython::CodeInfo));
  // WHEN it is copied again and again
  const auto first = room.copy(memory, layout, function.address());
  const auto second = room.copy(memory, layout, function.address());
  const auto third = room.copy(memory, layout, function.address());
  // THEN the first has all, the second has its name, and then there are none
  ASSERT_NE(first, nullptr);
  EXPECT_FALSE(first->line_table.empty());
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(second->name, "work");
  EXPECT_TRUE(second->line_table.empty());
  EXPECT_EQ(third, nullptr);
  // AND what is given back is room again
  room.give_back(*first);
  room.give_back(*second);
  EXPECT_NE(room.copy(memory, layout, function.address()), nullptr);
}

}  // namespace
}  // namespace plimsoll::remote
