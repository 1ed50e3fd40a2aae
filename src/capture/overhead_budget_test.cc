// capture/overhead_budget_test.cc: programs whose costs are known.
#include "capture/overhead_budget.h"

#include <gtest/gtest.h>

namespace plimsoll::capture {
namespace {

constexpr std::int64_t kStep = 100'000'000;

// A program of which each 100 ms cost so much.
struct Program {
  double sample_ns = 0;
  std::int64_t other_ns = 0;  // a step
  double hz = 0;
  OverheadBudget::Costs costs{};

  // The part of the program's time that recording took.
  double run(OverheadBudget& budget, int steps) {
    const OverheadBudget::Costs before = costs;
    for (int i = 0; i < steps; ++i) {
      costs.program_ns += kStep;
      costs.sampling_ns += static_cast<std::int64_t>(hz * kStep / 1e9 * sample_ns);
      costs.other_ns += other_ns;
      hz = budget.next_hz(hz, costs);
    }
    const std::int64_t ours = costs.sampling_ns + costs.other_ns - before.sampling_ns - before.other_ns;
    return static_cast<double>(ours) / static_cast<double>(costs.program_ns - before.program_ns);
  }
};

TEST(OverheadBudget, IsKeptFromTheBeginning) {
  // GIVEN a limit of one percent, and samples that cost 25 us, as is supposed
  OverheadBudget budget(0.01, 20'000, 25'000);
  Program program{.sample_ns = 25'000, .other_ns = 300'000, .hz = budget.first_hz()};
  EXPECT_NEAR(program.hz, 340, 1);
  // THEN it is nearly used up, and not exceeded for long
  EXPECT_LE(program.run(budget, 10), 0.012);
  const double later = program.run(budget, 100);
  EXPECT_LE(later, 0.01);
  EXPECT_GE(later, 0.008);
}

TEST(OverheadBudget, IsKeptWhenSamplesCostOtherThanSupposed) {
  for (const double sample_ns : {500.0, 200'000.0}) {
    OverheadBudget budget(0.01, 20'000, 25'000);
    Program program{.sample_ns = sample_ns, .other_ns = 300'000, .hz = budget.first_hz()};
    program.run(budget, 100);
    const double later = program.run(budget, 100);
    EXPECT_LE(later, 0.01) << sample_ns;
    EXPECT_GE(later, 0.008) << sample_ns;
  }
}

TEST(OverheadBudget, IsNotForMoreSamplesThanWereAskedFor) {
  OverheadBudget budget(0.5, 1000, 2'000);
  Program program{.sample_ns = 2'000, .other_ns = 0, .hz = budget.first_hz()};
  EXPECT_EQ(program.hz, 1000);
  program.run(budget, 50);
  EXPECT_EQ(program.hz, 1000);
}

TEST(OverheadBudget, LeavesSomeSamplesWhereTheRestCostsMore) {
  OverheadBudget budget(0.01, 20'000, 25'000);
  Program program{.sample_ns = 25'000, .other_ns = 2'000'000, .hz = budget.first_hz()};
  program.run(budget, 100);
  EXPECT_NEAR(program.hz, 100, 10);
}

TEST(OverheadBudget, IsAfterAPauseWhatItWasBefore) {
  // GIVEN a recording that keeps to its limit
  OverheadBudget budget(0.01, 20'000, 25'000);
  Program program{.sample_ns = 25'000, .other_ns = 300'000, .hz = budget.first_hz()};
  program.run(budget, 100);
  const double before = program.hz;
  // WHEN it is paused for a minute, in which it goes on looking for threads
  for (int i = 0; i < 600; ++i) {
    program.costs.program_ns += kStep;
    program.costs.other_ns += program.other_ns / 10;
    budget.leave_out(program.costs);
  }
  // THEN the rate is as if there had been no pause
  EXPECT_LE(program.run(budget, 10), 0.01);
  EXPECT_NEAR(program.hz, before, 0.02 * before);
}

TEST(OverheadBudget, IsNotForgottenForWantOfSamples) {
  // GIVEN a rate at which no sample may come for seconds
  OverheadBudget budget(0.0001, 20'000, 50'000);
  Program program{.sample_ns = 0, .other_ns = 0, .hz = budget.first_hz()};
  EXPECT_NEAR(program.hz, 1.7, 0.1);
  program.run(budget, 10);
  // THEN they are not supposed to cost nothing
  EXPECT_LE(program.hz, 4);
}

}  // namespace
}  // namespace plimsoll::capture
