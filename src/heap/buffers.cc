#include "heap/buffers.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>

namespace plimsoll::heap {
namespace {

// Where an extent begins or ends.
struct Edge {
  std::uint64_t at = 0;
  bool begins = false;
  std::uint32_t extent = 0;
};

std::vector<Edge> edges_of(const std::vector<Extent>& extents) {
  std::vector<Edge> edges;
  for (std::uint32_t i = 0; i < extents.size(); ++i) {
    edges.push_back({extents[i].start, true, i});
    edges.push_back({extents[i].end, false, i});
  }
  std::sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) {
    return std::tuple(a.at, a.begins, a.extent) < std::tuple(b.at, b.begins, b.extent);
  });
  return edges;
}

// Bytes between two addresses, by region; the addresses only ever ascend.
class RegionBytes {
 public:
  explicit RegionBytes(const std::vector<Region>& regions) : regions_(regions), bytes_(regions.size(), 0) {}

  void add(std::uint64_t start, std::uint64_t end) {
    while (next_ < regions_.size() && end_of(next_) <= start) ++next_;
    for (std::size_t i = next_; i < regions_.size() && regions_[i].start < end; ++i)
      bytes_[i] += std::min(end, end_of(i)) - std::max(start, regions_[i].start);
  }
  std::vector<std::uint64_t> take() { return std::move(bytes_); }

 private:
  [[nodiscard]] std::uint64_t end_of(std::size_t i) const { return regions_[i].start + regions_[i].size; }

  const std::vector<Region>& regions_;
  std::vector<std::uint64_t> bytes_;
  std::size_t next_ = 0;
};

}  // namespace

Extents extents_of(const Snapshot& snapshot) {
  const std::vector<Buffer>& buffers = snapshot.buffers;
  std::vector<std::uint32_t> order(buffers.size());
  std::iota(order.begin(), order.end(), 0U);
  const auto key = [&](std::uint32_t i) { return std::tuple(buffers[i].start, ~buffers[i].size); };
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return key(a) < key(b); });
  Extents found;
  found.of.resize(buffers.size());
  for (const std::uint32_t i : order) {
    const Extent extent{buffers[i].start, buffers[i].start + buffers[i].size, 0};
    const bool is_again =
        !found.all.empty() && found.all.back().start == extent.start && found.all.back().end == extent.end;
    if (!is_again) found.all.push_back(extent);
    found.of[i] = static_cast<std::uint32_t>(found.all.size() - 1);
  }
  // From one end of an extent to the next all bytes are of the innermost that is open: the last that began.
  RegionBytes in(snapshot.regions);
  std::set<std::uint32_t> open;
  std::uint64_t before = 0;
  for (const Edge& edge : edges_of(found.all)) {
    if (!open.empty() && edge.at > before) {
      found.all[*open.rbegin()].own += edge.at - before;
      in.add(before, edge.at);
    }
    before = edge.at;
    if (edge.begins)
      open.insert(edge.extent);
    else
      open.erase(edge.extent);
  }
  found.in = in.take();
  return found;
}

}  // namespace plimsoll::heap
