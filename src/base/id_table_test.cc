#include "base/id_table.h"

#include <gtest/gtest.h>

#include <string>

namespace plimsoll {
namespace {

using Table = IdTable<StackId, std::string>;

TEST(IdTable, ARowIsKnownUntilItIsForgotten) {
  Table table;
  EXPECT_EQ(table.find(StackId{0}), nullptr);
  table[StackId{3}] = "three";
  table[StackId{1000}] = "a thousand";
  EXPECT_EQ(*table.find(StackId{3}), "three");
  EXPECT_EQ(*table.find(StackId{1000}), "a thousand");
  EXPECT_EQ(table.find(StackId{4}), nullptr);
  EXPECT_EQ(table.find(StackId{2000}), nullptr);
  table.forget(StackId{3});
  table.forget(StackId{4});  // which never was
  table.forget(StackId{100'000});
  EXPECT_EQ(table.find(StackId{3}), nullptr);
  EXPECT_EQ(*table.find(StackId{1000}), "a thousand");
  // and one that is known again is new
  EXPECT_EQ(table[StackId{3}], "");
  table.clear();
  EXPECT_EQ(table.find(StackId{1000}), nullptr);
}

TEST(IdTable, IsAsLargeAsWhatIsKnown) {
  // GIVEN ids that come and go, ten of them known at a time, WHEN there were a million of them
  Table table;
  table[StackId{0}] = "for ever";
  for (std::size_t id = 1; id < 1'000'000; ++id) {
    table[StackId{id}] = "a while";
    if (id > 10) table.forget(StackId{id - 10});
  }
  // THEN there is room for those known now
  EXPECT_LE(table.pages_in_memory(), 3U);
  EXPECT_EQ(*table.find(StackId{0}), "for ever");
}

}  // namespace
}  // namespace plimsoll
