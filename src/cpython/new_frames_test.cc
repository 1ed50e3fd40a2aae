// cpython/new_frames_test.cc: frames that have run no instruction yet, of which CPython 3.12 may not have written who
// called them.
#include <gtest/gtest.h>

#include <vector>

#include "cpython/testing.h"
#include "cpython/unlinked.h"

namespace plimsoll::cpython {
namespace {

using testing::DrawnInterpreter;

// main, the first frame of its thread, which has resumed the generator `gen`.
class NewFrame : public ::testing::Test {
 protected:
  NewFrame() {
    for (const char* name : {"main", "gen", "new"})
      python.memory.put(offset_by(python.code(name), python.layout.generator.words), kFrameWords);
    for (const Address frame : {main, gen}) put_value(frame, Address{});
    python.put_return_offset(main, 5);
    python.memory.put(offset_by(tstate, python.layout.tstate.chunk), Address{});
  }

  // The only variable of a frame.
  void put_value(Address frame, Address value) {
    for (std::uint64_t i = 0; i < kFrameWords; ++i)
      python.memory.put(offset_by(frame, python.layout.generator.values + i * sizeof(Address)),
                        i == 0 ? value : Address{});
  }
  // A call of `function` that has run no instruction.
  Address called_by(Address previous) {
    const Address frame = python.frame("new", kBeforeFirst, previous);
    python.memory.put(offset_by(frame, python.layout.frame.function), function);
    return frame;
  }

  struct Seen {
    Walk walk;
    std::string frames;
  };
  Seen walk_in(Address entry, const std::vector<std::uint64_t>& registers = {}) {
    python.memory.put(offset_by(tstate, python.layout.tstate.current_frame), entry);
    std::vector<PyFrame> out(64);
    Seen seen;
    seen.walk = walk_thread(python.memory, python.layout, DrawnInterpreter::kCodeType, tstate, out);
    if (seen.walk.stop == WalkStop::kUnlinked && !registers.empty())
      seen.walk = walk_unlinked(python.memory, python.layout, DrawnInterpreter::kCodeType, tstate, registers, out);
    if (is_proven(seen.walk.stop)) seen.frames = python.text(std::span(out).first(seen.walk.count));
    return seen;
  }

  static constexpr std::uint32_t kFrameWords = 16;
  DrawnInterpreter python{layout_from_table({3, 12, 0}).value()};
  const Address main = python.frame("main", 2, python.shim(Address{}));
  const Address gen = python.frame("gen", 4, main, 1);
  const Address function = python.allocate();
  const Address tstate = python.allocate();
  const Address root = python.root_entry(tstate, Address{});
};

TEST_F(NewFrame, IsPartOfTheStackIfItsCallerCallsIt) {
  const Seen seen = walk_in(python.cframe(called_by(gen), root));
  EXPECT_EQ(seen.walk.stop, WalkStop::kComplete);
  EXPECT_EQ(seen.frames, "new@-2 gen@4 main@2");
}

TEST_F(NewFrame, WasNotCalledByWhoHasResumedAGenerator) {
  // GIVEN a call by the generator, at whose place there was one by main before, as that one's caller says still
  const Address entry = python.cframe(called_by(main), root);
  // THEN there is no stack
  EXPECT_EQ(walk_in(entry).walk.stop, WalkStop::kUnlinked);
  // but with a register that has the caller, which had the function among its values
  put_value(gen, function);
  EXPECT_EQ(walk_in(entry, {raw(main), raw(gen), 4711}).frames, "new@-2 gen@4 main@2");
  EXPECT_EQ(walk_in(entry, {raw(main), 4711}).walk.stop, WalkStop::kUnlinked);
}

TEST_F(NewFrame, WasNotEnteredFromCByWhatIsLeftOfAnEntry) {
  // GIVEN a call by main, at whose place there was one from C, with nothing around it
  python.put_return_offset(main, 0);
  put_value(main, function);
  const Address entry = python.cframe(called_by(python.shim(Address{})), root);
  EXPECT_EQ(walk_in(entry).walk.stop, WalkStop::kUnlinked);
  EXPECT_EQ(walk_in(entry, {raw(main)}).frames, "new@-2 main@2");
}

TEST_F(NewFrame, ThatMayHaveBeenEnteredElsewhereIsLeftOut) {
  // GIVEN a frame that C code has called, or not: what is left of another call looks the same
  const Address entry = python.cframe(called_by(python.shim(main)), python.cframe(main, root));
  const Seen seen = walk_in(entry);
  EXPECT_EQ(seen.walk.stop, WalkStop::kComplete);
  EXPECT_TRUE(seen.walk.leaf_skipped);
  EXPECT_EQ(seen.frames, "main@2");
}

TEST_F(NewFrame, MayBeTheFirstOneOfItsThread) {
  // GIVEN a frame at the lowest place that there is for one
  constexpr std::uint64_t kHead = 32;
  const Address first = called_by(python.shim(Address{}));
  const Address chunk{raw(first) - kHead};
  python.memory.put(chunk, Address{});
  python.memory.put(offset_by(tstate, python.layout.tstate.chunk), chunk);
  EXPECT_EQ(walk_in(python.cframe(first, root)).frames, "new@-2");
  // WHEN its chunk is not the lowest
  python.memory.put(chunk, Address{0x5000});
  EXPECT_EQ(walk_in(python.cframe(first, root)).walk.stop, WalkStop::kUnlinked);
}

}  // namespace
}  // namespace plimsoll::cpython
