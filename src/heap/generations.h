// heap/generations.h: which generation of the garbage collector an object is of.
#pragma once

#include <array>
#include <cstddef>

#include "heap/address_set.h"
#include "heap/snapshot.h"

namespace plimsoll::heap {

// Filled from the collector's lists. Most objects are old, so only the others are remembered.
class Generations {
 public:
  // `list`: 0 the youngest, then those that come after it; the fourth has what gc.freeze() has set aside.
  void add(std::size_t list, Address object) {
    is_known_ = true;
    if (list == kOld) return;
    if (list <= kFrozen) sets_[list].insert(object);
  }
  // Of an object that is on a list.
  [[nodiscard]] Generation of(Address object) const {
    if (!is_known_) return Generation::kUnknown;
    for (const std::size_t list : {kYoung, kMiddle, kFrozen})
      if (sets_[list].size() != 0 && sets_[list].contains(object)) return static_cast<Generation>(list);
    return Generation::kOld;
  }

 private:
  static constexpr std::size_t kYoung = 0, kMiddle = 1, kOld = 2, kFrozen = 3;
  std::array<AddressSet, 4> sets_;
  bool is_known_ = false;
};

}  // namespace plimsoll::heap
