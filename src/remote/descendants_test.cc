#include "remote/descendants.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>

namespace plimsoll::remote {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

// A child that waits until it is told to become another program.
class Descendant : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(::pipe(go_.data()), 0);
    ASSERT_EQ(::pipe(became_.data()), 0);
    pid_ = ::fork();
    if (pid_ != 0) return;
    char byte = 0;
    (void)!::read(go_[0], &byte, 1);
    ::dup2(became_[1], STDOUT_FILENO);
    ::execl("/bin/sh", "sh", "-c", "echo; exec sleep 100", nullptr);
    ::_exit(1);
  }
  void TearDown() override {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    for (const int each : {go_[0], go_[1], became_[0], became_[1]}) ::close(each);
  }
  void become_another() const {
    char byte = 0;
    ASSERT_EQ(::write(go_[1], &byte, 1), 1);
    ASSERT_EQ(::read(became_[0], &byte, 1), 1);
  }
  [[nodiscard]] bool is_candidate(std::int64_t now_ns) {
    const std::vector<os::Pid> found = descendants_.candidates(now_ns);
    return std::find(found.begin(), found.end(), os::Pid{pid_}) != found.end();
  }

  std::array<int, 2> go_{}, became_{};
  pid_t pid_ = 0;
  Descendants descendants_{os::Pid{::getpid()}};
};

TEST_F(Descendant, IsLookedIntoForSomeSeconds) {
  EXPECT_TRUE(is_candidate(kSecond));
  EXPECT_TRUE(is_candidate(5 * kSecond));
  EXPECT_FALSE(is_candidate(7 * kSecond));
}

TEST_F(Descendant, IsLookedIntoEverMoreSeldom) {
  // GIVEN one that has not become a Python WHEN it is asked for fifty times in five seconds
  int times = 0;
  for (int i = 0; i < 50; ++i) times += is_candidate(kSecond + i * kSecond / 10) ? 1 : 0;
  // THEN it is looked into a dozen times: in steps of half of its age
  EXPECT_GE(times, 8);
  EXPECT_LE(times, 14);
}

TEST_F(Descendant, ThatBecomesAnotherProgramLaterIsLookedIntoAgain) {
  EXPECT_TRUE(is_candidate(kSecond));
  EXPECT_FALSE(is_candidate(60 * kSecond));
  become_another();
  EXPECT_TRUE(is_candidate(61 * kSecond));
  descendants_.is_recorded(os::Pid{pid_});
  EXPECT_FALSE(is_candidate(62 * kSecond));
}

}  // namespace
}  // namespace plimsoll::remote
