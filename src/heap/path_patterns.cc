#include "heap/path_patterns.h"

#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>
#include <boost/unordered/unordered_flat_set.hpp>
#include <functional>
#include <map>
#include <queue>
#include <string_view>
#include <tuple>

namespace plimsoll::heap {
namespace {

// How an object of a class holds another: what makes a step.
using Label = std::tuple<std::uint32_t, EdgeKind, std::uint32_t>;  // type, kind, name

// A search from the object up to the root, in which a state is all objects that are reached by the same labels. States
// that can be finished in the fewest steps come first.
class Search {
 public:
  Search(const Snapshot& snapshot, Node node, std::size_t most_references)
      : snapshot_(snapshot), incoming_(incoming_edges(snapshot.graph)), left_(most_references) {
    measure_distances();
    find_same_names();
    add({kNone, {}, {node}, 0, false});
  }

  PathPatterns run(std::size_t most) {
    PathPatterns result;
    while (!open_.empty() && result.patterns.size() < most) {
      const std::size_t number = std::get<2>(open_.top());
      open_.pop();
      if (states_[number].nodes.front() == snapshot_.root())
        result.patterns.push_back(pattern(number));
      else if (!is_out_of_budget_)
        expand(number);
    }
    result.is_cut = is_out_of_budget_ || !open_.empty();
    return result;
  }

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};
  static constexpr std::size_t kMostStates = std::size_t{1} << 18U;

  // Objects that hold those of the state below.
  struct State {
    std::size_t below = kNone;
    Label label;
    std::vector<Node> nodes;  // sorted
    std::uint32_t steps = 0;
    bool repeats = false;
  };
  [[nodiscard]] static bool has(const std::vector<Node>& sorted, Node node) {
    return std::binary_search(sorted.begin(), sorted.end(), node);
  }

  void measure_distances() {
    distance_.assign(snapshot_.graph.size(), kFar);
    std::vector<Node> queue{snapshot_.root()};
    distance_[snapshot_.root()] = 0;
    for (std::size_t next = 0; next < queue.size(); ++next)
      for (const Node target : snapshot_.graph.from(queue[next]))
        if (distance_[target] == kFar) {
          distance_[target] = distance_[queue[next]] + 1;
          queue.push_back(target);
        }
  }

  // A file may have a name several times.
  void find_same_names() {
    boost::unordered_flat_map<std::string_view, std::uint32_t> known;
    same_name_.assign(std::max<std::size_t>(snapshot_.names.size(), 1), 0);
    for (std::uint32_t i = 0; i < snapshot_.names.size(); ++i)
      same_name_[i] = known.try_emplace(snapshot_.names[i], i).first->second;
  }

  void add(State state) {
    std::uint32_t nearest = kFar;
    for (const Node node : state.nodes) nearest = std::min(nearest, distance_[node]);
    if (nearest == kFar) return;
    if (states_.size() == kMostStates) {
      is_out_of_budget_ = true;
      return;
    }
    open_.emplace(std::uint64_t{state.steps} + nearest, nearest, states_.size());
    states_.push_back(std::move(state));
  }

  [[nodiscard]] Node holder_of(std::uint32_t edge) const {
    const auto& first = snapshot_.graph.first;
    return static_cast<Node>(std::upper_bound(first.begin(), first.end(), edge) - first.begin() - 1);
  }
  [[nodiscard]] Label label_of(Node holder, std::uint32_t edge) const {
    return {snapshot_.type[holder], snapshot_.kind[edge], same_name_[snapshot_.name[edge]]};
  }
  // visit(holder, label) for all that hold the node and are not on the way from the object to this state.
  template <typename Visit>
  void each_holder(Node node, std::size_t number, Visit visit) {
    for (std::uint32_t i = incoming_.first[node]; i < incoming_.first[node + 1]; ++i) {
      if (left_ == 0) {
        is_out_of_budget_ = true;
        return;
      }
      --left_;
      const Node holder = holder_of(incoming_.edges[i]);
      bool is_below = false;
      for (std::size_t at = number; at != kNone && !is_below; at = states_[at].below)
        is_below = has(states_[at].nodes, holder);
      if (!is_below) visit(holder, label_of(holder, incoming_.edges[i]));
    }
  }

