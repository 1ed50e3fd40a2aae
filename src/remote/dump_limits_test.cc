#include "remote/dump_limits.h"

#include <gtest/gtest.h>

namespace plimsoll::remote {
namespace {

TEST(DumpLimits, AThreadHasSoManyStatesAndNoMore) {
  DumpLimits limits;
  for (std::size_t i = 0; i < DumpLimits::kMostStates; ++i) EXPECT_TRUE(limits.takes_state_of(Tid{7}));
  EXPECT_FALSE(limits.takes_state_of(Tid{7}));
  EXPECT_TRUE(limits.takes_state_of(Tid{8}));
}

TEST(DumpLimits, AllThreadsTogetherHaveSoManyFrames) {
  DumpLimits limits;
  DumpedThread thread;
  thread.frames.resize(DumpLimits::kMostFrames - 1);
  limits.count(thread);
  EXPECT_TRUE(limits.has_room());
  thread.frames.clear();
  thread.native_frames.resize(1);
  limits.count(thread);
  EXPECT_FALSE(limits.has_room());
}

}  // namespace
}  // namespace plimsoll::remote
