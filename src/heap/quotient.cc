#include "heap/quotient.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include "heap/class_pattern.h"

namespace plimsoll::heap {
namespace {

class Quotient {
 public:
  Quotient(const Snapshot& from, const Grouping& group) : from_(from), group_(group), place_(group.size(), kNoNode) {
    Node next = 0;
    for (Node node = 0; node < group.size(); ++node)
      if (group[node] == node) place_[node] = next++;
    for (Node node = 0; node < group.size(); ++node) place_[node] = place_[group[node]];
    count_ = next;
  }

  Snapshot run() {
    out_.meta = from_.meta;
    out_.names = from_.names;
    out_.pools = from_.pools;
    out_.regions = from_.regions;
    out_.buffers = from_.buffers;
    for (Buffer& buffer : out_.buffers) buffer.owner = place_[buffer.owner];
    out_.lost_edges = from_.lost_edges;
    out_.complete = from_.complete;
    out_.bases = base_names(from_);
    out_.types = from_.types;
    for (Type& type : out_.types)
      if (type.object != kNoNode) type.object = place_[type.object];
    columns();
    texts();
    hashes();
    edges();
    weak();
    folded();
    return std::move(out_);
  }

 private:
  [[nodiscard]] bool is_kept(Node node) const { return group_[node] == node; }

  template <typename Column>
  Column kept(const Column& column) const {
    Column result;
    for (Node node = 0; node < column.size(); ++node)
      if (is_kept(node)) result.push_back(column[node]);
    return result;
  }

  void columns() {
    out_.type = kept(from_.type);
    out_.address = kept(from_.address);
    out_.refcount = kept(from_.refcount);
    out_.generation = kept(from_.generation);
    out_.allocated.codes = from_.allocated.codes;
    out_.allocated.frames = from_.allocated.frames;
    out_.allocated.of = kept(from_.allocated.of);
    for (Node node = 0; node < from_.object_count; ++node) out_.object_count += is_kept(node) ? 1 : 0;
    std::vector<std::uint64_t> sizes(count_, 0);
    for (Node node = 0; node < from_.size.size(); ++node) sizes[place_[node]] += from_.size[node];
    out_.size = WideColumn(sizes);
  }

  void texts() {
    for (std::size_t i = 0; i < from_.text_node.size(); ++i) {
      if (!is_kept(from_.text_node[i])) continue;
      out_.texts += from_.text_of_row(i);
      out_.text_node.push_back(place_[from_.text_node[i]]);
      out_.text_end.push_back(static_cast<std::uint32_t>(out_.texts.size()));
    }
  }

  void hashes() {
    for (std::size_t i = 0; i < from_.hashed.size(); ++i) {
      if (!is_kept(from_.hashed[i])) continue;
      out_.hashed.push_back(place_[from_.hashed[i]]);
      out_.hash.push_back(from_.hash[i]);
    }
  }

  // Members by group, in their order, the one that the group is first.
  [[nodiscard]] Graph members() const {
    Graph graph;
    graph.first.assign(std::size_t{count_} + 2, 0);
    for (const Node place : place_) ++graph.first[place + 2];
    std::partial_sum(graph.first.begin(), graph.first.end(), graph.first.begin());
    graph.targets.resize(place_.size());
    std::vector<std::uint32_t> next(graph.first.begin() + 1, graph.first.end());
    for (Node node = 0; node < place_.size(); ++node)
      if (is_kept(node)) graph.targets[next[place_[node]]++] = node;
    for (Node node = 0; node < place_.size(); ++node)
      if (!is_kept(node)) graph.targets[next[place_[node]]++] = node;
    graph.first.erase(graph.first.begin());
    return graph;
  }

  // The edges of a group of several. An edge says by where it stands what it is, the n-th element or the value of the
  // key before it, so that these are all kept, but for elements that another member holds, too.
  void edges_of(Node group, std::span<const Node> members, std::vector<Node>& last_member) {
    const std::size_t first = out_.kind.size();
    for (const Node member : members)
      for (std::uint32_t edge = from_.graph.first[member]; edge < from_.graph.first[member + 1]; ++edge) {
        const Node target = place_[from_.graph.targets[edge]];
        EdgeKind kind = from_.kind[edge];
        const Node holder = last_member[target];
        const bool is_held = holder != kNoNode && place_[holder] == group;
        const bool is_of_pair = kind == EdgeKind::kKey || kind == EdgeKind::kValue;
        const bool is_again = is_held && !is_of_pair && !(kind == EdgeKind::kElement && holder == member);
        if (target == group || is_again) continue;
        last_member[target] = member;
        const bool has_key = edge > from_.graph.first[member] && from_.kind[edge - 1] == EdgeKind::kKey &&
                             place_[from_.graph.targets[edge - 1]] != group;
        const bool is_after_key = out_.kind.size() > first && out_.kind.back() == EdgeKind::kKey;
        if (kind == EdgeKind::kValue && !has_key && is_after_key) kind = EdgeKind::kReference;  // that is another's
        put_edge(target, kind, edge);
      }
  }
  void put_edge(Node target, EdgeKind kind, std::uint32_t edge) {
    out_.graph.targets.push_back(target);
    out_.kind.push_back(kind);
    out_.name.push_back(from_.name[edge]);
  }

  void edges() {
    const Graph all = members();
    std::vector<Node> last_member(count_, kNoNode);  // by target: who holds it, of the group at hand
    for (Node group = 0; group < count_; ++group) {
      const auto members = all.from(group);
      if (members.size() > 1) edges_of(group, members, last_member);
      for (const Node member : members.first(members.size() > 1 ? 0 : 1))
        for (std::uint32_t edge = from_.graph.first[member]; edge < from_.graph.first[member + 1]; ++edge)
          put_edge(place_[from_.graph.targets[edge]], from_.kind[edge], edge);
      out_.graph.first.push_back(static_cast<std::uint32_t>(out_.graph.targets.size()));
    }
  }

  void weak() {
    for (const auto& [holder, held] : from_.weak)
      if (place_[holder] != place_[held]) out_.weak.emplace_back(place_[holder], place_[held]);
    std::stable_sort(out_.weak.begin(), out_.weak.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
  }

  void folded() {
    for (const auto& [address, node] : from_.folded) out_.folded.emplace_back(address, place_[node]);
    for (Node node = 0; node < from_.object_count; ++node)
      if (!is_kept(node)) out_.folded.emplace_back(from_.address[node], place_[node]);
    std::sort(out_.folded.begin(), out_.folded.end());
  }

  const Snapshot& from_;
  const Grouping& group_;
  std::vector<Node> place_;  // by node: that of its group
  Node count_ = 0;
  Snapshot out_;
};

}  // namespace

Snapshot quotient(const Snapshot& snapshot, const Grouping& group) { return Quotient(snapshot, group).run(); }

}  // namespace plimsoll::heap
