#include "nursery/sample_point.h"

#include <cmath>

#include "base/random.h"

namespace plimsoll::nursery {

SamplePoint::SamplePoint(Distance distance, std::uint64_t seed) : random_(seed) {
  for (int i = 0; i < 8; ++i) (void)next_random(random_);  // small seeds begin with small numbers
  set_distance(distance);
}

void SamplePoint::set_distance(Distance distance) {
  distance_ = distance;
  ahead_ = distance_.is_off() ? kNever : next_distance();
}

std::uint64_t SamplePoint::advance(std::uint64_t bytes) {
  if (bytes < ahead_) {
    if (!distance_.is_off()) ahead_ -= bytes;
    return 0;
  }
  if (distance_.law == Distance::Law::kFixed) {
    const std::uint64_t beyond = bytes - ahead_;
    ahead_ = distance_.mean_bytes - beyond % distance_.mean_bytes;
    return 1 + beyond / distance_.mean_bytes;
  }
  std::uint64_t points = 0;
  while (bytes >= ahead_) {
    bytes -= ahead_;
    ahead_ = next_distance();
    ++points;
  }
  ahead_ -= bytes;
  return points;
}

std::uint64_t SamplePoint::next_distance() {
  if (distance_.law == Distance::Law::kFixed) return distance_.mean_bytes;
  // Uniform in (0, 1] with 53 bits; then the geometric law, which is the exponential one for whole bytes: each byte is
  // a point with probability 1 / mean.
  const double uniform = static_cast<double>((next_random(random_) >> 11U) + 1) * 0x1p-53;
  const double miss = std::log1p(-1.0 / static_cast<double>(distance_.mean_bytes));
  return 1 + static_cast<std::uint64_t>(std::log(uniform) / miss);
}

}  // namespace plimsoll::nursery
