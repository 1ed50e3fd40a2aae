// capture/tick_costs.h: how long ticks take: a histogram that their handler fills.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>

namespace plimsoll::capture {

// Durations in buckets whose width is an eighth of the power of two below them. All members may be called from any
// thread; add() is async-signal-safe.
class TickCosts {
 public:
  void add(std::int64_t ns) noexcept {
    buckets_[bucket_of(static_cast<std::uint64_t>(std::max<std::int64_t>(ns, 0)))].fetch_add(1,
                                                                                             std::memory_order_relaxed);
  }

  [[nodiscard]] std::uint64_t count() const noexcept {
    std::uint64_t all = 0;
    for (const auto& bucket : buckets_) all += bucket.load(std::memory_order_relaxed);
    return all;
  }

  // What `share` (0 to 1) of all durations did not exceed, in nanoseconds, rounded up to a bucket's end; 0 if there are
  // none.
  [[nodiscard]] std::int64_t quantile(double share) const noexcept {
    const auto wanted = static_cast<std::uint64_t>(share * static_cast<double>(count()));
    std::uint64_t seen = 0;
    std::int64_t last = 0;
    for (std::size_t i = 0; i < buckets_.size() && (seen == 0 || seen < wanted); ++i) {
      const std::uint64_t here = buckets_[i].load(std::memory_order_relaxed);
      if (here != 0) last = end_of(i);
      seen += here;
    }
    return last;
  }

  // What they took together, in nanoseconds, to a sixteenth. One that took far longer than most was interrupted by
  // somebody who got its CPU, whose time is no cost of ours: it counts as most do.
  [[nodiscard]] std::int64_t undisturbed_ns() const noexcept {
    constexpr std::int64_t kFar = 16, kLongestUndisturbed = 100'000;
    const std::int64_t median = quantile(0.5);
    const std::int64_t longest = std::max(kFar * median, kLongestUndisturbed);
    std::int64_t all = 0;
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
      const std::int64_t end = end_of(i);
      const std::int64_t middle = i == 0 ? 0 : (end_of(i - 1) + end + 1) / 2;
      const auto here = static_cast<std::int64_t>(buckets_[i].load(std::memory_order_relaxed));
      all += here * (end > longest ? median : middle);
    }
    return all;
  }

 private:
  static constexpr unsigned kSubBits = 3;
  static constexpr std::uint64_t kLongest = (std::uint64_t{1} << 30U) - 1;  // a second

  static std::size_t bucket_of(std::uint64_t ns) noexcept {
    ns = std::min(ns, kLongest);
    if (ns < (1U << kSubBits)) return ns;
    const auto shift = static_cast<unsigned>(std::bit_width(ns)) - 1 - kSubBits;
    return ((std::size_t{shift} + 1) << kSubBits) + ((ns >> shift) & ((1U << kSubBits) - 1));
  }
  static std::int64_t end_of(std::size_t bucket) noexcept {
    const std::size_t octave = bucket >> kSubBits;
    const std::size_t step = bucket & ((1U << kSubBits) - 1);
    if (octave == 0) return static_cast<std::int64_t>(step);
    return static_cast<std::int64_t>((((std::size_t{1} << kSubBits) + step + 1) << (octave - 1)) - 1);
  }

  std::array<std::atomic<std::uint32_t>, 28U << kSubBits> buckets_{};
};

}  // namespace plimsoll::capture
