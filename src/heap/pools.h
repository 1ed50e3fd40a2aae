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

// Of a pool, by its blocks.
std::uint64_t bytes_of(const Pool& pool);

// What stands at the beginning of a pool at `address`; none if that cannot be a pool. Pure.
std::optional<Pool> read_pool(std::uint64_t address, std::span<const std::byte, kPoolHeader> header,
                              std::uint64_t pool_size);

// What a process has mapped, as a snapshot keeps it.
std::vector<Region> regions_of(std::span<const os::ResidentMapping> mappings);

// Whether a file is mapped there, and not memory of the program's or the kernel's.
bool is_of_file(const Region& region);

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
  BlockCount(std::span<const Pool> pools, std::span<const Region> regions) : pools_(pools), regions_(regions) {}

  void add(std::uint64_t address, const ObjectSize& size) {
    // One by one, and most objects have neither: as a pair, just written one by one, they would be waited for.
    if (size.small != 0) small_ += size.small;
    if (size.large != 0) large_ += size.large;
    if (size.own > kLargestSmallBlock)
      large_ += size.own;
    else if (is_in_pool(address))
      small_ += size.own;
    else if (is_static(address))
      static_ += size.own;
    else
      large_ += size.own;  // of another allocator
  }
  [[nodiscard]] std::uint64_t small() const { return small_; }
  [[nodiscard]] std::uint64_t large() const { return large_; }
  // Of objects that are no blocks at all: static ones of the interpreter and of extension modules, in their files.
  [[nodiscard]] std::uint64_t elsewhere() const { return static_; }

 private:
  bool is_in_pool(std::uint64_t address) {
    while (address >= pool_end_ && next_pool_ < pools_.size()) {
      const Pool& pool = pools_[next_pool_++];
      pool_start_ = pool.address;
      pool_end_ = pool.address + bytes_of(pool);
    }
    return address >= pool_start_ && address < pool_end_;
  }
  // Where it is not known what is mapped, all are.
  bool is_static(std::uint64_t address) {
    const auto ends_before = [&](const Region& region) { return region.start + region.size <= address; };
    while (next_region_ < regions_.size() && ends_before(regions_[next_region_])) ++next_region_;
    if (regions_.empty()) return true;
    const bool is_known = next_region_ < regions_.size() && regions_[next_region_].start <= address;
    return is_known && is_of_file(regions_[next_region_]);
  }

  std::span<const Pool> pools_;
  std::span<const Region> regions_;
  std::size_t next_pool_ = 0, next_region_ = 0;
  std::uint64_t pool_start_ = 0, pool_end_ = 0;
  std::uint64_t small_ = 0, large_ = 0, static_ = 0;
};

// Writes what is known of memory, after all objects.
void add_memory(SnapshotWriter& writer, std::span<const Pool> pools, std::span<const Region> regions,
                const BlockCount& blocks);

}  // namespace plimsoll::heap
