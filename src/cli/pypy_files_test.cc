#include "cli/pypy_files.h"

#include <gtest/gtest.h>
#include <unistd.h>

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
  void adopt() { adopt_pypy_files((directory_ / "app.plim").string(), console_); }
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
