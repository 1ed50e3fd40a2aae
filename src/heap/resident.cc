#include "heap/resident.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>

#include "heap/arenas.h"
#include "heap/buffers.h"
#include "heap/pools.h"

namespace plimsoll::heap {
namespace {

constexpr std::size_t kUses = 5;

constexpr std::uint64_t less(std::uint64_t all, std::uint64_t part) { return all - std::min(all, part); }

// Threads are told apart by the address of what the system keeps of them, which lies in their stacks.
std::vector<std::uint64_t> thread_addresses(const Snapshot& snapshot) {
  constexpr std::string_view kThread = "thread ";
  std::vector<std::uint64_t> found;
  for (Node node = static_cast<Node>(snapshot.object_count); node < snapshot.type.size(); ++node) {
    std::string_view text = snapshot.text(node);
    if (snapshot.type_name(node) != "[thread]" || !text.starts_with(kThread)) continue;
    text.remove_prefix(kThread.size());
    std::uint64_t address = 0;
    std::from_chars(text.data(), text.data() + text.size(), address);
    if (address != 0) found.push_back(address);
  }
  return found;
}

bool lies_in(const Region& region, std::uint64_t address) {
  return address >= region.start && address - region.start < region.size;
}

RegionUse use_of(const Region& region, bool has_pools, const std::vector<std::uint64_t>& threads) {
  if (has_pools) return RegionUse::kPools;
  if (region.name == "[stack]") return RegionUse::kStack;
  const bool has_thread =
      std::any_of(threads.begin(), threads.end(), [&](std::uint64_t at) { return lies_in(region, at); });
  if (has_thread && region.name.empty()) return RegionUse::kStack;
  if (region.name.starts_with("[v")) return RegionUse::kSystem;  // [vdso], [vvar], [vsyscall]
  if (region.name.empty() || region.name == "[heap]" || region.name.starts_with("[anon")) return RegionUse::kHeap;
  return RegionUse::kFile;
}

std::uint64_t number_of(std::string_view text) {
  std::uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// Blocks of objects that lie beside pools: the system puts what is mapped for large blocks next to arenas, and then
// both are one mapping. Asked about objects in the order of their addresses.
class BlocksBesidePools {
 public:
  explicit BlocksBesidePools(const Snapshot& snapshot) : snapshot_(snapshot), buffers_(snapshot.buffers) {
    std::sort(buffers_.begin(), buffers_.end(), [](const Buffer& a, const Buffer& b) { return a.owner < b.owner; });
  }

  // Bytes of the object's own block; 0 if it lies in a pool.
  std::uint64_t of(Node node) {
    const std::uint64_t address = snapshot_.address[node];
    const std::vector<Pool>& pools = snapshot_.pools;
    while (pool_ < pools.size() && pools[pool_].address + bytes_of(pools[pool_]) <= address) ++pool_;
    if (pool_ < pools.size() && pools[pool_].address <= address) return 0;
    std::uint64_t elsewhere = 0;
    for (; buffer_ < buffers_.size() && buffers_[buffer_].owner <= node; ++buffer_)
      if (buffers_[buffer_].owner == node) elsewhere += buffers_[buffer_].size;
    return less(snapshot_.size[node], elsewhere);
  }

 private:
  const Snapshot& snapshot_;
  std::vector<Buffer> buffers_;
  std::size_t pool_ = 0, buffer_ = 0;
};

// What objects own that is not in memory for the system's allocator: in mappings of files (mmap), beside pools that
// share a mapping with large blocks, or never written to.
struct Buffers {
  std::uint64_t not_in_heap = 0;
  std::array<std::uint64_t, kUses> resident{};  // by use; none for the heap, of which objects tell themselves
};
Buffers buffers_of(const Snapshot& snapshot, const std::vector<RegionFacts>& facts) {
  Buffers found;
  if (snapshot.buffers.empty()) return found;
  const Extents extents = extents_of(snapshot);
  for (const Extent& extent : extents.all) found.not_in_heap += extent.own;
  for (std::size_t i = 0; i < facts.size(); ++i) {
    const std::uint64_t here = std::min(extents.in[i], room_for_buffers(snapshot.regions[i], facts[i]));
    if (facts[i].use == RegionUse::kHeap)
      found.not_in_heap -= here;
    else
      found.resident[static_cast<std::size_t>(facts[i].use)] += here;
  }
  return found;
}

// In files lie the objects themselves, and not what they own elsewhere: of all there, as large a part as is known to.
void correct_files(const Snapshot& snapshot, std::vector<RegionFacts>& facts) {
  const std::uint64_t in_files = number_of(snapshot.meta_value("static_bytes"));
  std::uint64_t all = 0;
  for (const RegionFacts& each : facts) all += each.use == RegionUse::kFile ? each.object_bytes : 0;
  if (in_files == 0 || all <= in_files) return;
  const double part = static_cast<double>(in_files) / static_cast<double>(all);
  for (std::size_t i = 0; i < facts.size(); ++i)
    if (facts[i].use == RegionUse::kFile)
      facts[i].own = less(snapshot.regions[i].resident,
                          static_cast<std::uint64_t>(part * static_cast<double>(facts[i].object_bytes)));
}

}  // namespace

std::string_view use_name(RegionUse use) {
  constexpr std::array<std::string_view, kUses> kNames{"small objects", "thread stack", "heap", "file", "system"};
  return kNames[static_cast<std::size_t>(use)];
}

std::vector<RegionFacts> region_facts(const Snapshot& snapshot) {
  const std::vector<std::uint64_t> threads = thread_addresses(snapshot);
  const std::vector<Arena> all_arenas = arenas(snapshot);
  std::vector<RegionFacts> found;
  BlocksBesidePools blocks(snapshot);
  auto arena = all_arenas.begin();
  for (const Region& region : snapshot.regions) {
    RegionFacts facts;
    while (arena != all_arenas.end() && arena->address < region.start) ++arena;
    for (; arena != all_arenas.end() && lies_in(region, arena->address); ++arena) {
      facts.pool_bytes += arena->bytes;
      facts.pool_used += arena->used;
    }
    const auto [first, last] = objects_between(snapshot, region.start, region.start + region.size);
    facts.objects = last - first;
    for (Node node = first; node < last; ++node) {
      facts.object_bytes += snapshot.size[node];
      if (facts.pool_bytes != 0) facts.blocks_beside_pools += blocks.of(node);
    }
    facts.use = use_of(region, facts.pool_bytes != 0, threads);
    const bool has_pools = facts.pool_bytes != 0;
    const std::uint64_t inner = has_pools ? facts.pool_bytes + facts.blocks_beside_pools : facts.object_bytes;
    facts.own = less(region.resident, inner);
    found.push_back(facts);
  }
  correct_files(snapshot, found);
  return found;
}

std::uint64_t room_for_buffers(const Region& region, const RegionFacts& facts) {
  return less(region.resident, facts.pool_used);
}

Resident resident(const Snapshot& snapshot) {
  Resident result;
  std::array<std::uint64_t, kUses> by_use{};
  std::uint64_t blocks_beside_pools = 0;
  const std::vector<RegionFacts> facts = region_facts(snapshot);
  for (std::size_t i = 0; i < facts.size(); ++i) {
    blocks_beside_pools += facts[i].blocks_beside_pools;
    by_use[static_cast<std::size_t>(facts[i].use)] += snapshot.regions[i].resident;
    result.total += snapshot.regions[i].resident;
  }
  if (result.total == 0) return result;
  std::uint64_t used = 0;
  std::uint64_t room = 0;
  for (const Arena& arena : arenas(snapshot)) {
    used += arena.used;
    room += arena.bytes;
  }
  const auto in_use = [&](RegionUse use) { return by_use[static_cast<std::size_t>(use)]; };
  const auto add = [&](std::string what, std::uint64_t bytes) { result.parts.push_back({std::move(what), bytes}); };
  result.small_used = used;
  result.small_explained = std::min(used, number_of(snapshot.meta_value("small_block_bytes")));
  const Buffers buffers = buffers_of(snapshot, facts);
  const auto beside_buffers = [&](RegionUse use) {
    return less(in_use(use), buffers.resident[static_cast<std::size_t>(use)]);
  };
  // Pages of pools that have never been written to are not in memory.
  const std::uint64_t free = std::min(less(room, used), less(beside_buffers(RegionUse::kPools), used));
  add("objects, in small blocks", result.small_explained);
  add("other small blocks in use", used - result.small_explained);
  add("free in pools", free);
  const std::uint64_t beside_pools = less(beside_buffers(RegionUse::kPools), used + free);
  const std::uint64_t large_beside_pools = std::min(beside_pools, blocks_beside_pools);
  add("beside pools in their mappings", beside_pools - large_beside_pools);
  const std::uint64_t heap = in_use(RegionUse::kHeap);
  const std::uint64_t large_blocks = number_of(snapshot.meta_value("large_block_bytes"));
  const std::uint64_t large = std::min(heap, less(large_blocks, buffers.not_in_heap + blocks_beside_pools));
  result.small_free = free;
  result.native = heap - large;
  add("objects, in large blocks and buffers",
      std::accumulate(buffers.resident.begin(), buffers.resident.end(), large + large_beside_pools));
  add("other memory of native code", result.native);
  add("program, libraries and mapped files", beside_buffers(RegionUse::kFile));
  add("thread stacks", beside_buffers(RegionUse::kStack));
  add("of the kernel", beside_buffers(RegionUse::kSystem));
  return result;
}

}  // namespace plimsoll::heap
