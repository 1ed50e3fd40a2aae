#include "heap/analysis.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "base/hexadecimal.h"
#include "heap/object_finder.h"

namespace plimsoll::heap {

Dominance dominance(const Snapshot& snapshot) {
  Dominance result{dominator_tree(snapshot.graph, snapshot.root()), {}};
  result.retained = retained_sizes(result.tree, snapshot.size);
  return result;
}

// A walk down the tree counts, for each group, how many of it are above.
NodeSet topmost_of_their_group(const DominatorTree& tree, const std::vector<std::uint32_t>& group,
                               std::size_t group_count, const NodeSet& chosen) {
  NodeSet topmost(chosen.universe());
  if (tree.order.empty()) return topmost;
  const Graph children = tree_edges(tree);
  std::vector<std::uint32_t> next(children.first.begin(), children.first.end() - 1);
  std::vector<std::uint32_t> above(group_count, 0);
  std::vector<Node> path;
  const auto enter = [&](Node node) {
    if (chosen.contains(node) && above[group[node]]++ == 0) topmost.insert(node);
    path.push_back(node);
  };
  enter(tree.order.front());
  while (!path.empty()) {
    const Node node = path.back();
    if (next[node] < children.first[node + 1]) {
      enter(children.targets[next[node]++]);
      continue;
    }
    if (chosen.contains(node)) --above[group[node]];
    path.pop_back();
  }
  return topmost;
}

std::vector<TypeRow> types(const Snapshot& snapshot, const Dominance& dominance) {
  return types(snapshot, dominance, all_objects(snapshot));
}

std::vector<TypeRow> types(const Snapshot& snapshot, const Dominance& dominance, const NodeSet& chosen) {
  const NodeSet topmost = topmost_of_their_group(dominance.tree, snapshot.type, snapshot.types.size(), chosen);
  std::vector<TypeRow> rows(snapshot.types.size());
  chosen.for_each([&](Node node) {
    TypeRow& row = rows[snapshot.type[node]];
    row.type = snapshot.type[node];
    ++row.count;
    row.size += snapshot.size[node];
    if (topmost.contains(node)) row.retained += dominance.retained[node];
  });
  std::erase_if(rows, [](const TypeRow& row) { return row.count == 0; });
  std::sort(rows.begin(), rows.end(), [&](const TypeRow& a, const TypeRow& b) {
    return a.size != b.size ? a.size > b.size : snapshot.types[a.type].name < snapshot.types[b.type].name;
  });
  return rows;
}

std::vector<Node> largest(const Snapshot& snapshot, const Dominance& dominance, std::size_t most) {
  // Up to Python 3.10 what stands for a call that goes on is an object, too.
  const auto is_frame = [&](Node node) { return snapshot.type_name(node) == "frame"; };
  NodeSet calls(snapshot.object_count);
  const auto is_root = [&](Node node) { return !snapshot.is_object(node) || calls.contains(node); };
  std::vector<Node> found;
  for (const Node node : dominance.tree.order) {
    if (!snapshot.is_object(node) || !is_root(dominance.tree.parent[node])) continue;
    if (is_frame(node))
      calls.insert(node);
    else if (dominance.retained[node] > 0)
      found.push_back(node);
  }
  const auto shown = found.begin() + static_cast<std::ptrdiff_t>(std::min(most, found.size()));
  std::partial_sort(found.begin(), shown, found.end(), [&](Node a, Node b) {
    return std::pair(dominance.retained[b], a) < std::pair(dominance.retained[a], b);
  });
  found.erase(shown, found.end());
  return found;
}

std::vector<DominatorRow> dominator_rows(const Dominance& dominance, Node top, const TreeLimits& limits) {
  const Graph children = tree_edges(dominance.tree);
  const auto retains_more = [&](Node a, Node b) {
    const auto size_a = dominance.retained[a];
    const auto size_b = dominance.retained[b];
    return size_a != size_b ? size_a > size_b : a < b;
  };
  std::vector<DominatorRow> rows;
  std::vector<std::pair<Node, std::uint32_t>> open{{top, 0}};
  while (!open.empty()) {
    const auto [node, depth] = open.back();
    open.pop_back();
    const auto all = children.from(node);
    std::vector<Node> below;
    if (depth < limits.depth)
      std::copy_if(all.begin(), all.end(), std::back_inserter(below),
                   [&](Node child) { return dominance.retained[child] >= limits.least_retained; });
    const auto shown = static_cast<std::ptrdiff_t>(std::min(limits.children, below.size()));
    std::partial_sort(below.begin(), below.begin() + shown, below.end(), retains_more);
    rows.push_back({node, depth, dominance.retained[node], all.size() - static_cast<std::size_t>(shown)});
    for (std::ptrdiff_t i = shown; i-- > 0;) open.emplace_back(below[static_cast<std::size_t>(i)], depth + 1);
  }
  return rows;
}

bool are_of_one_process(const Snapshot& before, const Snapshot& after) {
  return !before.meta_value("process").empty() && before.meta_value("process") == after.meta_value("process");
}

std::string_view why_not_of_one_process(const Snapshot& before, const Snapshot& after) {
  const auto is_from_outside = [](const Snapshot& snapshot) { return !snapshot.meta_value("taken").empty(); };
  // "1234:..." from inside, "1234@..." from outside
  const auto pid = [](const Snapshot& snapshot) {
    const std::string_view process = snapshot.meta_value("process");
    return process.substr(0, process.find_first_of(":@"));
  };
  const bool may_be_one = !pid(before).empty() && pid(before) == pid(after);
  return may_be_one && is_from_outside(before) != is_from_outside(after)
             ? "one of the snapshots was taken from inside, one from outside"
             : "the snapshots are of different processes";
}

std::vector<TypeChange> changes(const Snapshot& before, const Snapshot& after) {
  std::map<std::string_view, TypeChange> by_name;
  for (Node node = 0; node < before.object_count; ++node) {
    TypeChange& change = by_name[before.type_name(node)];
    ++change.count_before;
    change.size_before += static_cast<std::int64_t>(before.size[node]);
  }
  const bool is_one_process = are_of_one_process(before, after);
  ObjectFinder known(before);
  for (Node node = 0; node < after.object_count; ++node) {
    TypeChange& change = by_name[after.type_name(node)];
    ++change.count_after;
    change.size_after += static_cast<std::int64_t>(after.size[node]);
    if (is_one_process && !known.has(after, node)) ++change.born;
  }
  std::vector<TypeChange> rows;
  for (auto& [name, change] : by_name) {
    change.type = name;
    rows.push_back(std::move(change));
  }
  std::stable_sort(rows.begin(), rows.end(), [](const TypeChange& a, const TypeChange& b) {
    return a.size_after - a.size_before > b.size_after - b.size_before;
  });
  return rows;
}

std::optional<Node> find_object(const Snapshot& snapshot, const Dominance& dominance, std::string_view words) {
  if (words.starts_with("0x")) {
    const std::optional<std::uint64_t> address = from_hexadecimal(words);
    if (!address) return std::nullopt;
    if (const std::optional<Node> found = snapshot.object_at(*address)) return found;
    const auto folded = std::lower_bound(snapshot.folded.begin(), snapshot.folded.end(), std::pair(*address, Node{0}));
    const bool is_folded = folded != snapshot.folded.end() && folded->first == *address;
    return is_folded ? std::optional(folded->second) : std::nullopt;
  }
  std::optional<Node> best;
  for (Node node = 0; node < snapshot.object_count; ++node) {
    const bool matches =
        snapshot.type_name(node) == words || (!snapshot.text(node).empty() && describe(snapshot, node) == words);
    if (matches && (!best || dominance.retained[node] > dominance.retained[*best])) best = node;
  }
  return best;
}

}  // namespace plimsoll::heap
