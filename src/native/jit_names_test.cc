// native/jit_names_test.cc: names that a process writes down while it is looked at: this one.
#include "native/jit_names.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>

namespace plimsoll::native {
namespace {

class JitNamesTest : public ::testing::Test {
 protected:
  ~JitNamesTest() override { std::remove(map_.c_str()); }
  void write_down(const std::string& line) { std::ofstream(map_, std::ios::app) << line << '\n'; }
  void write_anew(const std::string& line) { std::ofstream(map_) << line << '\n'; }
  void put_another(const std::string& line) {
    std::ofstream(map_ + ".new") << line << '\n';
    ASSERT_EQ(std::rename((map_ + ".new").c_str(), map_.c_str()), 0);
  }
  std::string name_at(std::uint64_t address, std::int64_t time_ns, std::int64_t now_ns) {
    const auto* found = names_.find(os::Pid{::getpid()}, Address{address}, time_ns, now_ns);
    return found != nullptr ? found->second.name : "?";
  }

  std::int64_t now_ns_ = 100;

 private:
  const std::string map_ = "/tmp/perf-" + std::to_string(::getpid()) + ".map";
  JitNames names_;
};

TEST_F(JitNamesTest, AreKnownOfAllCodeThatRanWhenTheyHadBeenWrittenDown) {
  // GIVEN code of which there is a name, and some of which there is none
  write_down("1000 10 first");
  EXPECT_EQ(name_at(0x1000, 100, 100), "first");
  EXPECT_EQ(name_at(0x2000, 100, 100), "?");
  // WHEN that is made, too, a moment later
  write_down("2000 10 second");
  // THEN it has its name from then on
  EXPECT_EQ(name_at(0x2000, 99, 101), "?") << "and what ran before has none that is looked for";
  EXPECT_EQ(name_at(0x2000, 101, 102), "second");
}

TEST_F(JitNamesTest, AreFoundInAMapThatIsBegunWhileMadeCodeRuns) {
  EXPECT_EQ(name_at(0x1000, 100, 100), "?");
  write_down("1000 10 first");
  EXPECT_EQ(name_at(0x1000, 10'000'100, 10'000'100), "first") << "10 ms later";
}

TEST_F(JitNamesTest, GiveWayToThoseOfCodeThatIsMadeInTheSamePlace) {
  write_down("1000 10 first");
  EXPECT_EQ(name_at(0x1000, 100, 100), "first");
  write_down("1000 10 later");
  EXPECT_EQ(name_at(0x1000, 10'000'100, 10'000'100), "later") << "10 ms later";
}

TEST_F(JitNamesTest, AreThoseOfAMapThatIsWrittenAnew) {
  write_down("1000 10 a_long_name_of_the_first");
  write_down("2000 10 gone");
  EXPECT_EQ(name_at(0x1000, 100, 100), "a_long_name_of_the_first");
  // WHEN the file is begun again, shorter or longer than it was
  for (const std::string& name : {std::string("short"), std::string(100, 'x')}) {
    write_anew("1000 10 " + name);
    // THEN its names are those of what runs, and the others are forgotten
    now_ns_ += 10'000'000;
    EXPECT_EQ(name_at(0x1000, now_ns_, now_ns_), name);
    EXPECT_EQ(name_at(0x2000, now_ns_, now_ns_), "?");
  }
}

TEST_F(JitNamesTest, AreThoseOfAnotherMapInThePlaceOfTheFirst) {
  write_down("1000 10 first");
  EXPECT_EQ(name_at(0x1000, 100, 100), "first");
  put_another("1000 10 other");
  EXPECT_EQ(name_at(0x1000, 200'000'000, 200'000'000), "other") << "within 100 ms";
}

}  // namespace
}  // namespace plimsoll::native
