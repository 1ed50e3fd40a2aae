// heap/roots.cc: what holds the objects that no recorded root reaches.
#include <algorithm>

#include "base/long_array.h"
#include "heap/snapshot_reader.h"

namespace plimsoll::heap {
namespace {

// Follows edges from the nodes it is given, and remembers where it has been.
class Reach {
 public:
  explicit Reach(const Graph& graph) : graph_(graph), seen_(graph.size(), false) {}
  [[nodiscard]] bool has(Node node) const { return seen_[node]; }
  void from(Node start) {
    if (seen_[start]) return;
    seen_[start] = true;
    open_.push_back(start);
    while (!open_.empty()) {
      const Node node = open_.back();
      open_.pop_back();
      for (const Node target : graph_.from(node)) {
        if (seen_[target]) continue;
        seen_[target] = true;
        open_.push_back(target);
      }
    }
  }

 private:
  const Graph& graph_;
  std::vector<bool> seen_;
  std::vector<Node> open_;
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
