// cpython/snapshot_test.cc: stacks that change while they are read, at every moment at which they can.
#include "cpython/snapshot.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "cpython/testing.h"

namespace plimsoll::cpython {
namespace {

using testing::DrawnInterpreter;

constexpr std::int64_t kAllTheTime = 1'000'000'000;

// A thread whose two innermost frames are those of left() and its leaf or, at the same addresses, of right() and its.
class AlternatingThread {
 public:
  explicit AlternatingThread(const Layout& layout) : python(layout) {
    main_ = python.frame("main", 0, python.shim(Address{}));
    caller_ = python.frame("left", 0, main_);
    leaf_ = python.frame("left_leaf", 0, caller_);
    for (const char* name : {"left", "left_leaf", "right", "right_leaf"}) python.code(name);
    tstate = python.thread_state(leaf_);
    show(Side::kLeft);
  }
  enum class Side { kLeft, kRight };
  void show(Side side) {
    const bool is_left = side == Side::kLeft;
    python.put_position(main_, "main", is_left ? 4 : 8);
    put(caller_, is_left ? "left" : "right", 12);
    put(leaf_, is_left ? "left_leaf" : "right_leaf", is_left ? 16 : 20);
  }

  [[nodiscard]] bool tells_side(Address at) const {
    const auto position = [&](Address frame) { return offset_by(frame, python.layout.frame.position); };
    const auto executable = [&](Address frame) { return offset_by(frame, python.layout.frame.executable); };
    return at == position(main_) || at == position(caller_) || at == position(leaf_) || at == executable(caller_) ||
           at == executable(leaf_);
  }

  DrawnInterpreter python;
  Address tstate;

 private:
  void put(Address frame, const std::string& name, std::int32_t position) {
    python.memory.put(offset_by(frame, python.layout.frame.executable), python.code(name));
    python.put_position(frame, name, position);
  }
  Address main_, caller_, leaf_;
};

// Reads the thread's memory; before the loads of the given numbers, the thread changes sides.
class WhileItRuns {
 public:
  WhileItRuns(AlternatingThread& thread, std::set<int> changes) : thread_(thread), changes_(std::move(changes)) {}

  template <typename Word>
  [[nodiscard]] bool load(Address at, Word& out) const {
    if (changes_.contains(++loads_)) {
      side_ =
          side_ == AlternatingThread::Side::kLeft ? AlternatingThread::Side::kRight : AlternatingThread::Side::kLeft;
      thread_.show(side_);
    }
    if (thread_.tells_side(at)) {
      if (first_telling_ == 0) first_telling_ = loads_;
      last_telling_ = loads_;
    }
    return thread_.python.memory.load(at, out);
  }
  [[nodiscard]] bool read(Address at, void* out, std::size_t size) const {
    return thread_.python.memory.read(at, out, size);
  }
  [[nodiscard]] int loads() const { return loads_; }
  // The first and the last load of a word that is another one on the other side.
  [[nodiscard]] int first_telling() const { return first_telling_; }
  [[nodiscard]] int last_telling() const { return last_telling_; }

