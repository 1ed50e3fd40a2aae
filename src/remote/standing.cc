#include "remote/standing.h"

#include "base/clock.h"
#include "base/random.h"

namespace plimsoll::remote {

std::optional<Standing> standing_still(const os::ThreadProbe& probe) {
  using Kind = os::KernelWait::Kind;
  const std::optional<os::Schedule> before = probe.schedule();
  if (!before) return std::nullopt;
  const Kind kind = probe.wait().kind;
  if (kind == Kind::kRunnable || kind == Kind::kUnknown) return std::nullopt;
  return Standing{&probe, *before};
}

SharedCpu::SharedCpu(Rest rest) : rest_(std::move(rest)), random_(os::random_seed()) {
  if (rest_ == nullptr) rest_ = [](std::int64_t ns) { os::sleep_until(monotonic_ns() + ns); };
}

std::optional<Standing> SharedCpu::stand_beside(const os::ThreadProbe& probe, std::optional<os::Schedule> schedule,
                                                std::optional<os::Place> place) {
  while (schedule && place && place->is_ready && !place->is_realtime) {
    // It is here, and so are we: it has been put aside.
    if (place->cpu == seat_.cpu()) return Standing{&probe, *schedule};
    if (moves_ == kMostMoves || !seat_.move_to(place->cpu)) break;
    ++moves_;
    // Who comes from another CPU has the thread put aside when it hears of that, or when it is in the kernel before:
    // with a system call every few microseconds it would stand at the end of one nearly always. So it runs on, until
    // the clock of its own CPU wakes us, at a moment that has to do with nothing that it does.
    constexpr std::int64_t kLeastRest = 20'000, kMostRest = 100'000;
    rest_(kLeastRest + static_cast<std::int64_t>(next_random(random_) % (kMostRest - kLeastRest)));
    schedule = probe.schedule();
    place = probe.place();
  }
  return std::nullopt;
}

}  // namespace plimsoll::remote
