// capture/tick_jitter.h: how far apart a thread's ticks are, so that periodic work cannot hide between them.
#pragma once

#include <cstdint>

#include "base/random.h"

namespace plimsoll::capture {

// Periodic work must not be met by every tick, or by none: the period wanders uniformly within a quarter of itself.
// Each step up is followed by the same step down, so that the number of ticks stays that of the rate that was asked
// for, and not only on average. For the ticks of one thread: async-signal-safe, and for its handler alone while it has
// ticks.
class TickJitter {
 public:
  // Steps begin anew.
  void restart() noexcept { step_ = 0; }

  // The time to the next tick, or between the next ones. `period_ns` is at most a second, and may change from call to
  // call: a step is remembered as a part of it, since a quarter of a long period is many short ones.
  std::int64_t next(std::int64_t period_ns, std::uint64_t& random) noexcept {
    const auto drawn = static_cast<std::int64_t>(next_random(random) % (kWhole / 2)) - kWhole / 4;
    const std::int64_t step = step_ != 0 ? -step_ : drawn;
    step_ = step_ != 0 ? 0 : step;
    return period_ns + period_ns * step / kWhole;
  }

 private:
  static constexpr std::int64_t kWhole = 1 << 20;
  std::int64_t step_ = 0;  // the step that is to be taken back
};

}  // namespace plimsoll::capture
