#include "heap/pools.h"

#include "os/process.h"

namespace plimsoll::heap {

std::uint64_t pool_bytes(const cpython::Version& version) {
  if (version.threading == cpython::Version::Threading::kFree) return 0;  // those use mimalloc
  return version.minor < 10 ? 4096 : 16384;
}

std::uint64_t bytes_of(const Pool& pool) {
  constexpr std::uint64_t kOld = 4096, kNew = 16384;
  return std::uint64_t{pool.capacity} * pool.block_bytes + kPoolHeader <= kOld ? kOld : kNew;
}

bool is_of_file(const Region& region) { return !region.name.empty() && region.name.front() != '['; }

std::optional<Pool> read_pool(std::uint64_t address, std::span<const std::byte, kPoolHeader> header,
                              std::uint64_t pool_size) {
  // struct pool_header: blocks in use, the first free block, two links, number of the arena, class of sizes, where
  // blocks begin that were never used, and the last place where one can.
  const auto number = [&](std::size_t at) {
    std::uint32_t value = 0;
    std::memcpy(&value, header.data() + at, sizeof value);
    return value;
  };
  std::uint64_t free_block = 0;
  std::memcpy(&free_block, header.data() + 8, sizeof free_block);
  constexpr std::uint32_t kClasses = kLargestSmallBlock / 16, kMostArenas = 1U << 24U;
  const std::uint32_t used = number(0), arena = number(32), size_class = number(36), next = number(40),
                      last = number(44);
  if (size_class >= kClasses || arena >= kMostArenas) return std::nullopt;
  const std::uint32_t block = (size_class + 1) * 16;
  const auto capacity = static_cast<std::uint32_t>((pool_size - kPoolHeader) / block);
  if (last != pool_size - block || used > capacity) return std::nullopt;
  if (next < kPoolHeader + block || next > last + block || (next - kPoolHeader) % block != 0) return std::nullopt;
  if (free_block != 0 && free_block - address >= pool_size) return std::nullopt;
  return Pool{address, block, used, capacity, arena};
}

std::vector<Region> regions_of(std::span<const os::ResidentMapping> mappings) {
  std::vector<Region> regions;
  for (const os::ResidentMapping& each : mappings) {
    const os::Mapping& mapping = each.mapping;
    const bool follows = regions.empty() || regions.back().start + regions.back().size <= mapping.start;
    constexpr std::uint64_t kKernel = std::uint64_t{1} << 63U;  // above it are the kernel's addresses: [vsyscall]
    if (!follows || mapping.end <= mapping.start || mapping.end > kKernel) continue;
    regions.push_back({mapping.start, mapping.end - mapping.start, each.resident_bytes, mapping.is_writable,
                       mapping.is_executable, mapping.path});
  }
  return regions;
}

void add_memory(SnapshotWriter& writer, std::span<const Pool> pools, std::span<const Region> regions,
                const BlockCount& blocks) {
  if (!regions.empty()) writer.add_regions(regions);
  if (pools.empty()) return;
  writer.add_pools(pools);
  writer.add_meta("small_block_bytes", std::to_string(blocks.small()));
  writer.add_meta("large_block_bytes", std::to_string(blocks.large()));
  writer.add_meta("static_bytes", std::to_string(blocks.elsewhere()));
}

bool may_have_pools(const Region& region) {
  // A reservation of which next to nothing is used is none of pymalloc's, whose arenas are filled from the beginning.
  constexpr std::uint64_t kSparse = 64;
  const bool is_anonymous = region.name.empty() || region.name.starts_with("[anon");
  return is_anonymous && region.is_writable && !region.is_executable && region.resident >= region.size / kSparse &&
         region.resident > 0;
}

}  // namespace plimsoll::heap
