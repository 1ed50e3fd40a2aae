// cpython/greenlets_test.cc: greenlets drawn as the module keeps them, and as it would never.
#include "cpython/greenlets.h"

#include <gtest/gtest.h>

#include "cpython/value_testing.h"

namespace plimsoll::cpython {
namespace {

using testing::DrawnInterpreter;
using testing::DrawnObjects;
using State = GreenletRecord::State;

constexpr Address kThread{0x5000}, kOtherThread{0x6000};

class Greenlets : public ::testing::TestWithParam<Layout> {
 protected:
  DrawnInterpreter python{GetParam()};
  DrawnObjects objects{python};
  const ObjectView<memory::FakeMemory> view{python.memory, python.layout, objects.fields, 1U << 14U};
  // As greenlet 3 has it on some version: where the frame is, and where the main greenlet.
  const std::uint32_t top = python.layout.version.minor >= 11 ? 104 : 120;
  std::uint32_t main = top + 64;

  void SetUp() override {
    objects.put(DrawnInterpreter::kCodeType, python.layout.object.type, objects.type_type);
    set_type("greenlet.greenlet", 40);
    set_type("frame", 64);
  }
  void set_type(const std::string& name, std::uint64_t size) {
    objects.put(objects.type(name), type_field::kFlags, type_flag::kReady | type_flag::kCollected);
    objects.put(objects.type(name), type_field::kBasicSize, size);
  }

