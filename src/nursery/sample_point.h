// nursery/sample_point.h: which allocated bytes are looked at.
//
// The bytes that a heap allocates are numbered from 0 on. Some of them are sample points, and the object that holds one
// is a sample. Points lie at fixed distances, or at random ones (exponential, so that every byte has the same chance,
// whatever the program's pattern); in both cases `points * mean distance` is an unbiased estimate of bytes allocated.
//
// The heap turns the nearest point into the end of its nursery, so nobody compares anything with it on the way.
#pragma once

#include <cstdint>

namespace plimsoll::nursery {

// How far apart sample points are.
struct Distance {
  // The law of the distances.
  enum class Law : std::uint8_t {
    kFixed,        // every `mean_bytes`; patterns of the program may hide between points
    kExponential,  // on average every `mean_bytes`: a Poisson process
  };
  static constexpr std::uint64_t kShortest = 64;
  static constexpr std::uint64_t kLongest = std::uint64_t{1} << 32U;

  std::uint64_t mean_bytes = 0;  // 0 = no points at all; else kShortest to kLongest
  Law law = Law::kExponential;

  [[nodiscard]] bool is_off() const { return mean_bytes == 0; }
  [[nodiscard]] bool is_valid() const { return is_off() || (mean_bytes >= kShortest && mean_bytes <= kLongest); }
};

// The stream of points. Counts bytes only: it knows no addresses and no collections, so what is left of a distance is
// carried over whatever the heap does.
class SamplePoint {
 public:
  // Without a point this many bytes lie ahead: more than any program allocates.
  static constexpr std::uint64_t kNever = std::uint64_t{1} << 62U;

  // `distance` must be valid, `seed` not 0.
  explicit SamplePoint(Distance distance, std::uint64_t seed);

  // The bytes up to and including the next point.
  [[nodiscard]] std::uint64_t ahead() const { return ahead_; }
  // `bytes` have been allocated: the number of points among them.
  std::uint64_t advance(std::uint64_t bytes);
  // From now on; what is left of the old distance is forgotten. Random ones go on with the same stream of numbers.
  void set_distance(Distance distance);
  [[nodiscard]] const Distance& distance() const { return distance_; }

 private:
  std::uint64_t next_distance();

  Distance distance_;
  std::uint64_t random_;
  std::uint64_t ahead_ = kNever;
};

}  // namespace plimsoll::nursery
