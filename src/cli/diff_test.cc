// cli/diff_test.cc: `plimsoll diff` from the words to the page and the exit code.
#include "cli/commands.h"

#include <gtest/gtest.h>

#include "cli/exit_code.h"
#include "cli/testing.h"
#include "profile/testing.h"

namespace plimsoll::cli {
namespace {

using testing::FakeConsole;

// load and parse below main, in so many samples of 10 ms.
profile::Profile drawn(int load, int parse) {
  std::string drawing;
  for (int i = 0; i < load; ++i) drawing += "main(/srv/app.py:1);load(/srv/app.py:12 def 10) 10\n";
  for (int i = 0; i < parse; ++i) drawing += "main(/srv/app.py:1);parse(/srv/app.py:22 def 20) 10\n";
  profile::Profile profile = profile::testing::draw_profile(drawing);
  profile.set_meta("rate_hz", "100");
  profile.set_meta("directory", "/srv");
  return profile;
}

class DiffCommand : public ::testing::Test {
 protected:
  DiffCommand() {
    console.files["before.plim"] = [] { return drawn(50, 50); };
    console.files["after.plim"] = [] { return drawn(52, 200); };
    console.files["empty.plim"] = [] { return drawn(0, 0); };
  }
  int run(std::vector<std::string> words) {
    words.insert(words.begin(), "diff");
    return testing::run_words(make_diff(), words, console);
  }
  FakeConsole console;
};

TEST_F(DiffCommand, ShowsWhatHasChangedAndCountsTheRest) {
  EXPECT_EQ(run({"before.plim", "after.plim"}), kFine);
  EXPECT_EQ(console.out, R"(before 1.00 s, after 2.52 s
+1.52 s (+152.0 %): beyond chance

change s       %  before s  after s  function  where
  +1.500  +300.0     0.500    2.000  parse     app.py:20

2 more have changed by no more than chance may (--all shows them)
)");
}

// A block below load, exact.
profile::Profile with_memory(std::uint64_t bytes) {
  profile::Profile profile = drawn(1, 0);
  profile.is_exact = profile.complete = true;
  profile::AllocationRow row;
  row.thread = ThreadId{0};
  row.stack = profile.samples.stack[0];
  row.size = bytes;
  profile.allocations.push_back(row);
  return profile;
}

TEST_F(DiffCommand, ComparesMemory) {
  // GIVEN recordings with allocations
  console.files["before.plim"] = [] { return with_memory(2'000'000); };
  console.files["after.plim"] = [] { return with_memory(3'000'000); };
  // WHEN what is alive is compared THEN it is by who allocated it, in bytes
  EXPECT_EQ(run({"before.plim", "after.plim", "--memory", "live"}), kFine);
  EXPECT_EQ(console.out, R"(before 2.00 MB, after 3.00 MB
+1.00 MB (+50.0 %)

change MB      %  before MB  after MB  function  where
   +1.000  +50.0      2.000     3.000  load      app.py:10

1 more have not changed (--all shows them)
)");
  // AND likewise as lines, as a tree, as JSON, and for the exit code
  console.out.clear();
  EXPECT_EQ(run({"before.plim", "after.plim", "lines", "--memory", "alloc", "--json"}), kFine);
  EXPECT_NE(
      console.out.find(R"("view":"lines","memory":"alloc","total":{"before_bytes":2000000,"after_bytes":3000000,)"),
      std::string::npos)
      << console.out;
  EXPECT_EQ(run({"before.plim", "after.plim", "tree", "--memory", "live", "--fail-over", "5"}), kFailed);
  EXPECT_NE(console.err.find("the memory has grown by 50.0 %"), std::string::npos) << console.err;
}

TEST_F(DiffCommand, SaysHowMemoryIsCompared) {
  // WHEN memory is asked for as a view, or where none was recorded, or with what is of time THEN an error says so
  EXPECT_EQ(run({"before.plim", "after.plim", "live"}), kUsage);
  EXPECT_NE(console.err.find("--memory live compares memory"), std::string::npos) << console.err;
  EXPECT_EQ(run({"before.plim", "after.plim", "--memory", "live"}), kUsage);
  EXPECT_NE(console.err.find("before.plim holds no allocations: record them with"), std::string::npos) << console.err;
  console.files["exact.plim"] = [] { return with_memory(2'000'000); };
  console.files["samples.plim"] = [] {
    profile::Profile profile = with_memory(2'000'000);
    profile.is_exact = false;
    profile.allocation_distance = 512'000;
    return profile;
  };
  EXPECT_EQ(run({"exact.plim", "samples.plim", "--memory", "live"}), kUsage);
  EXPECT_NE(console.err.find("exact.plim is of all allocations, and samples.plim of samples of them, one in 512 kB"),
            std::string::npos)
      << console.err;
  EXPECT_EQ(run({"before.plim", "after.plim", "--memory", "live", "--cpu"}), kUsage);
  EXPECT_EQ(run({"before.plim", "after.plim", "--memory", "lve"}), kUsage);
  EXPECT_NE(console.err.find("did you mean \"live\"?"), std::string::npos) << console.err;
}

TEST_F(DiffCommand, ShowsTheTree) {
  EXPECT_EQ(run({"before.plim", "after.plim", "tree"}), kFine);
  EXPECT_NE(console.out.find("  +1.520  +152.0     1.000    2.520  main"), std::string::npos) << console.out;
  EXPECT_NE(console.out.find("  +1.500  +300.0     0.500    2.000    parse"), std::string::npos) << console.out;
  EXPECT_EQ(console.out.find("load"), std::string::npos) << console.out;
}

TEST_F(DiffCommand, ShowsLinesAndAll) {
  EXPECT_EQ(run({"before.plim", "after.plim", "lines", "--all"}), kFine);
  EXPECT_NE(console.out.find("app.py:12"), std::string::npos) << console.out;
}

TEST_F(DiffCommand, ComparesAStretchOfEach) {
  // GIVEN programs that start alike, with a sample at each 10 ms, and one that then goes on for longer
  const auto run_of = [](int work) {
    profile::Profile profile = drawn(50, work);
    for (std::size_t i = 0; i < profile.samples.size(); ++i)
      profile.samples.time_ns[i] = static_cast<std::int64_t>(i + 1) * 10'000'000;
    return profile;
  };
  console.files["before.plim"] = [&] { return run_of(50); };
  console.files["after.plim"] = [&] { return run_of(200); };
  // WHEN they are compared without their start, or up to its end THEN only what is in that time counts
  EXPECT_EQ(run({"before.plim", "after.plim", "--from", "505ms"}), kFine);
  EXPECT_EQ(console.out.substr(0, console.out.find('\n')), "before 500 ms, after 2.00 s");
  console.out.clear();
  EXPECT_EQ(run({"before.plim", "after.plim", "--to", "505ms", "--fail-over", "0"}), kFine);
  EXPECT_EQ(console.out.substr(0, console.out.find('\n')), "before 500 ms, after 500 ms");
  EXPECT_EQ(run({"before.plim", "after.plim", "--from", "2s", "--to", "1s"}), kUsage);
  EXPECT_NE(console.err.find("--from 2s is not before --to 1s"), std::string::npos) << console.err;
}

TEST_F(DiffCommand, ComparesOneActivity) {
  // GIVEN recordings of which one also waits
  console.files["after.plim"] = [] {
    profile::Profile profile = drawn(50, 200);
    for (std::size_t i = 50; i < profile.samples.size(); ++i) profile.samples.activity[i] = Activity::kLock;
    return profile;
  };
  // WHEN its waits are left out THEN what computes is as before
  EXPECT_EQ(run({"before.plim", "after.plim", "--activity", "running", "--function", "load"}), kFine);
  EXPECT_EQ(console.out.substr(0, console.out.find('\n')), "before 500 ms, after 500 ms");
  console.out.clear();
  EXPECT_EQ(run({"before.plim", "after.plim", "--activity", "io,lock"}), kFine);
  EXPECT_EQ(console.out.substr(0, console.out.find('\n')), "before 0 s, after 2.00 s");
  EXPECT_EQ(run({"before.plim", "after.plim", "--activity", "lck"}), kUsage);
  EXPECT_EQ(run({"before.plim", "after.plim", "--activity", "lock", "--cpu"}), kUsage);
}

TEST_F(DiffCommand, SaysThatNothingHasChanged) {
  EXPECT_EQ(run({"before.plim", "before.plim"}), kFine);
  EXPECT_NE(console.out.find("nothing has changed beyond chance"), std::string::npos) << console.out;
}

TEST_F(DiffCommand, SaysNoPercentageOfNothing) {
  // GIVEN a side that has nothing of what is asked for
  EXPECT_EQ(run({"empty.plim", "after.plim"}), kFine);
  EXPECT_NE(console.out.find("+2.52 s (new): beyond chance"), std::string::npos) << console.out;
  console.out.clear();
  console.files["gone.plim"] = [] { return profile::testing::draw_profile("other 10"); };
  EXPECT_EQ(run({"before.plim", "gone.plim", "--function", "parse"}), kFine);
  EXPECT_NE(console.out.find("-500 ms (gone): beyond chance"), std::string::npos) << console.out;
}

TEST_F(DiffCommand, DoesNotSayThatNothingHasChangedWhereOnlyTheWholeHas) {
  // GIVEN forty functions that each take a little longer, and so little that it may be chance
  const auto forty = [](const char* ms) {
    std::string drawing;
    for (int i = 0; i < 40; ++i) drawing += "main;f" + std::to_string(i) + " " + ms + "\n";
    profile::Profile profile = profile::testing::draw_profile(drawing);
    profile.set_meta("rate_hz", "1000");
    return profile;
  };
  console.files["before.plim"] = [&] { return forty("100"); };
  console.files["after.plim"] = [&] { return forty("120"); };
  // WHEN they are compared THEN it is said that no row stands out, and what has changed most is shown
  EXPECT_EQ(run({"before.plim", "after.plim"}), kFine);
  EXPECT_NE(console.out.find("+800 ms (+20.0 %): beyond chance"), std::string::npos) << console.out;
  EXPECT_NE(console.out.find("no single row has changed beyond chance"), std::string::npos) << console.out;
  EXPECT_NE(console.out.find("+20.0     100.00    120.00  f0"), std::string::npos) << console.out;
  EXPECT_EQ(console.out.find("nothing has changed"), std::string::npos) << console.out;
}

TEST_F(DiffCommand, FailsOnARegressionOnly) {
  EXPECT_EQ(run({"before.plim", "after.plim", "--fail-over", "20"}), kFailed);
  EXPECT_NE(console.err.find("grown by 152.0 %"), std::string::npos) << console.err;
  EXPECT_EQ(run({"before.plim", "after.plim", "--fail-over", "200"}), kFine);
  EXPECT_EQ(run({"after.plim", "before.plim", "--fail-over", "0"}), kFine) << "faster is no regression";
  EXPECT_EQ(run({"before.plim", "after.plim", "--fail-over", "0", "--function", "load"}), kFine)
      << "4 % more of 50 samples are chance";
  EXPECT_EQ(run({"empty.plim", "after.plim", "--fail-over", "5"}), kFailed);
}

TEST_F(DiffCommand, WritesJson) {
  EXPECT_EQ(run({"before.plim", "after.plim", "--json"}), kFine);
  EXPECT_TRUE(console.out.starts_with("{\"schema\":1,")) << console.out;
  EXPECT_NE(console.out.find(R"("function":"parse","file":"app.py","line":20,"self":{"before_ns":500000000,)"),
            std::string::npos)
      << console.out;
}

TEST_F(DiffCommand, RefusesWhatMakesNoSense) {
  EXPECT_EQ(run({"before.plim", "after.plim", "tre"}), kUsage);
  EXPECT_EQ(run({"before.plim", "after.plim", "--sort", "name"}), kUsage);
  EXPECT_EQ(run({"before.plim", "after.plim", "--fail-over", "-1"}), kUsage);
  EXPECT_EQ(run({"before.plim", "no.plim"}), kBadInput);
  EXPECT_EQ(run({"empty.plim", "empty.plim"}), kNoSamples);
  EXPECT_EQ(run({"before.plim"}), kUsage);
}

TEST_F(DiffCommand, RefusesAnAfterWithoutSamples) {
  // A run that was killed before it recorded anything is no faster one.
  EXPECT_EQ(run({"before.plim", "empty.plim", "--fail-over", "5"}), kNoSamples);
  EXPECT_NE(console.err.find("empty.plim holds no samples"), std::string::npos) << console.err;
  EXPECT_EQ(console.out, "");
}

TEST_F(DiffCommand, SaysThatAFileEndsEarly) {
  console.files["cut.plim"] = [] {
    profile::Profile profile = drawn(50, 50);
    profile.complete = false;
    return profile;
  };
  EXPECT_EQ(run({"before.plim", "cut.plim"}), kFine);
  EXPECT_NE(console.err.find("cut.plim ends early"), std::string::npos) << console.err;
}

TEST_F(DiffCommand, SaysWhatItAssumes) {
  console.files["sums.txt"] = [] { return profile::testing::draw_profile("main;load 500\nmain;parse 500"); };
  EXPECT_EQ(run({"before.plim", "sums.txt"}), kFine);
  EXPECT_NE(console.err.find("sums.txt does not tell its sampling rate"), std::string::npos) << console.err;
  EXPECT_EQ(console.err.find("before.plim does not"), std::string::npos) << console.err;
  EXPECT_EQ(console.err.find("CPU time and the other"), std::string::npos) << "which is not known";
}

}  // namespace
}  // namespace plimsoll::cli
