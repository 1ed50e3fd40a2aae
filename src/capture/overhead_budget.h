// capture/overhead_budget.h: the sampling rate for which a given part of a program's CPU time is enough.
//
// What recording costs has a part that grows with the rate (ticks, looks) and one that does not (looking for threads,
// writing the file). Both are measured all the time; the rate is what is left for the first, divided by what one sample
// costs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

namespace plimsoll::capture {

// For one thread at a time. Nanoseconds of CPU time; rates in samples per second of it.
class OverheadBudget {
 public:
  // Since the start: the program's with ours, and of that ours.
  struct Costs {
    std::int64_t program_ns = 0;
    std::int64_t sampling_ns = 0;  // grows with the rate
    std::int64_t other_ns = 0;
  };

  // `share`: of the program's CPU time, 0 to 1. `sample_ns`: what a sample is supposed to cost until it is known.
  OverheadBudget(double share, double most_hz, std::int64_t sample_ns)
      : share_(share), most_hz_(most_hz), sample_ns_(static_cast<double>(std::max<std::int64_t>(sample_ns, 1))) {}

  [[nodiscard]] double first_hz() const { return hz_for(kAim * share_); }

  // What has passed since the last call, of either, is for nothing: no sample was to be taken.
  void leave_out(const Costs& costs) { last_ = costs; }

  // To be called about every 100 ms of CPU time. `hz`: the rate since the last call. Returns that from now on.
  double next_hz(double hz, const Costs& costs) {
    const Costs before = std::exchange(last_, costs);
    const auto program_ns = static_cast<double>(costs.program_ns - before.program_ns);
    const auto keep = [](double& sum, double more) { sum = kKept * sum + std::max(more, 0.0); };
    keep(program_ns_, program_ns);
    keep(sampling_ns_, static_cast<double>(costs.sampling_ns - before.sampling_ns));
    keep(other_ns_, static_cast<double>(costs.other_ns - before.other_ns));
    keep(samples_, hz * program_ns / 1e9);
    if (program_ns_ <= 0) return hz;
    // Few samples tell little: what was known before counts as much as so many.
    constexpr double kEnough = 20;
    sample_ns_ = std::max((sampling_ns_ + kEnough * sample_ns_) / (samples_ + kEnough), 1.0);
    const double wanted = hz_for(std::max(kAim * share_ - other_ns_ / program_ns_, kLeast * share_));
    return std::clamp(wanted, kSlowest, std::min(most_hz_, std::max(kMostGrowth * hz, kSlowest)));
  }

 private:
  static constexpr double kAim = 0.85;  // a little below the limit
  // The other costs may be above the limit, which no rate can change: some samples there are to be all the same.
  static constexpr double kLeast = 0.25;
  static constexpr double kKept = 0.95;  // from one call to the next: two seconds count
  static constexpr double kMostGrowth = 2;
  static constexpr double kSlowest = 1;

  [[nodiscard]] double hz_for(double share) const { return std::clamp(1e9 * share / sample_ns_, kSlowest, most_hz_); }

  const double share_;
  const double most_hz_;
  double sample_ns_;
  Costs last_;
  double program_ns_ = 0, sampling_ns_ = 0, other_ns_ = 0, samples_ = 0;  // with what is past counting less and less
};

}  // namespace plimsoll::capture
