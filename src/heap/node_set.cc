#include "heap/node_set.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "heap/class_pattern.h"

namespace plimsoll::heap {
namespace {

template <typename Combine>
void combine(std::vector<std::uint64_t>& words, const std::vector<std::uint64_t>& others, Combine with) {
  std::transform(words.begin(), words.end(), others.begin(), words.begin(), with);
}

// Marks what the open nodes lead to, by edges that keep alive, and is not marked yet.
void follow(const Graph& graph, std::vector<Node> open, NodeSet& marked) {
  while (!open.empty()) {
    const Node node = open.back();
    open.pop_back();
    for (const Node held : graph.from(node))
      if (marked.insert(held)) open.push_back(held);
  }
}

}  // namespace

NodeSet& NodeSet::operator|=(const NodeSet& other) {
  combine(words_, other.words_, std::bit_or<>{});
  return *this;
}

NodeSet& NodeSet::operator&=(const NodeSet& other) {
  combine(words_, other.words_, std::bit_and<>{});
  return *this;
}

NodeSet& NodeSet::operator-=(const NodeSet& other) {
  combine(words_, other.words_, [](std::uint64_t mine, std::uint64_t theirs) { return mine & ~theirs; });
  return *this;
}

NodeSet& NodeSet::operator^=(const NodeSet& other) {
  combine(words_, other.words_, std::bit_xor<>{});
  return *this;
}

bool NodeSet::is_within(const NodeSet& other) const {
  return std::equal(words_.begin(), words_.end(), other.words_.begin(),
                    [](std::uint64_t mine, std::uint64_t theirs) { return (mine & ~theirs) == 0; });
}

std::size_t NodeSet::count() const {
  return std::transform_reduce(words_.begin(), words_.end(), std::size_t{0}, std::plus<>{},
                               [](std::uint64_t word) { return static_cast<std::size_t>(std::popcount(word)); });
}

NodeSet all_objects(const Snapshot& snapshot) {
  NodeSet all(snapshot.object_count);
  for (Node node = 0; node < snapshot.object_count; ++node) all.insert(node);
  return all;
}

NodeSet objects_of(const Snapshot& snapshot, const std::string& class_pattern) {
  std::vector<bool> is_wanted;
  for (const Type& type : snapshot.types)
    is_wanted.push_back(type.name == class_pattern || matches_pattern(type.name, class_pattern));
  NodeSet found(snapshot.object_count);
  for (Node node = 0; node < snapshot.object_count; ++node)
    if (is_wanted[snapshot.type[node]]) found.insert(node);
  return found;
}

std::uint64_t size_of(const Snapshot& snapshot, const NodeSet& set) {
  std::uint64_t bytes = 0;
  set.for_each([&](Node node) { bytes += snapshot.size[node]; });
  return bytes;
}

NodeSet retained_by(const Snapshot& snapshot, const NodeSet& set) {
  // (Nodes that are no objects, roots and threads, come after the objects, and are marked, too.)
  NodeSet marked(snapshot.graph.size());
  set.for_each([&](Node node) { marked.insert(node); });
  if (marked.insert(snapshot.root())) follow(snapshot.graph, {snapshot.root()}, marked);
  NodeSet retained = set;
  for (Node node = 0; node < retained.universe(); ++node)
    if (!marked.contains(node)) retained.insert(node);
  return retained;
}

NodeSet among_all_nodes(const Snapshot& snapshot, const NodeSet& set) {
  NodeSet result(snapshot.graph.size());
  set.for_each([&](Node node) { result.insert(node); });
  return result;
}

std::uint64_t retained_size(const Snapshot& snapshot, const NodeSet& set) {
  return size_of(snapshot, retained_by(snapshot, among_all_nodes(snapshot, set)));
}

NodeSet held_by(const Snapshot& snapshot, const NodeSet& set) {
  NodeSet held(snapshot.object_count);
  set.for_each([&](Node node) {
    for (const Node each : snapshot.graph.from(node)) held.insert(each);
  });
  return held;
}

NodeSet holders_of(const Snapshot& snapshot, const NodeSet& set) {
  NodeSet holders(snapshot.object_count);
  for (Node node = 0; node < snapshot.object_count; ++node) {
    const auto held = snapshot.graph.from(node);
    if (std::any_of(held.begin(), held.end(), [&](Node each) { return set.contains(each); })) holders.insert(node);
  }
  return holders;
}

NodeSet reached_from(const Snapshot& snapshot, const NodeSet& set) {
  NodeSet reached = set;
  std::vector<Node> open;
  set.for_each([&](Node node) { open.push_back(node); });
  follow(snapshot.graph, std::move(open), reached);
  return reached;
}

}  // namespace plimsoll::heap
