// heap/object_size.h: what an object takes of the allocators, block by block.
#pragma once

#include <bit>
#include <cstdint>

namespace plimsoll::heap {

// Blocks that are larger come from the system's allocator.
inline constexpr std::uint64_t kLargestSmallBlock = 512;

// Which allocator blocks come from.
enum class Allocator : std::uint8_t {
  kPymalloc,  // and for large ones glibc's
  kMimalloc,  // of free-threaded builds
};

// As the allocator rounds up: pymalloc by 16 bytes, glibc likewise with 8 bytes of its own; mimalloc to a quarter of a
// power of two, or to a page.
constexpr std::uint64_t block_of(std::uint64_t bytes, Allocator allocator) {
  if (bytes == 0) return 0;
  if (allocator == Allocator::kMimalloc) {
    constexpr std::uint64_t kLargestBin = std::uint64_t{128} << 10U, kPage = 4096;
    if (bytes <= 128) return (bytes + 15) / 16 * 16;
    if (bytes > kLargestBin) return (bytes + kPage - 1) / kPage * kPage;
    const auto bits = static_cast<unsigned>(std::bit_width((bytes + 7) / 8 - 1));
    const std::uint64_t step = std::uint64_t{8} << (bits - 3);
    return (bytes + step - 1) / step * step;
  }
  if (bytes <= kLargestSmallBlock) return (bytes + 15) / 16 * 16;
  return (bytes + 8 + 15) / 16 * 16;
}

// Memory outside Python that an object owns, where it is known at which address.
struct NativeExtent {
  std::uint64_t start = 0, size = 0;
};

// More than a process can have is no length, and no address is higher than this.
inline constexpr std::uint64_t kLargestExtent = std::uint64_t{1} << 46U;
inline constexpr std::uint64_t kHighestExtent = std::uint64_t{1} << 56U;

// Whether there can be such memory: what a process says of itself may be anything.
constexpr bool can_be(const NativeExtent& extent) {
  return extent.start != 0 && extent.start < kHighestExtent && extent.size <= kLargestExtent;
}

// Bytes of blocks, each rounded up as its allocator does.
struct ObjectSize {
  std::uint64_t own = 0;    // the object with what stands in front of it
  std::uint64_t small = 0;  // other blocks of the small-object allocator's
  std::uint64_t large = 0;  // other blocks of the system's, and other memory outside Python
  NativeExtent native{};    // what of `large` that is, as a rule says
  NativeExtent block{};     // one of its blocks of the system's, where that is known (own_memory.h)
  void add_block(std::uint64_t bytes) { (bytes <= kLargestSmallBlock ? small : large) += bytes; }
  [[nodiscard]] std::uint64_t total() const { return own + small + large; }
};

}  // namespace plimsoll::heap
