// heap/roots.cc: what holds the objects that no recorded root reaches.
#include <array>

#include "base/long_array.h"
#include "heap/snapshot_reader.h"

namespace plimsoll::heap {
namespace {

// Follows edges from the nodes it is given, and remembers where it has been. Where a node's edges stand, and then the
// edges, are fetched before it is that node's turn: in an old heap hardly anything lies near what leads to it.
class Reach {
 public:
  explicit Reach(const Graph& graph) : graph_(graph), seen_(graph.size(), false) {}
  [[nodiscard]] bool has(Node node) const { return seen_[node]; }
  void from(Node start) {
    add(start);
    while (fill())
      for (const Node target : graph_.from(next_[first_++ % kRoom])) add(target);
  }

 private:
  static constexpr std::size_t kRoom = 16;

  void add(Node node) {
    if (seen_[node]) return;
    seen_[node] = true;
    open_.push_back(node);
  }
  // False if nothing is left to be taken.
  bool fill() {
    for (; !open_.empty() && last_ - first_ < kRoom; open_.pop_back()) {
      __builtin_prefetch(&graph_.first[open_.back()]);
      next_[last_++ % kRoom] = open_.back();
      if (last_ - first_ > kRoom / 2)
        __builtin_prefetch(graph_.targets.data() + graph_.first[next_[(last_ - kRoom / 2 - 1) % kRoom]]);
    }
    return first_ != last_;
  }

  const Graph& graph_;
  std::vector<bool> seen_;
  std::vector<Node> open_;
  std::array<Node, kRoom> next_{};  // those from first_ to last_ - 1 are open, too
  std::size_t first_ = 0, last_ = 0;
};

std::uint32_t add_type(Snapshot& snapshot, std::string name) {
  snapshot.types.push_back({std::move(name), kNoNode});
  return static_cast<std::uint32_t>(snapshot.types.size() - 1);
}

void add_node(Snapshot& snapshot, std::uint32_t type, const std::vector<Node>& held) {
  snapshot.type.push_back(type);
  snapshot.size.push_back(0);
  snapshot.address.push_back(0);
  snapshot.refcount.push_back(0);
  snapshot.graph.targets.insert(snapshot.graph.targets.end(), held.begin(), held.end());
  snapshot.graph.first.push_back(static_cast<std::uint32_t>(snapshot.graph.targets.size()));
  snapshot.kind.resize(snapshot.graph.targets.size(), EdgeKind::kReference);
  snapshot.name.resize(snapshot.graph.targets.size(), 0);
}

}  // namespace

void add_roots(Snapshot& snapshot) {
  const auto count = static_cast<Node>(snapshot.type.size());
  LongArray<std::uint32_t> held_by(count, 0);
  for (const Node target : snapshot.graph.targets) ++held_by[target];

  // The recorded kinds of roots are those nodes that are no objects and that nobody holds.
  std::vector<Node> top;
  for (auto node = static_cast<Node>(snapshot.object_count); node < count; ++node)
    if (held_by[node] == 0) top.push_back(node);
  Reach reach(snapshot.graph);
  for (const Node node : top) reach.from(node);

  // Whoever has more references than we have found is held by what we do not see: C code. Where references are not
  // counted (0), that is taken to be so if nobody is seen to hold it.
  std::vector<Node> native;
  for (Node node = 0; node < snapshot.object_count; ++node) {
    const std::uint32_t references = snapshot.refcount[node];
    const bool has_more = references == 0 ? held_by[node] == 0 : references > held_by[node];
    if (has_more && !reach.has(node)) native.push_back(node);
  }
  for (const Node node : native) reach.from(node);
  std::vector<Node> garbage;
  // (Of a damaged file also kinds of roots that hold one another.)
  for (Node node = 0; node < count; ++node) {
    if (reach.has(node)) continue;
    garbage.push_back(node);
    reach.from(node);
  }

  add_node(snapshot, add_type(snapshot, "[native code]"), native);
  top.push_back(static_cast<Node>(snapshot.type.size() - 1));
  add_node(snapshot, add_type(snapshot, "[garbage]"), garbage);
  top.push_back(static_cast<Node>(snapshot.type.size() - 1));
  add_node(snapshot, add_type(snapshot, "[root]"), top);
}

}  // namespace plimsoll::heap