 private:
  AlternatingThread& thread_;
  const std::set<int> changes_;
  mutable int loads_ = 0;
  mutable int first_telling_ = 0;
  mutable int last_telling_ = 0;
  mutable AlternatingThread::Side side_ = AlternatingThread::Side::kLeft;
};

// A snapshot, and what it found, as a drawing; empty if it is not proven.
struct Seen {
  std::string frames;
  int loads = 0;
  int first_telling = 0;
  int last_telling = 0;
  bool was_noted = false;
};

Seen look(AlternatingThread& thread, const std::set<int>& changes, std::int64_t ns_per_load = kAllTheTime,
          std::size_t log_size = 256) {
  thread.show(AlternatingThread::Side::kLeft);
  const WhileItRuns memory(thread, changes);
  std::vector<PyFrame> out(16);
  std::vector<LoggedLoad> log(log_size);
  Seen seen;
  const Snapshot snapshot = snapshot_thread(
      memory, thread.python.layout, DrawnInterpreter::kCodeType, thread.tstate, out, log,
      [&](const Walk&, const auto&) { seen.was_noted = true; }, ns_per_load);
  if (snapshot.is_proven) seen.frames = thread.python.text(std::span(out).first(snapshot.walk.count));
  seen.loads = memory.loads();
  seen.first_telling = memory.first_telling();
  seen.last_telling = memory.last_telling();
  return seen;
}

constexpr const char* kLeftStack = "left_leaf@16 left@12 main@4";
constexpr const char* kRightStack = "right_leaf@20 right@12 main@8";

class SnapshotOf : public ::testing::TestWithParam<Layout> {
 protected:
  AlternatingThread thread{GetParam()};
};

TEST_P(SnapshotOf, AThreadThatStandsStillIsItsStack) {
  const Seen seen = look(thread, {});
  EXPECT_EQ(seen.frames, kLeftStack);
  EXPECT_TRUE(seen.was_noted);
}

TEST_P(SnapshotOf, AChangeAtAnyMomentLeavesOneOfTheTwoStacksOrNone) {
  // GIVEN a thread that changes sides once, before each of the loads in turn; WHEN a snapshot is taken
  const int loads = look(thread, {}).loads;
  for (int at = 1; at <= loads; ++at) {
    const Seen seen = look(thread, {at});
    // THEN it is the stack from before, if nothing of it has been read after the change, or that from after it, if
    // nothing had been read; else nothing is proven
    const bool was_before = at > seen.last_telling;
    const bool was_after = at <= seen.first_telling;
    if (seen.frames.empty()) continue;
    EXPECT_TRUE(was_before || was_after) << at << " of " << loads;
    EXPECT_EQ(seen.frames, was_after ? kRightStack : kLeftStack);
  }
}

TEST_P(SnapshotOf, AChangeThereAndBackAtAnyTwoMomentsLeavesOneOfTheTwoStacksOrNone) {
  // GIVEN the same with two changes, so that what was read first may be there again at the end (not one load later: no
  // thread returns and calls again in a nanosecond)
  const int loads = look(thread, {}).loads;
  for (int there = 1; there <= loads; ++there)
    for (int back = there + 2; back <= loads; ++back) {
      const Seen seen = look(thread, {there, back});
      EXPECT_TRUE(seen.frames.empty() || seen.frames == kLeftStack || seen.frames == kRightStack)
          << seen.frames << " after changes at " << there << " and " << back;
    }
}

TEST_P(SnapshotOf, AReaderThatWasInterruptedBelievesNothing) {
  // GIVEN no time at all for the proof
  EXPECT_EQ(look(thread, {}, -kAllTheTime).frames, "");
}

TEST_P(SnapshotOf, AStackTooDeepForTheLogIsNotProven) { EXPECT_EQ(look(thread, {}, kAllTheTime, 5).frames, ""); }

TEST_P(SnapshotOf, AThreadWithoutPythonCodeHasAnEmptyStack) {
  // GIVEN a thread that runs no Python code
  const Address idle = thread.python.thread_state(Address{});
  std::vector<PyFrame> out(16);
  std::vector<LoggedLoad> log(64);
  const Snapshot snapshot = snapshot_thread(
      thread.python.memory, thread.python.layout, DrawnInterpreter::kCodeType, idle, out, log,
      [](const Walk&, const auto&) {}, kAllTheTime);
  // THEN that is what a snapshot says
  EXPECT_TRUE(snapshot.is_proven);
  EXPECT_EQ(snapshot.walk.count, 0U);
}

INSTANTIATE_TEST_SUITE_P(Versions, SnapshotOf, ::testing::ValuesIn(testing::all_layouts()),
                         [](const auto& of) { return testing::test_name(of.param); });

}  // namespace
}  // namespace plimsoll::cpython
