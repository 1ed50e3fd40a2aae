// cpython/frame_variables_test.cc: values and frames on drawings of every version's objects, sound ones and broken
// ones.
#include "cpython/frame_variables.h"

#include <gtest/gtest.h>

#include "cpython/value_testing.h"

namespace plimsoll::cpython {
namespace {

using testing::DrawnInterpreter;
using testing::DrawnObjects;

constexpr std::uint64_t kBudget = 1U << 14U;

class ValuesOf : public ::testing::TestWithParam<Layout> {
 protected:
  DrawnInterpreter python{GetParam()};
  DrawnObjects objects{python};

  Value value(Address object, const ValueLimits& limits = {}) {
    const ObjectView<memory::FakeMemory> view(python.memory, python.layout, objects.fields, kBudget);
    return ValueReader<memory::FakeMemory>(view, objects.type_type, limits).read(object);
  }
  std::string text(Address object, const ValueLimits& limits = {}) { return value(object, limits).text; }
};

TEST_P(ValuesOf, AreWrittenAsReprDoes) {
  // GIVEN objects in each other
  const Address inner = objects.tuple({objects.integer(-42), objects.real(0.5), objects.text(U"it's \u00fc")});
  const Address outer = objects.list({inner, objects.object("NoneType"), objects.integer(1'000'000'000'000)});
  // THEN they are written as Python does, with the name of the outermost class
  EXPECT_EQ(text(outer), "[(-42, 0.5, \"it's \u00fc\"), None, 1000000000000]");
  EXPECT_EQ(value(outer).type, "list");
  EXPECT_EQ(text(objects.tuple({objects.integer(0)})), "(0,)");
  EXPECT_EQ(text(objects.holder("cell", objects.integer(3))), "<cell: 3>");
}

TEST_P(ValuesOf, OfUnknownClassesAreNamed) { EXPECT_EQ(text(objects.object("socket.socket")), "<socket.socket>"); }

TEST_P(ValuesOf, WhatIsLeftOutIsCounted) {
  // GIVEN a long list and a long text
  const Address row = objects.list(std::vector<Address>(100, objects.integer(7)));
  const Address words = objects.text(std::u32string(1000, U'x'));
  // THEN limits hold, and what they leave out is told
  EXPECT_EQ(text(row, {3, 2, 200}), "[7, 7, ... 98 more]");
  EXPECT_EQ(text(row, {3, 0, 200}), "[... 100 more]");
  EXPECT_EQ(text(words, {3, 10, 20}), "'" + std::string(20, 'x') + "'... 980 more");
  EXPECT_LT(text(row, {3, 100, 50}).size(), 80U);
}

TEST_P(ValuesOf, CyclesAndDepthComeToAnEnd) {
  // GIVEN a list in itself, and cells in cells
  const Address loop = objects.list({DrawnInterpreter::kNone});
  std::uint64_t row = 0;
  ASSERT_TRUE(python.memory.load(offset_by(loop, objects.shift() + container_field::kListItems), row));
  python.memory.put(Address{row}, loop);
  const Address cells = objects.holder("cell", objects.holder("cell", objects.holder("cell", loop)));
  // THEN each is closed where it begins again, or at the depth that was asked for
  EXPECT_EQ(text(loop), "[[...]]");
  EXPECT_EQ(text(cells, {2, 10, 200}), "<cell: <cell: <cell>>>");
}

TEST_P(ValuesOf, GarbageIsSaidToBeUnreadable) {
  // GIVEN no object, one outside of memory, one whose class is none, and one that claims items without end
  const Address classless = python.allocate();
  objects.put(classless, python.layout.object.type, python.allocate());
  const Address endless = objects.list({});
  objects.put(endless, python.layout.object.var_size, std::uint64_t{1} << 60U);
  objects.put(endless, objects.shift() + container_field::kListItems, Address{0xdead0000});
  // THEN nothing is made up
  EXPECT_EQ(text(Address{}), "<nothing>");
  EXPECT_EQ(text(Address{0xdead0000}), "<unreadable>");
  EXPECT_EQ(text(Address{0x10001}), "<unreadable>");
  EXPECT_EQ(text(classless), "<unreadable>");
  EXPECT_EQ(value(classless).type, "");
  EXPECT_EQ(text(endless), "[... 1152921504606846976 more]");
}

TEST_P(ValuesOf, FramesAreFoundAgainWhereTheWalkHasFoundThem) {
  // GIVEN a thread that has entered Python from C twice
  const Address innermost = python.draw_stack("inner@6 worker@4 | main@2 |");
  const Address tstate = python.thread_state(innermost);
  std::vector<PyFrame> frames(8);
  const Walk walk = walk_thread(python.memory, python.layout, DrawnInterpreter::kCodeType, tstate, frames);
  frames.resize(walk.count);
  ASSERT_EQ(frames.size(), 3U);
  // WHEN their places are asked for
  const std::vector<Address> found =
      frame_addresses(python.memory, python.layout, DrawnInterpreter::kCodeType, tstate, frames);
  // THEN each runs the code that the walk has found there
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0], innermost);
  for (std::size_t i = 0; i < found.size(); ++i) {
    std::uint64_t executable = 0;
    ASSERT_TRUE(python.memory.load(offset_by(found[i], python.layout.frame.executable), executable));
    EXPECT_EQ(Address{executable & ~python.layout.executable_tag_mask}, frames[i].code);
  }
  // AND if the thread runs other code by then there are none
  frames[1].code = python.code("other");
  EXPECT_TRUE(frame_addresses(python.memory, python.layout, DrawnInterpreter::kCodeType, tstate, frames).empty());
}

std::vector<Layout> layouts_with_values() {
  std::vector<Layout> layouts = testing::all_layouts();
  std::erase_if(layouts, [](const Layout& layout) { return !object_fields(layout.version).ok(); });
  return layouts;
}

INSTANTIATE_TEST_SUITE_P(EveryVersion, ValuesOf, ::testing::ValuesIn(layouts_with_values()),
                         [](const auto& of) { return testing::test_name(of.param); });

}  // namespace
}  // namespace plimsoll::cpython
