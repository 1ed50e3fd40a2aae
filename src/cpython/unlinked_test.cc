// cpython/unlinked_test.cc: frames that have no caller where a tick meets them, and what registers say of it.
#include "cpython/unlinked.h"

#include <gtest/gtest.h>

#include <vector>

#include "cpython/testing.h"

namespace plimsoll::cpython {
namespace {

using testing::DrawnInterpreter;

// main, which calls from C a function `work`, which has resumed the generator `gen`: it has no caller now.
class UnlinkedGenerator : public ::testing::Test {
 protected:
  UnlinkedGenerator() {
    for (const char* name : {"main", "work", "other", "gen"})
      python.memory.put(offset_by(python.code(name), python.layout.generator.words), kFrameWords);
    gen = offset_by(generator, python.layout.generator.frame);
    python.memory.put(offset_by(gen, python.layout.frame.previous), Address{});
    python.memory.put(offset_by(gen, python.layout.frame.executable), python.code("gen"));
    python.memory.put(offset_by(gen, python.layout.frame.owner), std::uint8_t{1});
    python.put_position(gen, "gen", 6);
    for (const Address frame : {main, work}) put_values(frame, {});
    put_values(work, {Address{0x77000}, generator});
    const Address root = python.root_entry(tstate, Address{});
    const Address outer = python.cframe(main, root);
    python.memory.put(offset_by(tstate, python.layout.tstate.current_frame), python.cframe(gen, outer));
  }

  // The variables of a frame and its stack, which has room for more.
  void put_values(Address frame, const std::vector<Address>& values) {
    for (std::uint64_t i = 0; i < kFrameWords; ++i)
      python.memory.put(offset_by(frame, python.layout.generator.values + i * sizeof(Address)),
                        i < values.size() ? values[i] : Address{});
  }

  struct Seen {
    WalkStop stop;
    std::string frames;
  };
  Seen walk_with(const std::vector<std::uint64_t>& registers) {
    std::vector<PyFrame> out(64);
    const Walk walk = walk_unlinked(python.memory, python.layout, DrawnInterpreter::kCodeType, tstate, registers, out);
    return {walk.stop, is_proven(walk.stop) ? python.text(std::span(out).first(walk.count)) : ""};
  }

  static constexpr std::uint32_t kFrameWords = 16;
  DrawnInterpreter python{layout_from_table({3, 12, 0}).value()};
  Address main = python.frame("main", 2, python.shim(Address{}));
  Address work = python.frame("work", 4, python.shim(main));
  Address generator = python.allocate();
  Address gen;
  Address tstate = python.allocate();
};

TEST_F(UnlinkedGenerator, HasNoStackWithoutRegisters) {
  std::vector<PyFrame> out(64);
  EXPECT_EQ(walk_thread(python.memory, python.layout, DrawnInterpreter::kCodeType, tstate, out).stop,
            WalkStop::kUnlinked);
  EXPECT_EQ(walk_with({}).stop, WalkStop::kUnlinked);
}

TEST_F(UnlinkedGenerator, IsLinkedToTheFrameInARegisterThatHasItAmongItsValues) {
  // GIVEN registers with what else they may have: the generator, its frame, numbers, frames that do not know it
  const Seen seen = walk_with({0, 4711, raw(generator), raw(gen), raw(main), raw(work), raw(work), ~std::uint64_t{0}});
  EXPECT_EQ(seen.stop, WalkStop::kComplete);
  EXPECT_EQ(seen.frames, "gen@6 work@4 main@2");
}

TEST_F(UnlinkedGenerator, IsLinkedToNoFrameThatDoesNotKnowIt) {
  EXPECT_EQ(walk_with({raw(main), raw(generator)}).stop, WalkStop::kUnlinked);
  // Nor to one that has it behind its values.
  put_values(work, {});
  python.memory.put(offset_by(work, kFrameWords * sizeof(Address)), generator);
  EXPECT_EQ(walk_with({raw(work)}).stop, WalkStop::kUnlinked);
}

TEST_F(UnlinkedGenerator, IsLinkedToNeitherOfTwoThatKnowIt) {
  const Address other = python.frame("other", 4, python.shim(main));
  put_values(other, {generator});
  EXPECT_EQ(walk_with({raw(work), raw(other)}).stop, WalkStop::kUnlinked);
}

TEST_F(UnlinkedGenerator, IsNotLinkedWhereTheChainWouldNotBeProven) {
  // GIVEN a frame that knows it, but was not called in the entry that runs
  const Address other = python.frame("other", 4, python.shim(Address{}));
  put_values(other, {generator});
  EXPECT_FALSE(is_proven(walk_with({raw(other)}).stop));
}

TEST_F(UnlinkedGenerator, AbsurdSizesOfFramesAreBounded) {
  python.memory.put(offset_by(python.code("work"), python.layout.generator.words), ~std::uint32_t{0});
  put_values(work, {});
  EXPECT_EQ(walk_with({raw(work)}).stop, WalkStop::kUnlinked);
}

}  // namespace
}  // namespace plimsoll::cpython
