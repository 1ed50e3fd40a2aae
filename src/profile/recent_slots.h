// profile/recent_slots.h: the rows of a table that were met last, each in a slot of its own as long as it is met now
// and then: what occurs often has the same small number all the time.
#pragma once

#include <array>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <optional>

namespace plimsoll::profile {

// Of numbers below 2^32 - 1. A number that is not there takes the slot of the one that was met longest ago.
class RecentSlots {
 public:
  static constexpr unsigned kCount = 200;

  RecentSlots() {
    // A ring: the end, the oldest, ... the newest, the end.
    for (unsigned place = 0; place <= kCount; ++place) {
      newer_[place] = static_cast<std::uint8_t>((place + 1) % (kCount + 1));
      older_[place] = static_cast<std::uint8_t>((place + kCount) % (kCount + 1));
    }
    numbers_.fill(UINT32_MAX);
  }

  [[nodiscard]] std::uint32_t operator[](unsigned slot) const { return numbers_[slot]; }
  // The number that the next one to be added takes the slot of.
  [[nodiscard]] std::uint32_t oldest() const { return numbers_[newer_[kEnd]]; }
  // It was met again.
  void touch(unsigned slot) {
    newer_[older_[slot]] = newer_[slot];
    older_[newer_[slot]] = older_[slot];
    const std::uint8_t newest = older_[kEnd];
    newer_[newest] = older_[kEnd] = static_cast<std::uint8_t>(slot);
    older_[slot] = newest;
    newer_[slot] = kEnd;
  }
  // A number that has no slot was met. Returns its slot.
  unsigned add(std::uint32_t number) {
    const unsigned slot = newer_[kEnd];
    numbers_[slot] = number;
    touch(slot);
    return slot;
  }

 private:
  static constexpr std::uint8_t kEnd = kCount;
  std::array<std::uint32_t, kCount> numbers_;
  std::array<std::uint8_t, kCount + 1> newer_, older_;
};

// The same for who has a number and wants its slot.
class SlotFinder {
 public:
  // The slot that a number has had up to now; none if it had none. Now it has one.
  std::optional<unsigned> meet(std::uint32_t number) {
    if (const auto known = slot_of_.find(number); known != slot_of_.end()) {
      slots_.touch(known->second);
      return known->second;
    }
    add(number);
    return std::nullopt;
  }
  // A number that has no slot was met.
  void add(std::uint32_t number) {
    const std::uint32_t gone = slots_.oldest();
    slot_of_.erase(gone);
    slot_of_[number] = static_cast<std::uint8_t>(slots_.add(number));
  }

 private:
  RecentSlots slots_;
  boost::unordered_flat_map<std::uint32_t, std::uint8_t> slot_of_;
};

}  // namespace plimsoll::profile
