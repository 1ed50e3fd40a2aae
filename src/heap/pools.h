// heap/pools.h: the pools of CPython's small-object allocator (pymalloc), found by what stands at their beginning.
//
// A pool is 16 KiB (4 KiB up to 3.9) of blocks of one size, a multiple of 16 bytes up to 512. That the interpreter
// itself knows of them is no help: where it keeps its list is not published, and differs from build to build.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "base/growing_array.h"
#include "cpython/layout.h"
#include "heap/object_size.h"
#include "heap/snapshot_writer.h"
#include "memory/reader.h"

namespace plimsoll::os {
struct ResidentMapping;
}

namespace plimsoll::heap {

inline constexpr std::uint64_t kPoolHeader = 48;
// How many bytes a pool has; 0 for builds that have none.
std::uint64_t pool_bytes(const cpython::Version& version);

// What stands at the beginning of a pool at `address`; none if that cannot be a pool. Pure.
std::optional<Pool> read_pool(std::uint64_t address, std::span<const std::byte, kPoolHeader> header,
                              std::uint64_t pool_size);

// What a process has mapped, as a snapshot keeps it.
std::vector<Region> regions_of(std::span<const os::ResidentMapping> mappings);

// Whether there may be pools in it: memory without a file, of which enough is in use.
bool may_have_pools(const Region& region);

// All pools of the regions, by address. Reads `memory` at the beginning of each place where one could be.
template <memory::Reader M>
GrowingArray<Pool> find_pools(const M& memory, std::span<const Region> regions, const cpython::Version& version) {
  GrowingArray<Pool> pools;
  const std::uint64_t size = pool_bytes(version);
  if (size == 0) return pools;
  for (const Region& region : regions) {
    if (!may_have_pools(region)) continue;
    const std::uint64_t end = region.start + region.size;
    std::array<std::byte, kPoolHeader> header;
    constexpr std::uint64_t kAhead = 16;  // pools, each of which is waited for otherwise
    for (std::uint64_t at = (region.start + size - 1) / size * size; at < end && end - at >= size; at += size) {
      if constexpr (requires { memory.prefetch(Address{}); }) memory.prefetch(Address{at + kAhead * size});
      if (!memory.read(Address{at}, header.data(), header.size())) continue;
      if (const auto pool = read_pool(at, header, size)) pools.push_back(*pool);
    }
  }
  return pools;
}

// How many bytes of blocks objects take, by where the blocks come from. Fed with objects in the order of addresses.
class BlockCount {
 public:
  BlockCount(std::span<const Pool> pools, std::uint64_t pool_size) : pools_(pools), pool_size_(pool_size) {}

  void add(std::uint64_t address, const ObjectSize& size) {
    // One by one, and most objects have neither: as a pair, just written one by one, they would be waited for.
    if (size.small != 0) small_ += size.small;
    if (size.large != 0) large_ += size.large;
    if (size.own > kLargestSmallBlock)
      large_ += size.own;
    else if (is_in_pool(address))
      small_ += size.own;
    else
      elsewhere_ += size.own;
  }
  [[nodiscard]] std::uint64_t small() const { return small_; }
  [[nodiscard]] std::uint64_t large() const { return large_; }
  // Of objects that are no blocks at all: static ones of the interpreter and of extension modules.
  [[nodiscard]] std::uint64_t elsewhere() const { return elsewhere_; }

 private:
  bool is_in_pool(std::uint64_t address) {
    while (next_ < pools_.size() && pools_[next_].address + pool_size_ <= address) ++next_;
    return next_ < pools_.size() && pools_[next_].address <= address;
  }

  std::span<const Pool> pools_;
  std::uint64_t pool_size_;
  std::size_t next_ = 0;
  std::uint64_t small_ = 0, large_ = 0, elsewhere_ = 0;
};

// Writes what is known of memory, after all objects.
void add_memory(SnapshotWriter& writer, std::span<const Pool> pools, std::span<const Region> regions,
                const BlockCount& blocks);

}  // namespace plimsoll::heap
