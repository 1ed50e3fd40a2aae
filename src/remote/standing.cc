#include "remote/standing.h"

namespace plimsoll::remote {

std::optional<Standing> standing_still(const os::ThreadProbe& probe) {
  using Kind = os::KernelWait::Kind;
  const std::optional<os::Schedule> before = probe.schedule();
  if (!before) return std::nullopt;
  const Kind kind = probe.wait().kind;
  if (kind == Kind::kRunnable || kind == Kind::kUnknown) return std::nullopt;
  return Standing{&probe, *before};
}

std::optional<Standing> SharedCpu::stand_beside(const os::ThreadProbe& probe, std::optional<os::Schedule> schedule,
                                                std::optional<os::Place> place) {
  while (schedule && place && place->is_ready && !place->is_realtime) {
    // It is here, and so are we: it has been put aside.
    if (place->cpu == seat_.cpu()) return Standing{&probe, *schedule};
    if (moves_ == kMostMoves || !seat_.move_to(place->cpu)) break;
    ++moves_;
    schedule = probe.schedule();
    place = probe.place();
  }
  return std::nullopt;
}

}  // namespace plimsoll::remote
