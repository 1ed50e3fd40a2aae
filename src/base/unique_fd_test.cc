// base/unique_fd_test.cc: a descriptor is closed once, by its last owner.
#include "base/unique_fd.h"

#include <fcntl.h>
#include <gtest/gtest.h>

namespace plimsoll {
namespace {

int open_null() { return ::open("/dev/null", O_RDONLY | O_CLOEXEC); }
bool is_open(int fd) { return ::fcntl(fd, F_GETFD) != -1; }

TEST(UniqueFd, IsEmptyUntilItOwnsSomething) {
  const UniqueFd fd;
  EXPECT_FALSE(fd.is_open());
  EXPECT_EQ(fd.get(), -1);
}

TEST(UniqueFd, ClosesItsDescriptorAtTheEndOfItsLife) {
  const int number = open_null();
  {
    const UniqueFd fd(number);
    EXPECT_TRUE(fd.is_open());
    EXPECT_TRUE(is_open(number));
  }
  EXPECT_FALSE(is_open(number));
}

TEST(UniqueFd, MovingHandsTheDescriptorOver) {
  // GIVEN an owner
  UniqueFd first(open_null());
  const int number = first.get();
  // WHEN it is moved from
  const UniqueFd second(std::move(first));
  // THEN the new owner has the descriptor, still open
  EXPECT_EQ(second.get(), number);
  EXPECT_FALSE(first.is_open());  // NOLINT: what a moved-from owner holds is what is tested
  EXPECT_TRUE(is_open(number));
}

TEST(UniqueFd, AssigningClosesWhatWasOwnedBefore) {
  UniqueFd first(open_null());
  UniqueFd second(open_null());
  const int kept = second.get();
  const int closed = first.get();
  first = std::move(second);
  EXPECT_EQ(first.get(), kept);
  EXPECT_FALSE(is_open(closed));
  EXPECT_TRUE(is_open(kept));
}

TEST(UniqueFd, AssigningToItselfKeepsTheDescriptor) {
  UniqueFd fd(open_null());
  UniqueFd& same = fd;
  fd = std::move(same);
  EXPECT_TRUE(fd.is_open());
  EXPECT_TRUE(is_open(fd.get()));
}

TEST(UniqueFd, ReleaseGivesTheDescriptorAwayOpen) {
  UniqueFd fd(open_null());
  const UniqueFd owner(fd.release());
  EXPECT_FALSE(fd.is_open());
  EXPECT_TRUE(is_open(owner.get()));
}

TEST(UniqueFd, ResetClosesAndTakesAnother) {
  UniqueFd fd(open_null());
  const int first = fd.get();
  const int second = open_null();
  fd.reset(second);
  EXPECT_FALSE(is_open(first));
  EXPECT_EQ(fd.get(), second);
  fd.reset();
  EXPECT_FALSE(is_open(second));
}

}  // namespace
}  // namespace plimsoll
