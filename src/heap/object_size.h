// heap/object_size.h: what an object takes of the allocators, block by block.
#pragma once

#include <cstdint>

namespace plimsoll::heap {

// Blocks that are larger come from the system's allocator.
inline constexpr std::uint64_t kLargestSmallBlock = 512;

// Bytes of blocks, each rounded up as its allocator does.
struct ObjectSize {
  std::uint64_t own = 0;    // the object with what stands in front of it
  std::uint64_t small = 0;  // other blocks of the small-object allocator's
  std::uint64_t large = 0;  // other blocks of the system's, and other memory outside Python
  void add_block(std::uint64_t bytes) { (bytes <= kLargestSmallBlock ? small : large) += bytes; }
  [[nodiscard]] std::uint64_t total() const { return own + small + large; }
};

}  // namespace plimsoll::heap
