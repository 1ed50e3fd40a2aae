#include "heap/memory_view.h"

#include <algorithm>
#include <map>
#include <string>

#include "base/hexadecimal.h"
#include "heap/buffers.h"
#include "heap/resident.h"

namespace plimsoll::heap {
namespace {

class MemoryView {
 public:
  explicit MemoryView(Snapshot snapshot)
      : out_(std::move(snapshot)), facts_(region_facts(out_)), extents_(extents_of(out_)) {}

  Snapshot run() {
    // Before sizes are changed.
    const Resident rss = resident(out_);
    add_buffers();
    if (rss.total != 0) {
      add_regions();
      add("[allocator]", rss.small_free, "free in pools");
      add("[native memory]", rss.small_used - rss.small_explained, "small blocks that are no objects");
      add("[native memory]", rss.native, "memory of native code, and what malloc has free");
    }
    if (nodes_.empty()) return std::move(out_);
    rebuild();
    return std::move(out_);
  }

 private:
  // A node that is no object.
  struct Virtual {
    std::uint32_t type = 0;
    std::uint64_t size = 0;
    std::string text;
  };

  std::uint32_t type_of(const std::string& name) {
    const auto [found, is_new] = types_.try_emplace(name, static_cast<std::uint32_t>(out_.types.size()));
    if (is_new) out_.types.push_back({name, kNoNode});
    return found->second;
  }
  void add(const std::string& type, std::uint64_t size, std::string text) {
    if (size == 0) return;
    of_memory_.push_back(number_of_next());
    nodes_.push_back({type_of(type), size, std::move(text)});
  }
  // New nodes stand where the root was, which is the last one again.
  [[nodiscard]] Node number_of_next() const { return out_.root() + static_cast<Node>(nodes_.size()); }

