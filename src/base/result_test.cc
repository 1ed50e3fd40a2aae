// base/result_test.cc: errors as values.
#include "base/result.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <memory>

namespace plimsoll {
namespace {

Result<int> half(int number) {
  if (number % 2 != 0) return Error{ErrorKind::kUsage, std::to_string(number) + " is odd"};
  return number / 2;
}

Status check_quarter(int number) {
  const Result<int> first = half(number);
  PLIMSOLL_TRY(first);
  PLIMSOLL_TRY(half(first.value()));
  return Ok{};
}

TEST(Result, HoldsAValue) {
  const Result<int> result = half(10);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result.value(), 5);
}

TEST(Result, HoldsAnErrorInWords) {
  const Result<int> result = half(3);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().kind, ErrorKind::kUsage);
  EXPECT_EQ(result.error().message, "3 is odd");
}

TEST(Result, GivesAwayAValueThatCannotBeCopied) {
  Result<std::unique_ptr<int>> result(std::make_unique<int>(7));
  const std::unique_ptr<int> taken = result.take();
  EXPECT_EQ(*taken, 7);
  EXPECT_EQ(result.value(), nullptr);
}

TEST(Result, TryPassesTheFirstErrorOnAndLetsSuccessThrough) {
  EXPECT_TRUE(check_quarter(8).ok());
  EXPECT_EQ(check_quarter(6).error().message, "3 is odd");
  EXPECT_EQ(check_quarter(5).error().message, "5 is odd");
}

TEST(SystemError, SaysWhatFailedAndWhy) {
  const Error error = system_error("cannot open x", ENOENT);
  EXPECT_EQ(error.kind, ErrorKind::kSystem);
  EXPECT_EQ(error.message, "cannot open x: No such file or directory");
}

TEST(SystemError, ARefusalIsAQuestionOfPermission) {
  EXPECT_EQ(system_error("x", EACCES).kind, ErrorKind::kPermission);
  EXPECT_EQ(system_error("x", EPERM).kind, ErrorKind::kPermission);
}

}  // namespace
}  // namespace plimsoll
