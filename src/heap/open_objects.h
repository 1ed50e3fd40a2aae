// heap/open_objects.h: objects that were found, and of which nobody has seen yet what they hold.
#pragma once

#include <cstddef>
#include <vector>

#include "heap/address_set.h"

namespace plimsoll::heap {

// A stack of them. A list of ten million would make it larger than all the rest: what it has no room for is put aside
// in the set of what was found, a bit for each, and comes back when the stack is empty.
class OpenObjects {
 public:
  explicit OpenObjects(AddressSet& found) : found_(found) { stack_.reserve(kRoom); }

  // An object of the set.
  void push(Address object) {
    if (stack_.size() < kRoom)
      stack_.push_back(object);
    else
      found_.put_aside(object);
  }
  // False if there is none.
  bool pop(Address& object) {
    if (stack_.empty() && !found_.take_put_aside(stack_)) return false;
    object = stack_.back();
    stack_.pop_back();
    return true;
  }

 private:
  static constexpr std::size_t kRoom = 16'384;
  AddressSet& found_;
  std::vector<Address> stack_;
};

}  // namespace plimsoll::heap
