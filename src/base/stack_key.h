// base/stack_key.h: what a call stack is known by, short of a number: so cheap to find that every allocation can have
// one.
#pragma once

#include <cstdint>

namespace plimsoll {

// Stacks with the same key are the same stack, which may have others at other times.
struct StackKey {
  std::uint64_t at = 0;     // where its innermost frame is
  std::uint64_t below = 0;  // what that is on top of; 0: this is no key
  [[nodiscard]] bool is_none() const { return below == 0; }
  bool operator==(const StackKey&) const = default;
};

// Finds the key of the stack that the calling thread is on; none if it has no key, or not yet. (It is asked with every
// allocation: to come by a virtual function takes longer.)
struct KeyFinder {
  StackKey (*find)(void* self) = nullptr;
  void* self = nullptr;
  StackKey operator()() const { return find(self); }
};

}  // namespace plimsoll