  void expand(std::size_t number) {
    std::map<Label, std::vector<Node>> found;
    for (const Node node : states_[number].nodes)
      each_holder(node, number, [&](Node holder, const Label& label) { found[label].push_back(holder); });
    for (auto& [label, nodes] : found) {
      State state{number, label, std::move(nodes), states_[number].steps + 1, false};
      close(state, number);
      add(std::move(state));
    }
  }

  // With all that hold these by the same label, and so on: runs of one label are one step. A linked list has as many
  // rounds as nodes, so that none may look at all that are found already.
  void close(State& state, std::size_t number) {
    sort_unique(state.nodes);
    boost::unordered_flat_set<Node> known(state.nodes.begin(), state.nodes.end());
    std::vector<Node> fresh = state.nodes;
    while (!fresh.empty()) {
      std::vector<Node> next;
      for (const Node node : fresh)
        each_holder(node, number, [&](Node holder, const Label& label) {
          if (label == state.label && known.insert(holder).second) next.push_back(holder);
        });
      state.repeats = state.repeats || !next.empty();
      state.nodes.insert(state.nodes.end(), next.begin(), next.end());
      fresh = std::move(next);
    }
    std::sort(state.nodes.begin(), state.nodes.end());
  }
  static void sort_unique(std::vector<Node>& nodes) {
    std::sort(nodes.begin(), nodes.end());
    nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  }

  // From the root down again: of each state only what is reached from there.
  [[nodiscard]] PathPattern pattern(std::size_t number) const {
    PathPattern steps;
    std::vector<Node> reached = states_[number].nodes;
    for (; states_[number].below != kNone; number = states_[number].below) {
      const State& state = states_[number];
      const State& below = states_[state.below];
      PatternStep step{reached.front(), 0, 0, false};
      std::vector<Node> next;
      boost::unordered_flat_set<Node> known(reached.begin(), reached.end());
      std::vector<Node> open = std::move(reached);
      while (!open.empty()) {
        const Node holder = open.back();
        open.pop_back();
        for (std::uint32_t edge = snapshot_.graph.first[holder]; edge < snapshot_.graph.first[holder + 1]; ++edge) {
          if (label_of(holder, edge) != state.label) continue;
          const Node held = snapshot_.graph.targets[edge];
          if (has(below.nodes, held)) {
            if (next.empty()) step = {holder, edge, 0, step.repeats};
            next.push_back(held);
          } else if (state.repeats && has(state.nodes, held) && known.insert(held).second) {
            open.push_back(held);
            step.repeats = true;
          }
        }
      }
      step.holders = known.size();
      steps.push_back(step);
      sort_unique(next);
      reached = std::move(next);
    }
    return steps;
  }

  static constexpr std::uint32_t kFar = ~std::uint32_t{0};
  using Open = std::tuple<std::uint64_t, std::uint32_t, std::size_t>;  // steps in all, thereof to go, and number

  const Snapshot& snapshot_;
  const IncomingEdges incoming_;
  std::size_t left_;
  bool is_out_of_budget_ = false;
  std::vector<std::uint32_t> distance_;   // by node, from the root
  std::vector<std::uint32_t> same_name_;  // by name: the first that reads so
  std::vector<State> states_;
  std::priority_queue<Open, std::vector<Open>, std::greater<>> open_;
};

}  // namespace

std::string describe_holders(const Snapshot& snapshot, const PatternStep& step) {
  if (step.holders == 1) return describe(snapshot, step.holder);
  return std::to_string(step.holders) + " of " + snapshot.type_name(step.holder);
}

std::string describe_hold(const Snapshot& snapshot, const PatternStep& step) {
  if (step.holders == 1) return describe_edge(snapshot, step.holder, step.edge);
  switch (snapshot.kind[step.edge]) {
    case EdgeKind::kElement:
    case EdgeKind::kValue: return "[]";
    default: return describe_edge(snapshot, step.holder, step.edge);
  }
}

PathPatterns path_patterns(const Snapshot& snapshot, Node node, std::size_t most, std::size_t most_references) {
  if (node == snapshot.root()) return {};
  return Search(snapshot, node, most_references).run(most);
}

}  // namespace plimsoll::heap
