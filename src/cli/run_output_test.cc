// cli/run_output_test.cc: names of recordings, in a directory of the test's own.
#include "cli/run_output.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/directory_testing.h"

namespace plimsoll::cli {
namespace {

namespace fs = std::filesystem;

class RunOutputs : public testing::DirectoryTest {
 protected:
  void write(const std::string& name, std::string_view text) const { std::ofstream(path(name)) << text; }
  [[nodiscard]] Result<RunOutput> choose(const std::string& name, const std::string& format = {}) const {
    RunSettings settings;
    if (!name.empty()) settings.output = path(name);
    if (!format.empty()) settings.format = format;
    return RunOutput::choose(settings, {path("app.py")});
  }
  [[nodiscard]] std::ptrdiff_t files() const {
    return std::distance(fs::directory_iterator(directory_), fs::directory_iterator());
  }
};

TEST_F(RunOutputs, ARecordingGoesWhereItIsToldTo) {
  for (const char* name : {"app.plim", "app", "app.data"}) {
    const Result<RunOutput> output = choose(name);
    ASSERT_TRUE(output.ok()) << output.error().message;
    EXPECT_TRUE(output.value().is_plim());
    EXPECT_EQ(output.value().plim(), path(name));
  }
}

TEST_F(RunOutputs, TheNameTellsTheFormatAndTheFormatTheName) {
  EXPECT_EQ(choose("app.speedscope.json").value().writer().name, "speedscope");
  EXPECT_EQ(choose("app.plim", "collapsed").value().writer().name, "collapsed");
  EXPECT_TRUE(choose("app.pb.gz", "plim").value().is_plim());
  RunSettings settings;
  settings.format = "pprof";
  const Result<RunOutput> named = RunOutput::choose(settings, {path("app.py")});
  EXPECT_TRUE(named.value().path().starts_with("app-") && named.value().path().ends_with(".pb.gz"))
      << named.value().path();
  EXPECT_FALSE(choose("app.json").ok()) << "two formats are JSON";
  EXPECT_FALSE(choose("app", "none").ok());
}

TEST_F(RunOutputs, ARecordingBetweenTakesNobodysName) {
  // GIVEN recordings of the names that come to mind
  write("app.plim", "mine");
  write("app.collapsed.plim", "mine");
  std::string between;
  {
    // WHEN a profile of another format is to be made THEN the recording lies beside it, under a new name
    const Result<RunOutput> output = choose("app.collapsed", "collapsed");
    between = output.value().plim();
    EXPECT_TRUE(between.starts_with(path("app.collapsed.")) && between.ends_with(".plim")) << between;
    EXPECT_FALSE(output.value().was_recorded());
    EXPECT_EQ(files(), 3);
  }
  // AND is gone if it has come to nothing
  EXPECT_FALSE(fs::exists(between));
  EXPECT_EQ(files(), 2);
}

TEST_F(RunOutputs, AnOldFileIsNoRecording) {
  write("app.plim", "old");
  const Result<RunOutput> output = choose("app.plim");
  EXPECT_FALSE(output.value().was_recorded());
  EXPECT_NE(output.value().nothing_recorded().find("earlier recording"), std::string::npos);
  // One of as many bytes in its place is.
  write("new", "new");
  fs::rename(path("new"), path("app.plim"));
  EXPECT_TRUE(output.value().was_recorded());
  EXPECT_EQ(choose("other.plim").value().nothing_recorded(), "nothing was recorded");
}

TEST_F(RunOutputs, ANameThatNobodyHasChosenIsTakenAtOnce) {
  // GIVEN programs that are started at the same moment
  const fs::path before = fs::current_path();
  fs::current_path(directory_);
  {
    const auto first = RunOutput::choose({}, {"app.py"});
    const auto second = RunOutput::choose({}, {"app.py"});
    // THEN each has a name of its own, which is there already
    EXPECT_NE(first.value().path(), second.value().path());
    EXPECT_EQ(files(), 2);
    EXPECT_FALSE(first.value().was_recorded());
    EXPECT_EQ(first.value().nothing_recorded(), "nothing was recorded");
    write(second.value().path(), "recorded");
    EXPECT_TRUE(second.value().was_recorded());
  }
  fs::current_path(before);
  // AND is gone if nothing was recorded
  EXPECT_EQ(files(), 1);
}

TEST_F(RunOutputs, TheProgramIsNotOverwritten) {
  write("app.py", "print()");
  EXPECT_FALSE(choose("app.py").ok());
  EXPECT_FALSE(choose("app.py", "collapsed").ok());
  fs::create_hard_link(path("app.py"), path("same.plim"));
  EXPECT_FALSE(choose("same.plim").ok());
}

}  // namespace
}  // namespace plimsoll::cli