  void add_buffers() {
    const Node first = number_of_next();
    sizes_ = out_.size.values();
    resident_.assign(1, 0);
    for (std::size_t i = 0; i < out_.regions.size(); ++i)
      resident_.push_back(resident_.back() + resident_in(i, 0, ~std::uint64_t{0}));
    for (const Extent& extent : extents_.all)
      nodes_.push_back({type_of("[buffer]"), in_memory(extent), "buffer at " + hexadecimal(extent.start)});
    for (std::size_t i = 0; i < out_.buffers.size(); ++i) {
      const Buffer& buffer = out_.buffers[i];
      sizes_[buffer.owner] -= std::min(sizes_[buffer.owner], buffer.size);
      held_.emplace_back(buffer.owner, first + extents_.of[i]);
    }
    std::stable_sort(held_.begin(), held_.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  }

  // How much of what is an extent's own is in memory: of each mapping that it reaches into as large a part as of all
  // extents there can be.
  [[nodiscard]] std::uint64_t in_memory(const Extent& extent) const {
    if (out_.regions.empty()) return extent.own;
    auto region = std::upper_bound(out_.regions.begin(), out_.regions.end(), extent.start,
                                   [](std::uint64_t at, const Region& each) { return at < each.start; });
    if (region != out_.regions.begin()) --region;
    const auto behind = std::lower_bound(region, out_.regions.end(), extent.end,
                                         [](const Region& each, std::uint64_t at) { return each.start < at; });
    if (region == behind) return 0;
    const auto first = static_cast<std::size_t>(region - out_.regions.begin());
    const auto last = static_cast<std::size_t>(behind - out_.regions.begin()) - 1;
    std::uint64_t found = resident_in(first, extent.start, extent.end);
    // Between these two it has all.
    if (last > first) found += resident_in(last, extent.start, extent.end) + resident_[last] - resident_[first + 1];
    return share(extent.own, found, extent.end - extent.start);
  }
  // Of what extents have between two addresses in that mapping.
  [[nodiscard]] std::uint64_t resident_in(std::size_t at, std::uint64_t start, std::uint64_t end) const {
    const Region& region = out_.regions[at];
    start = std::max(start, region.start);
    end = std::min(end, region.start + region.size);
    return start < end ? share(end - start, room_for_buffers(region, facts_[at]), extents_.in[at]) : 0;
  }
  // `bytes` x `part` / `all`, and not more than `bytes`.
  static std::uint64_t share(std::uint64_t bytes, std::uint64_t part, std::uint64_t all) {
    if (part >= all) return bytes;
    return static_cast<std::uint64_t>(static_cast<double>(bytes) * static_cast<double>(part) /
                                      static_cast<double>(all));
  }

  // A file is one node, however many mappings it has.
  void add_regions() {
    std::map<std::string, std::uint64_t> libraries, files;
    std::map<std::string, bool> is_library;
    for (const Region& region : out_.regions) is_library[region.name] |= region.is_executable;
    std::uint64_t beside_pools = 0, system = 0;
    for (std::size_t i = 0; i < facts_.size(); ++i) {
      const Region& region = out_.regions[i];
      const std::uint64_t own = facts_[i].own - std::min(facts_[i].own, extents_.in[i]);
      switch (facts_[i].use) {
        case RegionUse::kFile: (is_library[region.name] ? libraries : files)[region.name] += own; break;
        case RegionUse::kStack: add("[stack]", own, "thread stack at " + hexadecimal(region.start)); break;
        case RegionUse::kSystem: system += own; break;
        case RegionUse::kPools: beside_pools += own; break;
        case RegionUse::kHeap: break;  // as a whole: which blocks are objects' is not known one by one
      }
    }
    for (const auto& [name, own] : libraries) add("[library]", own, "library " + name);
    for (const auto& [name, own] : files) add("[mapping]", own, "mapping " + name);
    add("[allocator]", beside_pools, "beside pools in their mappings");
    add("[kernel]", system, "pages of the kernel's");
  }

  void rebuild() {
    const Node old_root = out_.root();
    const auto memory = number_of_next();
    nodes_.push_back({type_of("[memory]"), 0, {}});
    Graph graph;
    std::vector<EdgeKind> kinds;
    std::vector<std::uint32_t> names;
    const auto edge = [&](Node target, EdgeKind kind, std::uint32_t name) {
      graph.targets.push_back(target);
      kinds.push_back(kind);
      names.push_back(name);
    };
    const auto copy = [&](Node node) {
      for (std::uint32_t i = out_.graph.first[node]; i < out_.graph.first[node + 1]; ++i)
        edge(out_.graph.targets[i], out_.kind[i], out_.name[i]);
    };
    const auto end_row = [&] { graph.first.push_back(static_cast<std::uint32_t>(graph.targets.size())); };
    auto held = held_.begin();
    for (Node node = 0; node < old_root; ++node) {
      copy(node);
      for (; held != held_.end() && held->first == node; ++held) edge(held->second, EdgeKind::kReference, 0);
      end_row();
    }
    for (Node node = old_root; node <= memory; ++node) {
      if (node == memory)
        for (const Node each : of_memory_) edge(each, EdgeKind::kReference, 0);
      end_row();
    }
    copy(old_root);
    edge(memory, EdgeKind::kReference, 0);
    end_row();
    out_.graph = std::move(graph);
    out_.kind = std::move(kinds);
    out_.name = std::move(names);
    add_rows(old_root);
  }

  void add_rows(Node old_root) {
    const std::uint32_t root_type = out_.type[old_root];
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      const Virtual& node = nodes_[i];
      out_.type.insert(out_.type.end() - 1, node.type);
      sizes_.insert(sizes_.end() - 1, node.size);
      if (node.text.empty()) continue;
      out_.texts += node.text;
      out_.text_node.push_back(old_root + static_cast<Node>(i));
      out_.text_end.push_back(static_cast<std::uint32_t>(out_.texts.size()));
    }
    out_.type.back() = root_type;
    out_.size = WideColumn(sizes_);
    out_.address.resize(out_.type.size());
    out_.refcount.resize(out_.type.size(), 0);
  }

  Snapshot out_;
  const std::vector<RegionFacts> facts_;
  const Extents extents_;
  std::vector<std::uint64_t> resident_;  // of what extents have in the mappings before each
  std::vector<std::uint64_t> sizes_;     // by node: those of out_ while they change
  std::vector<Virtual> nodes_;
  std::vector<Node> of_memory_;                 // those that no object holds
  std::vector<std::pair<Node, Node>> held_;     // owners and their buffers, in the order of owners
  std::map<std::string, std::uint32_t> types_;  // of virtual nodes
};

}  // namespace

Snapshot with_memory(Snapshot snapshot) { return MemoryView(std::move(snapshot)).run(); }

}  // namespace plimsoll::heap
