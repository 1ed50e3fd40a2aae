// base/poisson.h: sampling bytes at random, each with the same small chance, and what a sample then stands for.
//
// Sample points lie at exponential distances, on average `mean_bytes` apart: a Poisson process over bytes. A block is
// sampled if at least one point is in it, and stands for 1 / chance blocks of its kind (Horvitz-Thompson): that makes
// sums over samples unbiased, whatever the sizes.
#pragma once

#include <cmath>
#include <cstdint>

#include "base/random.h"

namespace plimsoll {

// The chance that a block of `bytes` is sampled.
inline double chance_of_sample(std::uint64_t bytes, std::uint64_t mean_bytes) {
  return -std::expm1(-static_cast<double>(bytes) / static_cast<double>(mean_bytes));
}

// Uniform in (0, 1].
inline double uniform_random(std::uint64_t& state) {
  return static_cast<double>((next_random(state) >> 11U) + 1) * 0x1p-53;
}

// Bytes up to and including the next sample point: at least 1. A block of n bytes that begins here holds the point with
// chance_of_sample(n, mean_bytes).
inline std::int64_t distance_to_sample(std::uint64_t& state, std::uint64_t mean_bytes) {
  return static_cast<std::int64_t>(std::ceil(-std::log(uniform_random(state)) * static_cast<double>(mean_bytes)));
}

// Likewise in blocks of one size, the sampled one included: a geometric distance.
inline std::uint64_t blocks_to_sample(std::uint64_t& state, std::uint64_t block_bytes, std::uint64_t mean_bytes) {
  const double blocks =
      -std::log(uniform_random(state)) * static_cast<double>(mean_bytes) / static_cast<double>(block_bytes);
  return static_cast<std::uint64_t>(blocks) + 1;
}

}  // namespace plimsoll
