// jitlog/reader_test.cc: logs of all versions and word sizes.
#include "jitlog/reader.h"

#include <gtest/gtest.h>

#include "jitlog/testing.h"

namespace plimsoll::jitlog {
namespace {

Forest forest_of(std::string_view bytes) {
  Result<Forest> forest = read(bytes);
  EXPECT_TRUE(forest.ok()) << forest.error().message;
  return forest.ok() ? forest.take() : Forest{};
}

TEST(JitlogReader, ReadsAllVersionsAndWordSizes) {
  for (std::uint16_t version = 1; version <= 4; ++version) {
    for (const bool is_32bit : {false, true}) {
      SCOPED_TRACE(std::to_string(version) + (is_32bit ? " of 32 bits" : " of 64 bits"));
      // GIVEN a loop and the bridge of its guard WHEN the log is read
      const std::string bytes = testing::loop_and_bridge(version, is_32bit);
      const Forest forest = forest_of(bytes);
      // THEN operations, places, counts and links are those of the log
      EXPECT_EQ(forest.problem, "");
      ASSERT_EQ(forest.traces.size(), 2U);
      const Trace& loop = forest.traces[0];
      const Trace& bridge = forest.traces[1];
      EXPECT_EQ(loop.driver, version >= 2 ? "pypyjit" : "");
      EXPECT_EQ(loop.entries, 11U);
      EXPECT_EQ(loop.runs(), 5000U);
      EXPECT_EQ(bridge.kind, Trace::Kind::kBridge);
      EXPECT_EQ(bridge.runs(), 42U);
      EXPECT_EQ(bridge.parent, TraceIndex{0});
      EXPECT_EQ(forest.bridge_of(0x90), TraceIndex{1});
      EXPECT_EQ(forest.bridge_of(0x91), std::nullopt);

      const Stage& recorded = loop.stage(StageKind::kRecorded);
      ASSERT_EQ(recorded.operations.size(), 3U);
      EXPECT_EQ(forest.name_of(recorded.operations[0]), "int_add_ovf");
      EXPECT_EQ(recorded.operations[0].result, "i2");
      EXPECT_EQ(recorded.operations[0].arguments, "i0,i1");
      EXPECT_EQ(recorded.operations[0].fail_arguments, version >= 2 ? "i1" : "");
      EXPECT_EQ(recorded.operations[1].descriptor, "<Guard, of 9>");
      EXPECT_EQ(recorded.operations[1].arguments, "i2");
      EXPECT_EQ(recorded.operations[2].arguments, "i2,i1");
      ASSERT_EQ(recorded.merge_points.size(), 2U);
      EXPECT_EQ(recorded.merge_points[0].function, "schedule");
      EXPECT_EQ(recorded.merge_points[1].file, "lib/app.py");
      EXPECT_EQ(recorded.merge_points[1].function, "run");
      EXPECT_EQ(recorded.merge_points[1].line, 5U);
      EXPECT_EQ(recorded.merge_points[1].before, 1U);
      EXPECT_EQ(loop.stage(StageKind::kAssembled).operations[1].code, "\x48\x01\xd8");
      EXPECT_EQ(loop.code_start, 0x1000U);
      EXPECT_TRUE(loop.stage(StageKind::kOptimised).operations.empty());
    }
  }
}

TEST(JitlogReader, ALoopThatTheLogDoesNotStartIsATraceOfItsOwn) {
  // GIVEN a loop, and one that PyPy has not unrolled, of which it logs the stages only, by the id of the last trace;
  // likewise behind a bridge that was given up
  testing::LogWriter log(4, false);
  log.names({{1, "label"}, {2, "int_add"}});
  log.start(1, "loop", 0, "").stage(0x17, 1).operation(2, "i2,i0,i1").stage(0x17, 1).operation(2, "i3,i2,i1");
  log.stage(0x19, 1).operation(1, "?,<Loop1>", 0x70).code_address(0x1000, 0x1100);
  log.stage(0x17, 1).operation(2, "i2,i0,i1").stage(0x19, 1).operation(1, "?,<Loop2>", 0x80);
  log.code_address(0x2000, 0x2100);
  log.start(2, "bridge", 0x90, "pypyjit").stage(0x17, 2).abort(2).stage(0x17, 2).operation(2, "i2,i0,i1");
  log.stage(0x19, 2).operation(1, "?,<Loop3>", 0xa0).code_address(0x3000, 0x3100);
  log.counter(1, 'e', 5).counter(0x70, 'l', 50).counter(1, 'e', 7).counter(0x80, 'l', 70).counter(2, 'e', 9);
  // WHEN the log is read
  const Forest forest = forest_of(log.bytes());
  // THEN each has its operations, its code and its counts, and an id that no other has
  ASSERT_EQ(forest.traces.size(), 4U);
  const Trace &loop = forest.traces[0], &second = forest.traces[1], &bridge = forest.traces[2];
  EXPECT_EQ(loop.stage(StageKind::kRecorded).operations.size(), 2U);
  EXPECT_EQ(loop.code_start, 0x1000U);
  EXPECT_EQ(loop.entries, 5U);
  EXPECT_EQ(loop.runs(), 50U);
  EXPECT_EQ(second.stage(StageKind::kRecorded).operations.size(), 1U);
  EXPECT_EQ(second.code_start, 0x2000U);
  EXPECT_EQ(second.entries, 7U);
  EXPECT_EQ(second.runs(), 70U);
  EXPECT_TRUE(bridge.is_aborted);
  EXPECT_EQ(bridge.entries, 0U);
  EXPECT_EQ(forest.traces[3].kind, Trace::Kind::kLoop);
  EXPECT_FALSE(forest.traces[3].is_aborted);
  EXPECT_EQ(forest.traces[3].entries, 9U);
  for (TraceIndex index = 0; index < 4; ++index) EXPECT_EQ(forest.by_id.at(forest.traces[index].id), index);
  EXPECT_EQ(loop.id, 1U);
  EXPECT_EQ(bridge.id, 2U);
}

TEST(JitlogReader, CodeBehind64KilobytesIsWhereItIs) {
  // GIVEN machine code of which the log has the lower 16 bits of the offsets only WHEN it is read
  testing::LogWriter log(4, false);
  log.names({{2, "int_add"}}).start(1, "loop", 0, "").stage(0x19, 1);
  for (const unsigned offset : {0x20U, 0x7000U, 0xe000U, 0xfff0U, 0x10U, 0x10U})
    log.operation(2, "i2,i0,i1").code(offset, "\x90");
  const Forest forest = forest_of(log.bytes());
  // THEN those behind the first 64 kB are there
  std::vector<std::uint32_t> offsets;
  for (const Operation& one : forest.traces[0].stage(StageKind::kAssembled).operations)
    offsets.push_back(one.code_offset);
  EXPECT_EQ(offsets, (std::vector<std::uint32_t>{0x20, 0x7000, 0xe000, 0xfff0, 0x10010, 0x10010}));
}

TEST(JitlogReader, ByteCodeOfNoLineHasNone) {
  // GIVEN a place on line -1, as PyPy 3.11 has them WHEN it is read THEN it is on no line
  testing::LogWriter log(4, false);
  log.start(1, "loop", 0, "").stage(0x17, 1).declare_places().place("app.py", ~std::uint64_t{0}, "run");
  const Forest forest = forest_of(log.bytes());
  ASSERT_NE(forest.traces[0].first_place(), nullptr);
  EXPECT_EQ(forest.traces[0].first_place()->line, 0U);
}

TEST(JitlogReader, AppendsTheRoundsOfAStage) {
  // GIVEN the same stage twice, as loops have it behind their first round WHEN it is read THEN it is one
  testing::LogWriter log(4, false);
  log.names({{2, "int_add"}}).start(7, "loop", 0, "").stage(0x18, 7).arguments("i0").operation(2, "i1,i0,i0");
  log.stage(0x18, 7).arguments("i5").operation(2, "i2,i0,i0").abort(7);
  const Forest forest = forest_of(log.bytes());
  EXPECT_EQ(forest.traces[0].stage(StageKind::kOptimised).operations.size(), 2U);
  EXPECT_EQ(forest.traces[0].stage(StageKind::kOptimised).arguments, "i0");
  EXPECT_TRUE(forest.traces[0].is_aborted);
}

TEST(JitlogReader, KeepsWhatComesBeforeACutAtAnyByte) {
  // GIVEN a log WHEN it is cut anywhere behind its header THEN what came before stays, never less than before
  const std::string whole = testing::loop_and_bridge(4, false);
  std::size_t last = 0;
  for (std::size_t size = 14; size < whole.size(); ++size) {
    const Forest forest = forest_of(std::string_view(whole).substr(0, size));
    std::size_t operations = 0;
    for (const Trace& trace : forest.traces)
      for (const Stage& stage : trace.stages) operations += stage.operations.size();
    EXPECT_GE(operations, last) << size;
    last = operations;
  }
  EXPECT_EQ(last, 7U);
}

TEST(JitlogReader, TellsWhyItStopped) {
  // GIVEN a byte that is no marker, an operation outside of a trace, a stage of another trace WHEN they are met THEN
  // the problem and its place are told
  testing::LogWriter bad(4, false);
  bad.number(0x40, 1);
  EXPECT_EQ(forest_of(bad.bytes()).problem, "bytes that make no sense at byte 14");
  testing::LogWriter early(4, false);
  early.operation(2, "i0,i1");
  EXPECT_EQ(forest_of(early.bytes()).problem, "bytes that make no sense at byte 14");
  testing::LogWriter other(4, false);
  other.start(7, "loop", 0, "").stage(0x17, 8);
  EXPECT_NE(forest_of(other.bytes()).problem, "");
}

TEST(JitlogReader, NoTextIsRepeatedWithoutEnd) {
  // GIVEN a log in which a name, a line and a file of 100 kB each are told of once, and then used by short records
  const std::string text(100'000, 'x');
  testing::LogWriter log(4, false);
  log.names({{1, text}}).number(0x22, 1).text("app.py").number(1, 2).number(3, 2).number(0, 1).text(text);
  log.start(7, "loop", 0, "").stage(0x17, 7).declare_places().operation(1, "?,i2").prefix(0, text);
  for (int i = 0; i < 1000; ++i) log.place("=", 3, "=");
  // WHEN it is read THEN the texts are cut, and there is an end where places take many times as much as the log
  const Forest forest = forest_of(log.bytes());
  EXPECT_LE(forest.names.at(1).size(), 200U);
  EXPECT_LE(forest.sources.at({"app.py", 3}).size(), 1000U);
  EXPECT_LT(forest.traces[0].stages[0].merge_points.size(), 300U);
  EXPECT_NE(forest.problem, "");
}

TEST(JitlogReader, NoTextOfAnUnknownMeaningIsRepeatedWithoutEndEither) {
  // GIVEN a text of 100 kB that is nothing that we know of a place, and 10,000 places of two bytes that have it
  testing::LogWriter log(4, false);
  log.start(7, "loop", 0, "").stage(0x17, 7).number(0x1d, 1).number(1, 2).number(99, 1).number('s', 1);
  log.prefix(0, std::string(100'000, 'x'));
  for (int i = 0; i < 10'000; ++i) log.number(0x1f, 1).number(0xef, 1);
  // WHEN it is read THEN there is an end where the text has been looked at for many times the size of the log
  const Forest forest = forest_of(log.bytes());
  EXPECT_LT(forest.traces[0].stages[0].merge_points.size(), 300U);
  EXPECT_NE(forest.problem, "");
}

TEST(JitlogReader, ATraceHasNoMoreMachineCodeThanCanBeShown) {
  // GIVEN a trace of usual size, and one with more machine code than any has WHEN they are read THEN that is told
  testing::LogWriter log(4, false);
  log.start(7, "loop", 0, "").stage(0x19, 7).operation(1, "?,i2").code(0, std::string(1'000'000, '\x90'));
  EXPECT_EQ(forest_of(log.bytes()).problem, "");
  log.start(8, "loop", 0, "").stage(0x19, 8);
  for (int i = 0; i < 5; ++i) log.operation(1, "?,i2").code(0, std::string(1'000'000, '\x90'));
  const Forest forest = forest_of(log.bytes());
  EXPECT_NE(forest.problem.find("make no sense"), std::string::npos) << forest.problem;
  EXPECT_TRUE(forest.traces[1].stages[2].operations.back().code.empty());
}

TEST(JitlogReader, RefusesWhatIsNoLog) {
  for (const std::string_view bytes : {"", "\x1e", "\x1e\x04", "hello, world"}) EXPECT_FALSE(read(bytes).ok()) << bytes;
  EXPECT_TRUE(is_jitlog(testing::loop_and_bridge(4, false)));
  EXPECT_FALSE(is_jitlog("hello"));
}

}  // namespace
}  // namespace plimsoll::jitlog
