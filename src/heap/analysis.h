// heap/analysis.h: answers about a snapshot: by class, by dominator, by path, and what has changed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "heap/dominators.h"
#include "heap/node_set.h"
#include "heap/snapshot.h"

namespace plimsoll::heap {

// A snapshot's dominators and retained sizes, computed once.
struct Dominance {
  DominatorTree tree;
  std::vector<std::uint64_t> retained;  // by node
};
Dominance dominance(const Snapshot& snapshot);

// The objects of one class. `retained` is what each of them retains, added up: objects of the class that another one of
// the class dominates are not counted again. At least so much would be freed with all of them; what only several of
// them hold together is not in it, and takes a walk for each class (retained_by in node_set.h).
struct TypeRow {
  std::uint32_t type = 0;
  std::uint64_t count = 0, size = 0, retained = 0;
};
// Types that have objects, the largest `size` first.
std::vector<TypeRow> types(const Snapshot& snapshot, const Dominance& dominance);
// The same of some objects only.
std::vector<TypeRow> types(const Snapshot& snapshot, const Dominance& dominance, const NodeSet& chosen);

// The chosen ones above which there is, in the dominator tree, no chosen one of their group. `group` by node, less than
// `group_count`.
NodeSet topmost_of_their_group(const DominatorTree& tree, const std::vector<std::uint32_t>& group,
                               std::size_t group_count, const NodeSet& chosen);

// A node of the dominator tree as it is shown: small and distant ones are left out.
struct DominatorRow {
  Node node = kNoNode;
  std::uint32_t depth = 0;
  std::uint64_t retained = 0;
  std::uint64_t left_out = 0;  // children that are not shown
};
// What decides how much of the tree is shown.
struct TreeLimits {
  std::uint32_t depth = 8;
  std::size_t children = 10;         // of a node
  std::uint64_t least_retained = 1;  // bytes
};
// The tree below `top`, in the order of display; children that retain most come first.
std::vector<DominatorRow> dominator_rows(const Dominance& dominance, Node top, const TreeLimits& limits);

// The objects that no other object dominates, whatever of threads, frames and other roots stands above them, also
// frames that are objects: those that retain most first, at most so many.
std::vector<Node> largest(const Snapshot& snapshot, const Dominance& dominance, std::size_t most);

// The number of one class's objects and their bytes in two snapshots.
struct TypeChange {
  std::string type;
  std::int64_t count_before = 0, count_after = 0;
  std::int64_t size_before = 0, size_after = 0;
  std::uint64_t born = 0;  // objects of the second snapshot that the first does not have; 0 if of different processes
};
// All types that either has, by the change of bytes, growth first.
std::vector<TypeChange> changes(const Snapshot& before, const Snapshot& after);

// Whether both are of one process, so that an address means the same object: or a later one in its place, of the same
// class and size.
bool are_of_one_process(const Snapshot& before, const Snapshot& after);
// If not, in words: they are of different processes, or one was taken from inside and one from outside.
std::string_view why_not_of_one_process(const Snapshot& before, const Snapshot& after);

// Finds an object as a person writes it: "0x7f00dead0010", or the name of a class ("app.Session"), which gives the
// object of that class that retains most, or one with its text ("module app").
std::optional<Node> find_object(const Snapshot& snapshot, const Dominance& dominance, std::string_view words);

}  // namespace plimsoll::heap
