#include "cli/run_settings.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace plimsoll::cli {
namespace {

namespace fs = std::filesystem;

// A directory of its own for each test.
class RunSettingsFiles : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = fs::path(testing::TempDir()) / testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(directory_);
    fs::create_directories(directory_ / "src" / "deep");
  }
  void TearDown() override { fs::remove_all(directory_); }
  std::string write(const std::string& name, const std::string& text) {
    std::ofstream(directory_ / name) << text;
    return (directory_ / name).string();
  }

  fs::path directory_;
};

TEST_F(RunSettingsFiles, AreReadFromATomlTable) {
  const auto path = write("pyproject.toml",
                          "[project]\nname = 'x'\ndependencies = [\n  'a',\n]\n"
                          "[tool.plimsoll]\nrate = 250\nchildren = true\nsafe-mode = false\noutput = 'a.plim'\n");
  const Result<RunSettings> settings = read_settings(path);
  ASSERT_TRUE(settings.ok()) << settings.error().message;
  EXPECT_EQ(settings.value().rate, 250.0);
  EXPECT_EQ(settings.value().children, true);
  EXPECT_EQ(settings.value().safe_mode, false);
  EXPECT_EQ(settings.value().output, "a.plim");
  EXPECT_FALSE(settings.value().engine.has_value());
}

TEST_F(RunSettingsFiles, AreReadFromAnIniSection) {
  const Result<RunSettings> settings =
      read_settings(write("x.ini", "[other]\nrate=1\n[plimsoll]\nrate = 99.5\nmem = yes\n"));
  ASSERT_TRUE(settings.ok()) << settings.error().message;
  EXPECT_EQ(settings.value().rate, 99.5);
  EXPECT_EQ(settings.value().mem, true);
}

TEST_F(RunSettingsFiles, MayBeginWithTheMarkOfAnEditor) {
  const Result<RunSettings> settings = read_settings(write("x.ini", "\xef\xbb\xbf[plimsoll]\r\nrate = 99\r\n"));
  ASSERT_TRUE(settings.ok()) << settings.error().message;
  EXPECT_EQ(settings.value().rate, 99.0);
}

TEST_F(RunSettingsFiles, SayWhetherAllocationsAreRecordedOrHow) {
  const auto alloc = [&](const std::string& value) {
    return read_settings(write("x.toml", "[tool.plimsoll]\nalloc = " + value + "\n")).value().alloc;
  };
  EXPECT_EQ(alloc("true"), "512K");
  EXPECT_EQ(alloc("false"), std::nullopt);
  EXPECT_EQ(alloc("'exact'"), "exact");
  EXPECT_EQ(alloc("65536"), "65536");
}

TEST_F(RunSettingsFiles, ThatStandWhereNobodyLooksAreToldOf) {
  const Result<RunSettings> none = read_settings(write("a.ini", "rate = 5\n[other]\nrate = 1\n"));
  ASSERT_FALSE(none.ok());
  EXPECT_NE(none.error().message.find("a.ini: 'rate' stands in no section"), std::string::npos);
  const Result<RunSettings> list = read_settings(write("b.toml", "[[tool.plimsoll]]\nrate = 5\n"));
  ASSERT_FALSE(list.ok());
  EXPECT_NE(list.error().message.find("tool.plimsoll is no table"), std::string::npos);
  const Result<RunSettings> torn = read_settings(write("c.ini", "[plimsoll]\nrate\n"));
  ASSERT_FALSE(torn.ok());
  EXPECT_NE(torn.error().message.find("c.ini: line 2: "), std::string::npos) << torn.error().message;
}

TEST_F(RunSettingsFiles, NameTheFileAndTheSettingThatMakesNoSense) {
  const Result<RunSettings> unknown = read_settings(write("a.ini", "[plimsoll]\nrat = 5\n"));
  ASSERT_FALSE(unknown.ok());
  EXPECT_NE(unknown.error().message.find("a.ini: no setting 'rat'"), std::string::npos) << unknown.error().message;
  const Result<RunSettings> wrong = read_settings(write("b.toml", "[tool.plimsoll]\nrate = 'fast'\n"));
  ASSERT_FALSE(wrong.ok());
  EXPECT_NE(wrong.error().message.find("'fast' is no value for rate"), std::string::npos) << wrong.error().message;
  EXPECT_FALSE(read_settings(write("c.toml", "[tool.plimsoll\n")).ok());
  EXPECT_FALSE(read_settings((directory_ / "none.ini").string()).ok());
}

TEST_F(RunSettingsFiles, AreFoundInAPyprojectAbove) {
  write("pyproject.toml", "[tool.plimsoll]\nrate = 7\n");
  write("src/pyproject.toml", "[tool.other]\nx = 1\n");
  const Result<RunSettings> settings = find_settings((directory_ / "src" / "deep").string());
  ASSERT_TRUE(settings.ok()) << settings.error().message;
  EXPECT_EQ(settings.value().rate, 7.0);
}

TEST_F(RunSettingsFiles, ComeFromTheIniFileOfTheDirectoryFirst) {
  write("pyproject.toml", "[tool.plimsoll]\nrate = 7\n");
  write("plimsoll.ini", "[plimsoll]\nrate = 8\n");
  const Result<RunSettings> settings = find_settings(directory_.string());
  ASSERT_TRUE(settings.ok()) << settings.error().message;
  EXPECT_EQ(settings.value().rate, 8.0);
}

TEST(RunSettings, OfTheCommandLineWin) {
  RunSettings command_line;
  command_line.rate = 100;
  RunSettings file;
  file.rate = 5;
  file.engine = "timer";
  fill_in(command_line, file);
  EXPECT_EQ(command_line.rate, 100.0);
  EXPECT_EQ(command_line.engine, "timer");
}

TEST(RunSettings, OfAllocationsAreADistanceOrExact) {
  using Setting = std::pair<std::string, std::string>;
  EXPECT_EQ(allocation_setting("exact").value(), Setting("alloc_exact", "1"));
  EXPECT_EQ(allocation_setting("events").value(), Setting("alloc_events", "1"));
  EXPECT_EQ(allocation_setting("64K").value(), Setting("alloc_bytes", "65536"));
  for (const char* none : {"63", "5G", "0", "-64", "often", ""}) EXPECT_FALSE(allocation_setting(none).ok()) << none;
}

TEST(RunSettingsRanges, AreThoseThatMakeSense) {
  EXPECT_TRUE(check_range("--max-depth", 1).ok());
  EXPECT_TRUE(check_range("--max-depth", 65536).ok());
  for (const int value : {-3, 0, 65537}) EXPECT_FALSE(check_range("--max-depth", value).ok());
}

}  // namespace
}  // namespace plimsoll::cli