  [[nodiscard]] Address made_of(Address greenlet) const { return view.pointer(greenlet, 32); }
  // One that has not begun.
  Address greenlet(Address parent) {
    const Address at = objects.object("greenlet.greenlet");
    const Address made = python.allocate();
    objects.put(at, 32, made);
    objects.put(made, 8, at);
    objects.put(made, main + 16, parent);
    return at;
  }
  // The thread's own.
  Address main_greenlet() {
    const Address at = greenlet({});
    objects.put(made_of(at), top - 48, std::uint64_t{1});
    objects.put(made_of(at), top - 40, ~std::uint64_t{0});
    objects.put(made_of(at), main, at);
    return at;
  }
  void begin(Address greenlet, Address main_one) {
    objects.put(made_of(greenlet), top - 48, std::uint64_t{0x7ff0'0000});
    objects.put(made_of(greenlet), top - 40, std::uint64_t{0x7ff1'0000});
    objects.put(made_of(greenlet), main, main_one);
  }
  // An object of a frame.
  Address frame_object(Address frame) {
    if (python.layout.frame_style == FrameStyle::kFrameObject) {
      objects.put(frame, python.layout.object.type, objects.type("frame"));
      return frame;
    }
    const Address at = objects.object("frame");
    objects.put(at, objects.fields.frame_object.frame, frame);
    objects.put(frame, objects.fields.frame.object, at);
    return at;
  }
  void suspend(Address greenlet, std::string_view stack, Address thread = kThread) {
    objects.put(made_of(greenlet), top, frame_object(python.draw_stack(stack)));
    objects.put(made_of(greenlet), 16, offset_by(thread, 240));
  }

  // What a reader that has seen all of them says of one.
  GreenletRecord read(Address greenlet, const std::vector<Address>& all) {
    GreenletReader<memory::FakeMemory> reader(view, DrawnInterpreter::kCodeType, {kOtherThread, kThread}, 100);
    for (const Address each : all) reader.learn_frame(each);
    for (const Address each : all) reader.learn_main(each);
    GreenletRecord record;
    is_read = reader.read(greenlet, most, record);
    has_met_old_ones = reader.has_met_old_ones();
    addresses = reader.addresses(record).size();
    return record;
  }
  bool is_read = false, has_met_old_ones = false;
  std::size_t addresses = 0, most = 50;
};

TEST_P(Greenlets, AreFoundWhereTheyAreSuspended) {
  // GIVEN a main greenlet that has started another one, which is suspended in a generator
  const Address first = main_greenlet(), second = greenlet(first);
  suspend(first, "switch@4 module@2");
  begin(second, first);
  suspend(second, "wait@6 each@4~ work@2");
  // WHEN the second is read
  const GreenletRecord record = read(second, {first, second});
  // THEN all that is known of it is there
  ASSERT_TRUE(is_read);
  EXPECT_EQ(record.state, State::kSuspended);
  EXPECT_EQ(python.text(record.frames), "wait@6 each@4 work@2");
  EXPECT_EQ(record.stop, WalkStop::kComplete);
  EXPECT_EQ(addresses, 3U);
  EXPECT_EQ(record.thread_state, kThread);
  EXPECT_EQ(record.main, first);
  EXPECT_EQ(record.parent, first);
  // AND a main greenlet knows itself
  EXPECT_EQ(read(first, {first, second}).main, first);
}

TEST_P(Greenlets, OfGreenlet2KeepThemselvesInFrontOfTheMainOne) {
  const Address first = main_greenlet(), second = greenlet(first), third = greenlet(second);
  for (const Address each : {first, second, third}) objects.put(made_of(each), main - 8, each);
  begin(second, first);
  suspend(second, "wait@6");
  const std::vector<Address> all{third, second, first};
  EXPECT_EQ(read(second, all).main, first);
  EXPECT_EQ(read(second, all).parent, first);
  EXPECT_EQ(read(third, all).parent, second);
}

TEST_P(Greenlets, SayWhetherTheyRunAndHaveBegun) {
  const Address first = main_greenlet(), second = greenlet(first), third = greenlet(first), fourth = greenlet(first),
                fifth = greenlet(first);
  // GIVEN one that runs, one that has not begun, one that has ended, and one that is suspended in C code alone
  suspend(first, "switch@4");
  begin(second, first);
  begin(fourth, first);
  objects.put(made_of(fourth), top - 48, std::uint64_t{0});
  begin(fifth, first);
  objects.put(made_of(fifth), 16, offset_by(kOtherThread, 8));
  const std::vector<Address> all{first, second, third, fourth, fifth};
  EXPECT_EQ(read(second, all).state, State::kRunning);
  EXPECT_EQ(read(third, all).state, State::kNew);
  EXPECT_EQ(read(fourth, all).state, State::kEnded);
  EXPECT_EQ(read(fifth, all).state, State::kSuspended);
  EXPECT_EQ(read(fifth, all).thread_state, kOtherThread);
}

TEST_P(Greenlets, AreFollowedThroughGeneratorsToTheirThread) {
  // GIVEN one that handles exceptions in a generator
  const Address first = main_greenlet();
  suspend(first, "switch@4");
  const Address item = python.allocate();
  objects.put(item, objects.fields.thread.value == 0 ? 8 : 24, offset_by(kThread, 300));
  objects.put(made_of(first), 16, item);
  EXPECT_EQ(read(first, {first}).thread_state, kThread);
  // AND one where that leads round
  objects.put(item, objects.fields.thread.value == 0 ? 8 : 24, item);
  EXPECT_EQ(read(first, {first}).thread_state, Address{});
}

TEST_P(Greenlets, AreCutWhereAnEntryWasLeftInTheChain) {
  if (!python.has_shims()) GTEST_SKIP() << "this version has no frames of entries";
  const Address first = main_greenlet();
  suspend(first, "inner@6 worker@4 | main@2");
  const GreenletRecord record = read(first, {first});
  EXPECT_EQ(python.text(record.frames), "inner@6 worker@4");
  EXPECT_EQ(record.stop, WalkStop::kEntering);
}

TEST_P(Greenlets, HaveAsManyFramesAsAreWanted) {
  const Address first = main_greenlet();
  suspend(first, "inner@6 worker@4 main@2");
  most = 2;
  const GreenletRecord record = read(first, {first});
  EXPECT_EQ(python.text(record.frames), "inner@6 worker@4");
  EXPECT_EQ(record.stop, WalkStop::kTruncated);
  most = 0;
  EXPECT_EQ(read(first, {first}).stop, WalkStop::kTruncated);
}

TEST_P(Greenlets, WithFramesInARingHaveNone) {
  const Address first = main_greenlet();
  const Address innermost = python.draw_stack("inner@6 main@2");
  const Address outermost = view.pointer(innermost, python.layout.frame.previous);
  objects.put(outermost, python.layout.frame.previous, innermost);
  objects.put(made_of(first), top, frame_object(innermost));
  const GreenletRecord record = read(first, {first});
  ASSERT_TRUE(is_read);
  EXPECT_NE(record.stop, WalkStop::kComplete);
  EXPECT_LE(record.frames.size(), 50U);
}

TEST_P(Greenlets, ThatAreGarbageAreNotRead) {
  // GIVEN a sound one, and others whose object of C++ is nowhere, or at no multiple of 8
  const Address sound = main_greenlet();
  suspend(sound, "switch@4");
  const Address nowhere = greenlet({}), crooked = greenlet({});
  objects.put(crooked, 32, Address{raw(made_of(crooked)) + 4});
  objects.put(nowhere, 32, Address{0xdead0000});
  const std::vector<Address> all{nowhere, crooked, sound};
  // THEN nothing is made up
  (void)read(crooked, all);
  EXPECT_FALSE(is_read);
  EXPECT_TRUE(read(nowhere, all).frames.empty());
  (void)read(Address{0xdead0000}, all);
  EXPECT_FALSE(is_read);
  // AND a frame that is none, or that belongs to another object, is not followed
  objects.put(made_of(sound), top, objects.object("greenlet.greenlet"));
  const Address other = greenlet({});
  suspend(other, "switch@4");
  EXPECT_TRUE(read(sound, {other}).frames.empty());
  EXPECT_TRUE(is_read);
}

TEST_P(Greenlets, OfOtherVersionsAreTold) {
  const Address first = main_greenlet();
  suspend(first, "switch@4");
  objects.put(objects.type("greenlet.greenlet"), type_field::kBasicSize, std::uint64_t{136});
  (void)read(first, {first});
  EXPECT_FALSE(is_read);
  EXPECT_TRUE(has_met_old_ones);
}

std::vector<Layout> layouts_with_lists() {
  std::vector<Layout> layouts = testing::all_layouts();
  std::erase_if(layouts, [](const Layout& layout) { return layout.version.threading != Version::Threading::kGil; });
  return layouts;
}

INSTANTIATE_TEST_SUITE_P(EveryVersion, Greenlets, ::testing::ValuesIn(layouts_with_lists()),
                         [](const auto& of) { return testing::test_name(of.param); });

}  // namespace
}  // namespace plimsoll::cpython
