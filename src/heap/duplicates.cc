#include "heap/duplicates.h"

#include <algorithm>
#include <tuple>

namespace plimsoll::heap {

std::vector<Duplicate> duplicates(const Snapshot& snapshot, const Places& places) {
  // By hash, then class, then address.
  std::vector<std::pair<std::uint64_t, Node>> order;
  order.reserve(snapshot.hashed.size());
  for (std::size_t i = 0; i < snapshot.hashed.size(); ++i) order.emplace_back(snapshot.hash[i], snapshot.hashed[i]);
  const auto key = [&](const auto& each) { return std::tuple(each.first, snapshot.type[each.second], each.second); };
  std::sort(order.begin(), order.end(), [&](const auto& a, const auto& b) { return key(a) < key(b); });

  std::vector<Duplicate> found;
  std::vector<std::uint32_t> where;
  for (std::size_t start = 0, end = 0; start < order.size(); start = end) {
    const Node first = order[start].second;
    Duplicate each{snapshot.type[first], 0, 0, 0, first, 0, 0};
    std::uint64_t largest = 0;
    for (end = start;
         end < order.size() && order[end].first == order[start].first && snapshot.type[order[end].second] == each.type;
         ++end) {
      const std::uint64_t size = snapshot.size[order[end].second];
      each.size += size;
      largest = std::max(largest, size);
    }
    each.count = end - start;
    each.waste = each.size - largest;
    if (each.count < 2) continue;
    where.clear();
    for (std::size_t i = start; i < end; ++i) where.push_back(places.of[order[i].second]);
    std::sort(where.begin(), where.end());
    for (std::size_t i = 0, next = 0; i < where.size(); i = next) {
      while (next < where.size() && where[next] == where[i]) ++next;
      if (next - i <= each.held_there) continue;
      each.held_there = next - i;
      each.place = where[i];
    }
    found.push_back(each);
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Duplicate& a, const Duplicate& b) { return a.waste > b.waste; });
  return found;
}

}  // namespace plimsoll::heap
