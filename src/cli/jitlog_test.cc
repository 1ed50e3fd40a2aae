// cli/jitlog_test.cc: `plimsoll jitlog` from the words to the page.
#include "cli/commands.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "cli/exit_code.h"
#include "cli/testing.h"
#include "formats/input.h"
#include "jitlog/reader.h"
#include "jitlog/testing.h"
#include "profile/plim_writer.h"
#include "profile/testing.h"

namespace plimsoll::cli {
namespace {

using testing::FakeConsole;

int run(FakeConsole& console, std::vector<std::string> words) {
  words.insert(words.begin(), "jitlog");
  return testing::run_words(make_jitlog(), std::move(words), console);
}

FakeConsole with_log() {
  FakeConsole console;
  console.bytes["app.jit"] = jitlog::testing::loop_and_bridge(4, false);
  return console;
}

TEST(Jitlog, ListsTracesByTheirRuns) {
  FakeConsole console = with_log();
  EXPECT_EQ(run(console, {"app.jit"}), kFine);
  EXPECT_TRUE(console.out.starts_with("1 loop and 1 bridge · jitlog version 4 · x86_64\n")) << console.out;
  const std::size_t loop = console.out.find("5,000");
  const std::size_t bridge = console.out.find("from trace 7");
  ASSERT_NE(loop, std::string::npos) << console.out;
  ASSERT_NE(bridge, std::string::npos) << console.out;
  EXPECT_LT(loop, bridge);
  EXPECT_NE(console.out.find("lib/app.py:3"), std::string::npos) << console.out;
}

TEST(Jitlog, TellsOfATraceThatTheLogMayEndWithin) {
  FakeConsole console = with_log();
  console.bytes["app.jit"].resize(console.bytes["app.jit"].size() - 3);
  EXPECT_EQ(run(console, {"app.jit", "--trace", "7"}), kFine);
  EXPECT_NE(console.out.find("incomplete: the log ends within a record"), std::string::npos) << console.out;
}

TEST(Jitlog, ANegativeLimitIsNoLimitAtAllButAMistake) {
  FakeConsole console = with_log();
  EXPECT_EQ(run(console, {"app.jit", "--limit", "-1"}), kUsage);
  EXPECT_NE(console.err.find("--limit: -1 is less than 0"), std::string::npos) << console.err;
}

TEST(Jitlog, ShowsATraceBetweenTheLinesOfTheProgram) {
  FakeConsole console = with_log();
  EXPECT_EQ(run(console, {"app.jit", "--trace", "7", "--stage", "noopt,asm"}), kFine);
  EXPECT_NE(console.out.find("noopt: 3 operations on i0,i1\n"
                             "schedule  lib/app.py:3  0 \n"
                             "    i2 = int_add_ovf(i0,i1)\n"
                             "run  lib/app.py:5  0 \n"
                             "    guard_no_overflow(i2)  <Guard, of 9>  -> bridge 8, 42 times\n"),
            std::string::npos)
      << console.out;
  EXPECT_NE(console.out.find("asm: 3 operations on i0,i1\n    label(i0,i1)  <Loop7>  5,000 times\n"), std::string::npos)
      << console.out;
}

TEST(Jitlog, FindsTheLogThatIsAttachedToAProfile) {
  FakeConsole console = with_log();
  profile::Profile profile = profile::testing::draw_profile("main  1");
  const auto bytes_of = [](const profile::Profile& one) {
    profile::PlimEncoder encoder(1);
    return profile::PlimEncoder::file_header() + encoder.encode(one);
  };
  console.bytes["bare.plim"] = bytes_of(profile);
  profile.attachments.push_back({"jitlog", console.bytes["app.jit"]});
  console.bytes["app.plim"] = bytes_of(profile);
  EXPECT_EQ(run(console, {"app.plim"}), kFine);
  EXPECT_TRUE(console.out.starts_with("1 loop and 1 bridge")) << console.out;
  console.out.clear();
  EXPECT_EQ(run(console, {"app.plim", "--raw"}), kFine);
  EXPECT_EQ(console.out, console.bytes["app.jit"]);
  EXPECT_EQ(run(console, {"bare.plim"}), kBadInput);
  EXPECT_NE(console.err.find("the profile has no jitlog"), std::string::npos) << console.err;
}

TEST(Jitlog, PicksByAQueryAndPointsAtItsMistakes) {
  FakeConsole console = with_log();
  EXPECT_EQ(run(console, {"app.jit", "-q", "bridges & count > 1"}), kFine);
  EXPECT_TRUE(console.out.starts_with("0 loops and 1 bridge ")) << console.out;
  EXPECT_EQ(run(console, {"app.jit", "-q", "bridges &"}), kUsage);
  EXPECT_NE(console.err.find("column 10"), std::string::npos) << console.err;
  EXPECT_EQ(run(console, {"app.jit", "--stage", "op"}), kUsage);
  EXPECT_EQ(run(console, {"app.jit", "--trace", "9"}), kUsage);
}

TEST(Jitlog, RefusesWhatMakesNoSense) {
  FakeConsole console = with_log();
  EXPECT_EQ(run(console, {"app.jit", "--trace", "-1"}), kUsage);
  EXPECT_NE(console.err.find("there is no trace -1 in app.jit"), std::string::npos) << console.err;
  EXPECT_EQ(run(console, {"app.jit", "--stage", "opt"}), kUsage);
  EXPECT_NE(console.err.find("--trace ID"), std::string::npos) << console.err;
  console.err.clear();
  EXPECT_EQ(run(console, {"app.jit", "-q", "loops)"}), kUsage);
  EXPECT_NE(console.err.find("as none is open, found"), std::string::npos) << console.err;
}

TEST(Jitlog, WritesJson) {
  FakeConsole console = with_log();
  EXPECT_EQ(run(console, {"app.jit", "--trace", "7", "--json"}), kFine);
  const boost::json::value root = boost::json::parse(console.out);
  const boost::json::value& operation = root.at_pointer("/traces/0/stages/asm/operations/1");
  EXPECT_EQ(operation.at("name").as_string(), "int_add_ovf");
  EXPECT_EQ(operation.at("code").as_string(), "4801d8");
  EXPECT_EQ(root.at_pointer("/traces/0/stages/asm/operations/2/bridge").as_int64(), 8);
  // AND of all traces, with the numbers of their operations or with these
  for (const bool has_operations : {false, true}) {
    FakeConsole all = with_log();
    std::vector<std::string> words{"app.jit", "--json"};
    if (has_operations) words.emplace_back("--operations");
    EXPECT_EQ(run(all, words), kFine);
    const boost::json::value list = boost::json::parse(all.out);
    EXPECT_GT(list.at("traces").as_array().size(), 1U);
    EXPECT_EQ(list.at_pointer("/traces/0/stages/asm/operations").is_array(), has_operations);
  }
}

TEST(Jitlog, ReadsWhatPyPyRecorded) {
  // GIVEN logs of two versions WHEN they are read THEN they have as many traces, operations, places and stitches as
  // other readers count
  struct Truth {
    std::string file;
    std::size_t loops, bridges, operations, places, names, stitches, redirects;
  };
  for (const Truth& truth : {Truth{"log-test-1-v1.jlog.zip", 5, 1, 18, 17, 8, 1, 0},
                             Truth{"pypy-pystone.prof.jit.gz", 6, 21, 18307, 3058, 224, 14, 1}}) {
    SCOPED_TRACE(truth.file);
    const std::string bytes =
        formats::read_unpacked_file(std::string(PLIMSOLL_TEST_DATA) + "/jitlog/" + truth.file).take().bytes;
    const jitlog::Forest forest = jitlog::read(bytes).take();
    EXPECT_EQ(forest.problem, "");
    std::size_t loops = 0, operations = 0, places = 0;
    for (const jitlog::Trace& trace : forest.traces) {
      loops += trace.kind == jitlog::Trace::Kind::kLoop ? 1U : 0U;
      for (const jitlog::Stage& stage : trace.stages) {
        operations += stage.operations.size();
        places += stage.merge_points.size();
      }
    }
    EXPECT_EQ(loops, truth.loops);
    EXPECT_EQ(forest.traces.size() - loops, truth.bridges);
    EXPECT_EQ(operations, truth.operations);
    EXPECT_EQ(places, truth.places);
    EXPECT_EQ(forest.names.size(), truth.names);
    EXPECT_EQ(forest.stitches.size(), truth.stitches);
    EXPECT_EQ(forest.redirects.size(), truth.redirects);
  }
}

}  // namespace
}  // namespace plimsoll::cli
