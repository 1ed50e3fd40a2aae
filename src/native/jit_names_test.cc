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
  std::string name_at(std::uint64_t address, std::int64_t time_ns, std::int64_t now_ns) {
    const auto* found = names_.find(os::Pid{::getpid()}, Address{address}, time_ns, now_ns);
    return found != nullptr ? found->second.name : "?";
  }

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

}  // namespace
}  // namespace plimsoll::native
