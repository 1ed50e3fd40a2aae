#include "cli/pypy_files.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "cli/testing.h"
#include "formats/vmprof/testing.h"
#include "profile/plim_reader.h"

namespace plimsoll::cli {
namespace {

namespace fs = std::filesystem;

const std::string kSamples = formats::vmprof::testing::draw_file(R"(
  layout unix64 1000
  header 6 t pypy
  name 16 py:main:1:app.py
  stack 1 16 t=0
  meta plimsoll.python PyPy 8.0.1, Python 3.11.17
  meta plimsoll.argv pypy3 app.py
  end 2
)");

class PyPyFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "pypy_files_test.XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  void TearDown() override { fs::remove_all(directory_); }

  void write(const std::string& name, const std::string& bytes) const { std::ofstream(directory_ / name) << bytes; }
  void adopt(const PyPyRun& run = {}) { adopt_pypy_files((directory_ / "app.plim").string(), run, console_); }
  [[nodiscard]] Result<profile::Profile> read(const std::string& name) const {
    return profile::read_plim_file((directory_ / name).string());
  }
  [[nodiscard]] bool has(const std::string& name) const { return fs::exists(directory_ / name); }

  fs::path directory_;
  testing::FakeConsole console_;
};

TEST_F(PyPyFiles, BecomeOneProfileWithItsFactsAndItsLog) {
  write("app.plim.vmprof", kSamples);
  write("app.plim.jit", "a log");
  adopt();
  const Result<profile::Profile> profile = read("app.plim");
  ASSERT_TRUE(profile.ok()) << profile.error().message;
  EXPECT_EQ(profile.value().samples.size(), 1U);
  EXPECT_EQ(profile.value().meta_value("python"), "PyPy 8.0.1, Python 3.11.17");
  EXPECT_EQ(profile.value().meta_value("argv"), "pypy3 app.py");
  EXPECT_EQ(profile.value().meta_value("vmprof.plimsoll.python"), "");
  ASSERT_EQ(profile.value().attachments.size(), 1U);
  EXPECT_EQ(profile.value().attachments[0].bytes, "a log");
  EXPECT_FALSE(has("app.plim.vmprof") || has("app.plim.jit"));
  EXPECT_EQ(console_.err, "");
}

TEST_F(PyPyFiles, HaveWhatTheCollectorDidAsMarkers) {
  // GIVEN PyPy's log, with its clock (2 ticks a nanosecond) WHEN it is adopted THEN its sections are markers
  write("app.plim.vmprof", kSamples);
  write("app.plim.pypylog",
        "[3e8] {plimsoll-clock-1000\n[7d0] {gc-minor\n[bb8] gc-minor}\n[fa0] {plimsoll-clock-2500\n");
  adopt();
  const Result<profile::Profile> profile = read("app.plim");
  ASSERT_TRUE(profile.ok());
  ASSERT_EQ(profile.value().markers.size(), 1U);
  EXPECT_EQ(profile.value().markers[0].name, "gc-minor");
  EXPECT_EQ(profile.value().markers[0].duration_ns, 500);
  EXPECT_FALSE(has("app.plim.pypylog"));
  // AND a log that does not tell the time is left out, which is said
  write("app.plim.vmprof", kSamples);
  write("app.plim.pypylog", "[7d0] {gc-minor\n[bb8] gc-minor}\n");
  adopt();
  EXPECT_NE(read("app.plim").value().meta_value("pypylog"), "");
}

TEST_F(PyPyFiles, OfChildProcessesToo) {
  write("app.123.plim.vmprof", kSamples);
  adopt();
  EXPECT_TRUE(read("app.123.plim").ok());
  EXPECT_FALSE(has("app.plim") || has("app.123.plim.vmprof"));
}

TEST_F(PyPyFiles, KnowWhichProcessTheyAreOf) {
  // GIVEN what a child process that was killed has left, which says which it was at its beginning
  write("app.123.plim.vmprof", formats::vmprof::testing::draw_file(R"(
    layout unix64 1000
    header 6 t pypy
    meta plimsoll.pid 123
    meta plimsoll.parent_pid 122
    stack 1 16 t=0)"));
  // WHEN it is adopted THEN the profile is of that process, as its name says
  adopt();
  const Result<profile::Profile> profile = read("app.123.plim");
  ASSERT_TRUE(profile.ok());
  EXPECT_EQ(profile.value().processes[0].pid, 123);
  EXPECT_EQ(profile.value().processes[0].parent_pid, 122);
  EXPECT_EQ(profile.value().meta_value("pid"), "");
}

TEST_F(PyPyFiles, OfAProgramThatRecordedNothingAreTakenAway) {
  write("app.plim.pypylog", "[3e8] {gc-minor\n");
  adopt();
  EXPECT_FALSE(has("app.plim.pypylog") || has("app.plim"));
}

TEST_F(PyPyFiles, OfChildProcessesThatRecordedNothingAreTakenAway) {
  // GIVEN the logs of two child processes, of which one has a profile, too
  write("app.123.plim.vmprof", kSamples);
  write("app.123.plim.pypylog",
        "[3e8] {plimsoll-clock-1000\n[7d0] {gc-minor\n[bb8] gc-minor}\n[fa0] {plimsoll-clock-2500\n");
  write("app.124.plim.pypylog", "[3e8] {gc-minor\n");
  // WHEN they are adopted THEN the one's is in its profile, and the other's is gone
  adopt();
  EXPECT_EQ(read("app.123.plim").value().markers.size(), 1U);
  EXPECT_FALSE(has("app.123.plim.pypylog") || has("app.124.plim.pypylog") || has("app.124.plim"));
}

constexpr std::int64_t kMs = 1'000'000;

// A process whose CPU clock shows 5 ms at 100 s, when it begins to be recorded; it runs 10 ms, waits 2 s, runs 20 ms.
PyPyRun run_that_waited(std::int32_t pid) {
  CpuClock clock(5 * kMs, 100'000 * kMs);
  clock.note(15 * kMs, 100'010 * kMs);
  clock.note(15 * kMs, 102'010 * kMs);
  clock.note(35 * kMs, 102'030 * kMs);
  return {{os::Pid{pid}, {{os::Pid{pid}, clock}}}};
}

TEST_F(PyPyFiles, HaveTheirSamplesByTheTimeOfDay) {
  // GIVEN samples of PyPy 8, which have CPU times, of a program that waits for two seconds
  formats::vmprof::testing::Drawing drawing;
  drawing.is_time_after = true;
  write("app.plim.vmprof", drawing.draw(R"(
    layout unix64 1000
    header 7 mt pypy
    start 100
    name 16 py:main:1:app.py
    stack 1 16 t=0 m=5 at=0.006
    stack 1 16 t=0 m=5 at=0.015
    stack 1 16 t=0 m=5 at=0.020
    stack 1 16 t=0 m=5 at=0.035
    end 103)"));
  // WHEN they are adopted with the clocks that were noted THEN they are before the wait and after it, as is the memory
  adopt(run_that_waited(123));
  const Result<profile::Profile> profile = read("app.plim");
  ASSERT_TRUE(profile.ok());
  const std::vector<std::int64_t> times{1 * kMs, 10 * kMs, 2015 * kMs, 2030 * kMs};
  EXPECT_EQ(profile.value().samples.time_ns, times);
  EXPECT_EQ(profile.value().counters.at(0).time_ns, times);
  EXPECT_EQ(profile.value().samples.weight_ns, (std::vector<std::int64_t>{1 * kMs, 9 * kMs, 5 * kMs, 15 * kMs}));
  EXPECT_EQ(profile.value().end_ns, 3000 * kMs);
}

TEST_F(PyPyFiles, WithoutTimesShareTheCpuTimeThatWasUsed) {
  // GIVEN samples of PyPy 7.3, each of 7.5 ms of CPU time where 1 ms was asked for
  const std::string samples = R"(
    layout unix64 1000
    header 6 t pypy
    start 100
    name 16 py:main:1:app.py
    stack 1 16 t=0
    stack 1 16 t=0
    stack 1 16 t=0
    stack 1 16 t=0
    end 102.03)";
  write("app.plim.vmprof", formats::vmprof::testing::draw_file(samples));
  // WHEN they are adopted THEN they are spread over the CPU time, and weigh it
  adopt(run_that_waited(123));
  const Result<profile::Profile> profile = read("app.plim");
  ASSERT_TRUE(profile.ok());
  EXPECT_EQ(profile.value().samples.time_ns,
            (std::vector<std::int64_t>{7'500'000, 2015 * kMs, 2'022'500'000, 2030 * kMs}));
  EXPECT_EQ(profile.value().samples.weight_ns, std::vector<std::int64_t>(4, 7'500'000));
  EXPECT_EQ(profile.value().threads.at(0).cpu_ns, 30 * kMs);
  EXPECT_EQ(profile.value().process_cpu_ns, 30 * kMs);
}

TEST_F(PyPyFiles, AreNotPlacedByTheClockOfAShellBetween) {
  // GIVEN more samples than the process can have taken that was watched WHEN they are adopted THEN they stay
  std::string samples = "layout unix64 1000\nheader 6 t pypy\nstart 100\n";
  for (int i = 0; i < 200; ++i) samples += "stack 1 16 t=0\n";
  write("app.plim.vmprof", formats::vmprof::testing::draw_file(samples + "end 102\n"));
  adopt(run_that_waited(123));
  EXPECT_EQ(read("app.plim").value().samples.time_ns[99], 1000 * kMs);
  EXPECT_EQ(read("app.plim").value().samples.weight_ns[99], 1 * kMs);
}

TEST_F(PyPyFiles, TakeTheSourcesAlongThatRan) {
  // GIVEN a file that is older than the recording, one that was written later, and one that nobody ran
  write("old.py", "pass\n");
  write("new.py", "pass\n");
  write("other.py", "pass\n");
  const std::string old_file = (directory_ / "old.py").string(), new_file = (directory_ / "new.py").string();
  fs::last_write_time(old_file, fs::file_time_type::clock::now() - std::chrono::hours(1));
  const auto began = std::chrono::system_clock::now() - std::chrono::minutes(1);
  const std::string samples = formats::vmprof::testing::draw_file(
      "layout unix64 1000\nheader 6 t pypy\nstart " +
      std::to_string(std::chrono::duration_cast<std::chrono::seconds>(began.time_since_epoch()).count()) +
      "\nname 16 py:f:1:" + old_file + "\nname 18 py:g:1:" + new_file + "\nname 20 py:h:1:<string>\n" +
      "stack 1 16 1 18 1 20 t=0\nend 4000000000\n");
  write("app.plim.vmprof", samples);
  // WHEN they are adopted THEN the first is in the profile; or none, if none is wanted
  adopt();
  ASSERT_EQ(read("app.plim").value().sources.size(), 1U);
  EXPECT_EQ(read("app.plim").value().sources[0].file, old_file);
  write("app.plim.vmprof", samples);
  PyPyRun run;
  run.sources = PyPyRun::Sources::kOmit;
  adopt(run);
  EXPECT_TRUE(read("app.plim").value().sources.empty());
}

TEST_F(PyPyFiles, StayWhereTheyCannotBeRead) {
  write("app.plim.vmprof", "");
  adopt();
  EXPECT_TRUE(has("app.plim.vmprof"));
  EXPECT_FALSE(has("app.plim"));
  EXPECT_NE(console_.err.find("app.plim.vmprof"), std::string::npos) << console_.err;
}

TEST_F(PyPyFiles, AreNoneAfterOtherPythons) {
  adopt();
  EXPECT_TRUE(fs::is_empty(directory_));
  EXPECT_EQ(console_.err, "");
}

}  // namespace
}  // namespace plimsoll::cli
