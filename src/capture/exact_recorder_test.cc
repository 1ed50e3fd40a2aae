// capture/exact_recorder_test.cc: when epochs of exact recordings are asked for, and fetched.
#include "capture/exact_recorder.h"

#include <gtest/gtest.h>

#include "capture/sampler_testing.h"

namespace plimsoll::capture {
namespace {

using testing::kMillisecond;
using testing::Sampling;

// A program that is asked for epochs, which tells of them at once, or, if it is idle, when they are fetched.
struct Program {
  bool is_idle = false;
  bool is_asked = false;
  int fetched = 0;
};
constinit Program program;

bool ask() {
  const bool is_new = !program.is_asked;
  program.is_asked = program.is_idle;
  return is_new;
}
void hand_over() {
  if (program.is_asked) ++program.fetched;
  program.is_asked = false;
}

TEST(ExactRecorder, FetchesWhatAnIdleProgramHasNotToldHoweverShortEpochsAre) {
  for (const bool is_idle : {true, false}) {
    // GIVEN a recording that has begun a moment ago, of a program that waits for something, and one that does not
    program = {.is_idle = is_idle};
    Sampling sampling(TickSettings{});
    ExactRecorder recorder(Sampling::interpreter(), *sampling.operator->(), sampling.seen(), 64);
    recorder.expect_epochs(&ask, &hand_over, nullptr);
    constexpr std::int64_t kStart = 1000 * kMillisecond;
    // WHEN half a second goes by
    for (std::int64_t passed = 0; passed <= 500 * kMillisecond; passed += 10 * kMillisecond)
      recorder.keep_time(kStart + passed, kStart);
    // THEN what it has not told is fetched, and it is left alone if it tells
    EXPECT_EQ(program.fetched > 0, is_idle) << program.fetched;
  }
}

}  // namespace
}  // namespace plimsoll::capture
