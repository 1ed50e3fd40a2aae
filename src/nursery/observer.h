// nursery/observer.h: what a heap tells the VM's profiler.
#pragma once

#include <cstdint>

#include "nursery/object.h"

namespace plimsoll::nursery {

// An object that holds at least one sample point.
struct Sample {
  std::uint64_t number = 0;  // from 0 on
  TypeId type{};
  std::uint64_t size = 0;      // bytes of the object
  std::uint64_t points = 0;    // sample points in it: more than one if it is larger than their distance
  std::uint64_t bytes = 0;     // what it stands for: points * mean distance
  std::uint64_t position = 0;  // bytes that the heap had allocated before it
  bool operator==(const Sample&) const = default;
};

// What had become of a sampled object when the nursery was collected next.
enum class Fate : std::uint8_t { kDied, kSurvived };

// A collection that has just ended, or the part of one that was done in one pause.
struct CollectionEvent {
  // What the pause was for.
  enum class Kind : std::uint8_t { kMinor, kMark, kSweep } kind = Kind::kMinor;
  std::int64_t start_ns = 0;  // CLOCK_MONOTONIC
  std::int64_t duration_ns = 0;
  std::uint64_t bytes = 0;  // moved to the old space; in objects marked; held by the old space after sweeping
  bool is_last = true;      // of the parts of a collection of the old space: whether marking, or sweeping, is done
};

// What a heap has done since it was made.
struct Statistics {
  std::uint64_t allocated_bytes = 0;  // all of them, headers and rounding included
  std::uint64_t allocated_large_bytes = 0;
  std::uint64_t samples = 0;
  std::uint64_t points = 0;
  std::uint64_t sampled_that_survived = 0;
  std::uint64_t minor_collections = 0;
  std::uint64_t major_collections = 0;  // completed
  std::uint64_t promoted_bytes = 0;     // moved out of the nursery, and large objects that survived
  std::uint64_t old_bytes = 0;          // in use now outside the nursery, dead objects that are not swept yet included
  std::uint64_t held_bytes = 0;         // of memory, now
};

// Gets told by a heap, in the middle of an allocation: it must not allocate from the heap, nor throw. Walking the VM's
// own stack is what it is for.
class Observer {
 public:
  Observer() = default;
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;
  virtual ~Observer() = default;

  virtual void sampled(const Sample& sample) = 0;
  virtual void settled(std::uint64_t number, Fate fate) = 0;
  virtual void collected(const CollectionEvent& event) = 0;
};

}  // namespace plimsoll::nursery
