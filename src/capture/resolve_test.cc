// capture/resolve_test.cc: addresses become names and lines, or nothing at all.
#include "capture/resolve.h"

#include <gtest/gtest.h>

#include <cstring>

#include "capture/testing.h"
#include "cpython/awaiting.h"
#include "memory/local.h"

namespace plimsoll::capture {
namespace {

using testing::FakeFunction;
using testing::later;
using Log = std::vector<std::string>;

class ResolverTest : public ::testing::Test {
 protected:
  ResolverTest() { EXPECT_TRUE(memory::FaultGuard::ensure_installed().ok()); }

  // A sample as the sampler would have taken it now, innermost frame first.
  RawSample raw_sample(const std::vector<cpython::PyFrame>& frames) {
    RawSample raw;
    raw.frame_count = static_cast<std::uint32_t>(frames.size());
    for (const cpython::PyFrame& frame : frames) registry.seen().mark(frame.code);
    raw.time_ns = later();
    return raw;
  }
  static cpython::PyFrame frame(const FakeFunction& function, std::int32_t position) {
    return {function.address(), position, 0};
  }
  bool resolve(Resolver& resolver, const std::vector<cpython::PyFrame>& frames) {
    return resolver.resolve(raw_sample(frames), frames);
  }

  CodeRegistry registry{testing::fake_layout()};
  testing::LoggingSink sink;
  FakeFunction main{"main", 1};
  FakeFunction work{"work", 20};
};

using Validated = ResolverTest;
using SafeMode = ResolverTest;

TEST_F(Validated, CodeIsAnnouncedOnceAndBeforeItsFirstUse) {
  Resolver resolver(testing::fake_layout(), registry, sink, Trust::kValidated);
  EXPECT_TRUE(resolve(resolver, {frame(work, 0), frame(main, 16)}));
  EXPECT_TRUE(resolve(resolver, {frame(main, 32)}));
  EXPECT_EQ(sink.log, (Log{"code 0 main", "code 1 work", "sample main:2 work:20", "sample main:3"}));
}

TEST_F(Validated, CodeIsAnnouncedAgainWhenTheSinkHasForgotten) {
  Resolver resolver(testing::fake_layout(), registry, sink, Trust::kValidated);
  EXPECT_TRUE(resolve(resolver, {frame(work, 0), frame(main, 16)}));
  ++sink.epoch;
  EXPECT_TRUE(resolve(resolver, {frame(main, 32)}));
  EXPECT_EQ(sink.log, (Log{"code 0 main", "code 1 work", "sample main:2 work:20", "code 0 main", "sample main:3"}));
}

TEST_F(Validated, TheInterpretersOwnFrameOfAClassThatIsCalledIsHidden) {
  FakeFunction cleanup{"__init__", 0, "__init__"};
  FakeFunction init{"C.__init__", 30};
  Resolver resolver(testing::fake_layout(), registry, sink, Trust::kValidated);
  EXPECT_TRUE(resolve(resolver, {frame(init, 0), frame(cleanup, 0), frame(main, 16)}));
  EXPECT_EQ(sink.log, (Log{"code 0 main", "code 2 C.__init__", "sample main:2 C.__init__:30"}));
}

TEST_F(Validated, PositionsBecomeLines) {
  Resolver resolver(testing::fake_layout(), registry, sink, Trust::kValidated);
  // Out of order and repeated, so that what is remembered is used, too.
  for (const std::int32_t position : {48, 0, 16, 18, 0, 48, -2, cpython::kNoPosition})
    EXPECT_TRUE(resolve(resolver, {frame(work, position)}));
  EXPECT_EQ(sink.log, (Log{"code 0 work", "sample work:23", "sample work:20", "sample work:21", "sample work:21",
                           "sample work:20", "sample work:23", "sample work:20", "sample work:20"}));
}

TEST_F(Validated, PassesOnWhatTheSamplerKnows) {
  Resolver resolver(testing::fake_layout(), registry, sink, Trust::kValidated);
  RawSample truncated = raw_sample({frame(work, 0)});
  truncated.stop = cpython::WalkStop::kTruncated;
  const cpython::PyFrame frames[] = {frame(work, 0)};
  EXPECT_TRUE(resolver.resolve(truncated, frames));
  RawSample native = raw_sample({});
  native.python = RawSample::Python::kNoState;
  EXPECT_TRUE(resolver.resolve(native, {}));
  EXPECT_TRUE(resolver.resolve(raw_sample({}), {}));
  EXPECT_EQ(sink.log, (Log{"code 0 work", "sample ... work:20", "native sample", "sample"}));
}

TEST_F(Validated, AWaitThatGoesOnKeepsItsStack) {
  Resolver resolver(testing::fake_layout(), registry, sink, Trust::kValidated);
  const cpython::PyFrame frames[] = {frame(work, 0), frame(main, 16)};
  const auto wait = [&](RawSample::Stack stack, std::int64_t weight_ns, std::span<const cpython::PyFrame> on) {
    RawSample raw = raw_sample({on.begin(), on.end()});
    raw.thread = ThreadSerial{3};
    raw.activity = Activity::kSleep;
    raw.weight_ns = weight_ns;
    raw.stack = stack;
    return resolver.resolve(raw, on);
  };
  // GIVEN a wait, and samples of running code in between
  EXPECT_TRUE(wait(RawSample::Stack::kHere, 5, frames));
  EXPECT_TRUE(resolve(resolver, {frame(main, 32)}));
  // WHEN its code object dies, everything is forgotten, and the wait goes on THEN it is on the same stack
  registry.on_destroy(work.address());
  work.become("successor", 70);
  EXPECT_TRUE(resolve(resolver, {frame(work, 0)}));
  resolver.forget_deaths_before(later());
  ++sink.epoch;
  EXPECT_TRUE(wait(RawSample::Stack::kSame, 7, {}));
  EXPECT_TRUE(wait(RawSample::Stack::kSameLast, 0, {}));
  EXPECT_EQ(sink.log,
            (Log{"code 0 main", "code 1 work", "sample sleep 5 main:2 work:20", "sample main:3", "code 2 successor",
                 "sample successor:70", "forget 1", "code 0 main", "code 1 work", "sample sleep 7 main:2 work:20"}));
  // AND after the last one there is none to go on with
  EXPECT_FALSE(wait(RawSample::Stack::kSame, 9, {}));
}

TEST_F(Validated, AWaitKeepsItsNativeFrames) {
  // GIVEN a wait in machine code of no file, called by Python code that machine code entered
  Resolver resolver(testing::fake_layout(), registry, sink, Trust::kValidated);
  const native::Modules modules;
  resolver.use_modules(modules);
  const native::NativeFrame machine[] = {{Address{0x1000}, Address{0x7010}}, {Address{0x2000}, Address{0x7020}}};
  RawNative head;
  head.stack_pointer = Address{0x7000};
  head.count = 2;
  const cpython::PyFrame frames[] = {frame(work, 0), {Address{0x7018}, cpython::kEntryMark, 0}};
  RawSample raw = raw_sample({frames[0]});
  raw.activity = Activity::kSleep;
  raw.weight_ns = 5;
  bool is_matched = false;
  EXPECT_TRUE(resolver.resolve_native(raw, {head, machine}, frames, {}, is_matched));
  EXPECT_TRUE(is_matched);
  // WHEN everything is forgotten and the wait goes on
  ++sink.epoch;
  raw.stack = RawSample::Stack::kSame;
  EXPECT_TRUE(resolver.resolve(raw, {}));
  // THEN it is on the same stack
  const std::string code = "code 0 work";
  const std::string native = "native 1 machine code of no file";
  const std::string sample = "sample sleep 5 work:20 machine code of no file:0";
  EXPECT_EQ(sink.log, (Log{code, native, sample, code, native, sample}));
}

// A frame list that grows as cpython/awaiting.h writes it: frames, then the mark of their task with its name.
class TaskFrames {
 public:
  void add(const cpython::PyFrame& frame) { frames.push_back(frame); }
  void mark(std::string_view name, const FakeFunction* coroutine) {
    const std::size_t first = frames.size();
    frames.resize(first + cpython::name_slots(name.size()));
    if (!name.empty()) std::memcpy(&frames[first], name.data(), name.size());
    frames.push_back({coroutine == nullptr ? Address{} : coroutine->address(), cpython::kTaskMark,
                      static_cast<std::uint32_t>(name.size())});
  }
  std::vector<cpython::PyFrame> frames;
};

TEST_F(Validated, TasksHaveTheirNamesElseThoseOfTheirCoroutines) {
  Resolver resolver(testing::fake_layout(), registry, sink, Trust::kValidated);
  TaskFrames stack;
  stack.add(frame(work, 0));
  stack.mark("a name of more than one slot", &work);
  stack.add(frame(main, 16));
  stack.mark("Task-12", &main);
  stack.mark("", nullptr);
  RawSample raw;
  raw.time_ns = later();
  EXPECT_TRUE(resolver.resolve(raw, stack.frames));
  EXPECT_TRUE(resolver.resolve(raw, stack.frames));
  const std::string sample =
      "sample [several tasks]:0 [task main]:0 main:2 [task a name of more than one slot]:0 work:20";
  ASSERT_EQ(sink.log.size(), 7U);
  EXPECT_EQ(sink.log[5], sample);
  EXPECT_EQ(sink.log[6], sample);
  // A name that is longer than its record is none.
  stack.frames.erase(stack.frames.begin(), stack.frames.begin() + 2);
  EXPECT_FALSE(resolver.resolve(raw, stack.frames));
}

TEST_F(Validated, MachineCodeBeyondATasksStepIsLeftOut) {
  // GIVEN a step that machine code entered, itself called by machine code
  Resolver resolver(testing::fake_layout(), registry, sink, Trust::kValidated);
  const native::Modules modules;
  resolver.use_modules(modules);
  const native::NativeFrame machine[] = {
      {Address{0x1000}, Address{0x7010}}, {Address{0x2000}, Address{0x7020}}, {Address{0x3000}, Address{0x7030}}};
  RawNative head;
  head.stack_pointer = Address{0x7000};
  head.count = 3;
  const cpython::PyFrame frames[] = {frame(work, 0), {Address{0x7018}, cpython::kEntryMark, 0}};
  TaskFrames awaiting;
  awaiting.mark("fetch", &work);
  RawSample raw = raw_sample({frames[0]});
  bool is_matched = false;
  // WHEN those who await it follow THEN its callers in machine code do not
  EXPECT_TRUE(resolver.resolve_native(raw, {head, machine}, frames, awaiting.frames, is_matched));
  EXPECT_TRUE(is_matched);
  EXPECT_EQ(sink.log.back(), "sample [task fetch]:0 work:20 machine code of no file:0");
}

TEST_F(Validated, AWaitWhoseStackIsNotBelievedDoesNotGoOnWithAnother) {
  Resolver resolver(testing::fake_layout(), registry, sink, Trust::kValidated);
  RawSample raw = raw_sample({frame(work, 0)});
  raw.activity = Activity::kIo;
  raw.weight_ns = 1;
  const cpython::PyFrame good[] = {frame(work, 0)};
  const cpython::PyFrame bad[] = {{Address{8}, 0, 0}};
  EXPECT_TRUE(resolver.resolve(raw, good));
  EXPECT_FALSE(resolver.resolve(raw, bad));
  raw.stack = RawSample::Stack::kSame;
  EXPECT_FALSE(resolver.resolve(raw, {}));
}

TEST_F(Validated, AStackWithOneUnreadableCodeObjectIsNoStack) {
  Resolver resolver(testing::fake_layout(), registry, sink, Trust::kValidated);
  EXPECT_FALSE(resolve(resolver, {frame(work, 0), {Address{8}, 0, 0}, frame(main, 0)}));
  EXPECT_EQ(sink.log, Log{"code 0 main"}) << "no part of the stack is passed on";
}

TEST_F(Validated, EachSampleOfAReusedAddressHasItsOwnName) {
  Resolver resolver(testing::fake_layout(), registry, sink, Trust::kValidated);
  const std::vector<cpython::PyFrame> frames{frame(work, 0)};
  const RawSample of_work = raw_sample(frames);
  registry.on_destroy(work.address());
  work.become("successor", 70);
  const RawSample of_successor = raw_sample(frames);
  EXPECT_TRUE(resolver.resolve(of_work, frames));
  EXPECT_TRUE(resolver.resolve(of_successor, frames));
  EXPECT_EQ(sink.log, (Log{"code 0 work", "sample work:20", "code 1 successor", "sample successor:70"}));
}

TEST_F(Validated, ADeadObjectIsForgottenOnceItsSamplesAreDone) {
  Resolver resolver(testing::fake_layout(), registry, sink, Trust::kValidated);
  EXPECT_TRUE(resolve(resolver, {frame(work, 0)}));
  registry.on_destroy(work.address());
  work.become("successor");
  EXPECT_TRUE(resolve(resolver, {frame(work, 0)}));
  resolver.forget_deaths_before(later());
  EXPECT_EQ(sink.log.back(), "forget 0");
  // The living one is not forgotten.
  EXPECT_TRUE(resolve(resolver, {frame(work, 0)}));
  EXPECT_EQ(sink.log.back(), "sample successor:10");
}

TEST_F(SafeMode, BelievesOnlyWhatWasKnownBeforeTheSample) {
  Resolver resolver(testing::fake_layout(), registry, sink, Trust::kKnown);
  // GIVEN a code object at first sight
  EXPECT_FALSE(resolve(resolver, {frame(work, 0)}));
  // WHEN it is met again THEN it is known
  EXPECT_TRUE(resolve(resolver, {frame(work, 16)}));
  EXPECT_EQ(sink.log, (Log{"code 0 work", "sample work:21"}));
}

TEST_F(SafeMode, OneNewFrameMakesTheWholeStackNew) {
  Resolver resolver(testing::fake_layout(), registry, sink, Trust::kKnown);
  EXPECT_FALSE(resolve(resolver, {frame(main, 0)}));
  EXPECT_TRUE(resolve(resolver, {frame(main, 0)}));
  EXPECT_FALSE(resolve(resolver, {frame(work, 0), frame(main, 0)}));
  EXPECT_TRUE(resolve(resolver, {frame(work, 0), frame(main, 0)}));
}

TEST_F(SafeMode, ASampleTakenBeforeTheFirstSightIsNotBelievedAfterIt) {
  Resolver resolver(testing::fake_layout(), registry, sink, Trust::kKnown);
  const std::vector<cpython::PyFrame> frames{frame(work, 0)};
  const RawSample early = raw_sample(frames);
  EXPECT_FALSE(resolve(resolver, frames));
  EXPECT_FALSE(resolver.resolve(early, frames));
}

TEST_F(SafeMode, AWaitIsBelievedFromWhenItsCodeIsKnown) {
  Resolver resolver(testing::fake_layout(), registry, sink, Trust::kKnown);
  const cpython::PyFrame frames[] = {frame(work, 0)};
  const auto wait = [&](RawSample::Stack stack, std::int64_t weight_ns, std::span<const cpython::PyFrame> on) {
    RawSample raw = raw_sample({on.begin(), on.end()});
    raw.activity = Activity::kSleep;
    raw.weight_ns = weight_ns;
    raw.stack = stack;
    return raw;
  };
  // GIVEN a wait on code at first sight, and one more sample of it from before that
  const RawSample first = wait(RawSample::Stack::kHere, 5, frames);
  const RawSample early = wait(RawSample::Stack::kSame, 6, {});
  EXPECT_FALSE(resolver.resolve(first, frames));
  EXPECT_FALSE(resolver.resolve(early, {}));
  // WHEN it goes on THEN it is believed: its code was known before
  EXPECT_TRUE(resolver.resolve(wait(RawSample::Stack::kSame, 7, {}), {}));
  EXPECT_EQ(sink.log, (Log{"code 0 work", "sample sleep 7 work:20"}));
  // AND of a stack that cannot be read nothing follows
  registry.on_destroy(work.address());
  work.vanish();
  EXPECT_FALSE(resolver.resolve(wait(RawSample::Stack::kHere, 8, frames), frames));
  EXPECT_FALSE(resolver.resolve(wait(RawSample::Stack::kSame, 9, {}), {}));
}

TEST_F(SafeMode, WhatIsReadOnlyWhenItDiesWasNeverKnown) {
  Resolver resolver(testing::fake_layout(), registry, sink, Trust::kKnown);
  const std::vector<cpython::PyFrame> frames{frame(work, 0)};
  const RawSample early = raw_sample(frames);
  registry.on_destroy(work.address());
  work.vanish();
  EXPECT_FALSE(resolver.resolve(early, frames));
}

}  // namespace
}  // namespace plimsoll::capture
