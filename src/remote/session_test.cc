#include "remote/session.h"

#include <gtest/gtest.h>

namespace plimsoll::remote {
namespace {

TEST(SessionSettings, HaveNoModeGilWhereNoThreadHoldsIt) {
  // GIVEN a Python without a GIL, and one with it
  using Threading = cpython::Version::Threading;
  SessionSettings settings;
  settings.sampler.mode = capture::Mode::kGil;
  Target target;
  target.layout.version = {3, 14, 0, Threading::kFree};
  // WHEN it is to be recorded THEN it is said why that cannot be
  const Status refused = check(target, settings);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::kUnsupported);
  EXPECT_NE(refused.error().message.find("Python 3.14.0t is free-threaded"), std::string::npos);
  target.layout.version.threading = Threading::kGil;
  EXPECT_TRUE(check(target, settings).ok());
  // and another mode is possible
  target.layout.version.threading = Threading::kFree;
  settings.sampler.mode = capture::Mode::kCpu;
  EXPECT_TRUE(check(target, settings).ok());
}

}  // namespace
}  // namespace plimsoll::remote
