#include "heap/arenas.h"

#include <algorithm>
#include <tuple>

#include "heap/pools.h"

namespace plimsoll::heap {
namespace {

constexpr std::uint64_t kLargestArena = std::uint64_t{2} << 20U;

}  // namespace

std::pair<Node, Node> objects_between(const Snapshot& snapshot, std::uint64_t start, std::uint64_t end) {
  return {static_cast<Node>(snapshot.address.lower_bound(start, snapshot.object_count)),
          static_cast<Node>(snapshot.address.lower_bound(end, snapshot.object_count))};
}

std::vector<Arena> arenas(const Snapshot& snapshot) {
  std::vector<Arena> found;
  std::uint32_t number = 0;
  std::uint64_t end = 0;
  std::uint64_t blocks = 0;
  const auto finish = [&] {
    if (found.empty()) return;
    Arena& arena = found.back();
    const auto [first, last] = objects_between(snapshot, arena.address, end);
    arena.objects = last - first;
    arena.other_blocks = blocks > arena.objects ? blocks - arena.objects : 0;
    blocks = 0;
  };
  for (const Pool& pool : snapshot.pools) {
    const bool is_same = !found.empty() && number == pool.arena && pool.address - found.back().address < kLargestArena;
    if (!is_same) {
      finish();
      found.push_back({});
      found.back().address = pool.address;
      number = pool.arena;
    }
    Arena& arena = found.back();
    ++arena.pools;
    arena.empty_pools += pool.used == 0 ? 1 : 0;
    arena.bytes += bytes_of(pool);
    arena.used += std::uint64_t{pool.used} * pool.block_bytes;
    blocks += pool.used;
    end = pool.address + bytes_of(pool);
  }
  finish();
  return found;
}

std::vector<Pinning> pinning(const Snapshot& snapshot, const std::vector<Arena>& arenas, double most_fill) {
  std::vector<Pinning> rows(snapshot.types.size());
  std::vector<std::uint64_t> last_seen(snapshot.types.size(), 0);  // number of the arena, from 1
  for (std::size_t i = 0; i < arenas.size(); ++i) {
    if (arenas[i].fill() > most_fill) continue;
    const auto [first, last] = objects_between(snapshot, arenas[i].address, arenas[i].address + arenas[i].bytes);
    bool is_alone = true;
    for (Node node = first; node < last; ++node) {
      const std::uint32_t type = snapshot.type[node];
      is_alone = is_alone && type == snapshot.type[first];
      Pinning& row = rows[type];
      row.type = type;
      row.arenas += last_seen[type] == i + 1 ? 0 : 1;
      last_seen[type] = i + 1;
      ++row.objects;
      row.size += snapshot.size[node];
    }
    if (is_alone && first < last) ++rows[snapshot.type[first]].alone;
  }
  std::erase_if(rows, [](const Pinning& row) { return row.objects == 0; });
  std::sort(rows.begin(), rows.end(), [](const Pinning& a, const Pinning& b) {
    return std::tuple(b.arenas, b.size, a.type) < std::tuple(a.arenas, a.size, b.type);
  });
  return rows;
}

}  // namespace plimsoll::heap
