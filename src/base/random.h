// base/random.h: randomness for jitter.
#pragma once

#include <cstdint>

namespace plimsoll {

// Marsaglia's xorshift64: good enough to spread instants, and async-signal-safe. `state` must not be 0, and never
// becomes 0.
inline std::uint64_t next_random(std::uint64_t& state) {
  state ^= state << 13U;
  state ^= state >> 7U;
  state ^= state << 17U;
  return state;
}

}  // namespace plimsoll
