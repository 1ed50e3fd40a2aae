// heap/roots.cc: what holds the objects that no recorded root reaches.
#include <algorithm>
#include <bit>

#include "heap/snapshot_reader.h"

namespace plimsoll::heap {
namespace {

// Follows edges from the nodes it is given, and remembers where it has been.
//
// In an old heap hardly anything lies near what leads to it. So nodes are taken in the order of their numbers, in which
// their edges lie in memory: a few rounds see nearly all of a heap. What is left then, like lists that lead backwards,
// is followed one by one.
class Reach {
 public:
  explicit Reach(const Graph& graph)
      : graph_(graph), seen_(graph.size() / kBits + 1, 0), open_(graph.size() / kBits + 1, 0) {}
  [[nodiscard]] bool has(Node node) const { return (seen_[node / kBits] & bit(node)) != 0; }
  // Where it has not been.
  [[nodiscard]] std::vector<Node> rest() const {
    std::vector<Node> nodes;
    for (std::size_t word = 0; word < seen_.size(); ++word)
      for (std::uint64_t unseen = ~seen_[word]; unseen != 0; unseen &= unseen - 1) {
        const auto node = static_cast<Node>(word * kBits + static_cast<std::size_t>(std::countr_zero(unseen)));
        if (node < graph_.size()) nodes.push_back(node);
      }
    return nodes;
  }
  // How many edges lead to each of these, which only hold one another.
  [[nodiscard]] std::vector<std::uint32_t> holders_of(const std::vector<Node>& rest) const {
    std::vector<std::uint32_t> before;  // of them, by word
    std::uint32_t sum = 0;
    for (const std::uint64_t word : seen_) {
      before.push_back(sum);
      sum += static_cast<std::uint32_t>(std::popcount(~word));
    }
    std::vector<std::uint32_t> holders(rest.size(), 0);
    for (const Node node : rest)
      for (const Node target : graph_.from(node)) {
        const std::uint64_t unseen_before = ~seen_[target / kBits] & (bit(target) - 1);
        if (!has(target)) ++holders[before[target / kBits] + static_cast<std::uint32_t>(std::popcount(unseen_before))];
      }
    return holders;
  }
  // Those of `rest` where it has not been, in the reverse of the order in which a search is done with them: before any
  // stands what leads to it, but for what it leads to itself (as Kosaraju finds cycles).
  [[nodiscard]] std::vector<Node> holders_first(const std::vector<Node>& rest) const {
    struct Open {
      Node node;
      std::uint32_t edge;  // the next to be followed
    };
    std::vector<std::uint64_t> seen = seen_;
    std::vector<Open> path;
    std::vector<Node> order;
    const auto enter = [&](Node node) {
      if ((seen[node / kBits] & bit(node)) != 0) return;
      seen[node / kBits] |= bit(node);
      path.push_back({node, graph_.first[node]});
    };
    for (const Node start : rest) {
      enter(start);
      while (!path.empty()) {
        Open& last = path.back();
        if (last.edge < graph_.first[last.node + 1]) {
          enter(graph_.targets[last.edge++]);
        } else {
          order.push_back(last.node);
          path.pop_back();
        }
      }
    }
    std::reverse(order.begin(), order.end());
    return order;
  }
  void from(const std::vector<Node>& starts) {
    for (const Node node : starts) add(node);
    for (int rounds = 0; rounds < kRounds && round() != 0; ++rounds) {
    }
    for (std::size_t word = 0; word < open_.size(); ++word)
      while (open_[word] != 0) stack_.push_back(take(word));
    finish();
  }
  void from(Node start) {
    if (has(start)) return;
    seen_[start / kBits] |= bit(start);
    stack_.push_back(start);
    finish();
  }

 private:
  static constexpr std::size_t kBits = 64;
  static constexpr int kRounds = 32;  // the last of which cost next to nothing
  static std::uint64_t bit(Node node) { return std::uint64_t{1} << (node % kBits); }

  void add(Node node) {
    const std::uint64_t is_new = bit(node) & ~seen_[node / kBits];
    seen_[node / kBits] |= is_new;
    open_[node / kBits] |= is_new;
  }
  // The first that is open of those in a word.
  Node take(std::size_t word) {
    const auto node = static_cast<Node>(word * kBits + static_cast<std::size_t>(std::countr_zero(open_[word])));
    open_[word] &= open_[word] - 1;
    return node;
  }
  // Follows all that are open, and those after them that this leads to. How many it were.
  std::size_t round() {
    std::size_t count = 0;
    for (std::size_t word = 0; word < open_.size(); ++word)
      for (; open_[word] != 0; ++count)
        for (const Node target : graph_.from(take(word))) add(target);
    return count;
  }
  void finish() {
    while (!stack_.empty()) {
      const Node node = stack_.back();
      stack_.pop_back();
      for (const Node target : graph_.from(node)) from_stack(target);
    }
  }
  void from_stack(Node node) {
    if (has(node)) return;
    seen_[node / kBits] |= bit(node);
    stack_.push_back(node);
  }

  const Graph& graph_;
  std::vector<std::uint64_t> seen_, open_;  // bits by node
  std::vector<Node> stack_;
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
  // The recorded kinds of roots are those nodes that are no objects and that nobody holds.
  std::vector<bool> is_held(count - snapshot.object_count, false);
  for (const Node target : snapshot.graph.targets)
    if (target >= snapshot.object_count) is_held[target - snapshot.object_count] = true;
  std::vector<Node> top;
  for (auto node = static_cast<Node>(snapshot.object_count); node < count; ++node)
    if (!is_held[node - snapshot.object_count]) top.push_back(node);
  Reach reach(snapshot.graph);
  reach.from(top);

  // Whoever has more references than we have found is held by what we do not see: C code. Where references are not
  // counted (0), that is taken to be so if nobody is seen to hold it.
  const std::vector<Node> rest = reach.rest();
  const std::vector<std::uint32_t> held_by = reach.holders_of(rest);
  std::vector<Node> native;
  for (std::size_t i = 0; i < rest.size() && snapshot.is_object(rest[i]); ++i) {
    const std::uint32_t references = snapshot.refcount[rest[i]];
    if (references == 0 ? held_by[i] == 0 : references > held_by[i]) native.push_back(rest[i]);
  }
  reach.from(native);
  // (Of a damaged file also kinds of roots that hold one another.)
  std::vector<Node> garbage;
  for (std::size_t i = 0; i < rest.size(); ++i)
    if (held_by[i] == 0 && !reach.has(rest[i])) garbage.push_back(rest[i]);
  reach.from(garbage);
  // What is left is held by cycles: of each that no other garbage holds, one.
  for (const Node node : reach.holders_first(rest)) {
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
