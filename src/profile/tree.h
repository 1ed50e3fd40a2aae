// profile/tree.h: the call tree of a profile, callers above callees, or the other way round, weighted by CPU time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "profile/profile.h"
#include "profile/stack_totals.h"

namespace plimsoll::profile {

// What makes two frames the same node of a tree.
enum class Granularity {
  kFunction,  // calls from and positions at different lines of a function are one node
  kLine,      // a function at each of its lines
};

// One node. Children are ordered by total weight, heaviest first.
struct TreeNode {
  FunctionId function;        // none for the root, which stands for the whole profile
  std::uint32_t line = 0;     // with Granularity::kLine; else 0
  std::int64_t total_ns = 0;  // CPU time of the samples through this node
  std::int64_t self_ns = 0;   // of the samples that end here
  std::uint64_t samples = 0;  // number of samples through this node
  std::uint64_t self_samples = 0;
  std::vector<std::size_t> children;  // indices into Tree::nodes
};

// nodes[0] is the root; there always is one.
struct Tree {
  std::vector<TreeNode> nodes;
};

// Aggregates all samples of a profile; linear in samples plus stacks. A stack id maps to one node whatever the number
// of samples, so ten million samples cost one addition each.
Tree tree(const Profile& profile, Granularity granularity);

// Likewise of any weights.
Tree tree(const Profile& profile, Granularity granularity, const StackWeights& weights);

// Turns the stacks of samples and allocations round: the innermost frame becomes the outermost. With `function`, a part
// of a name in any case, each begins at its innermost frame of such a function, whatever that has called; one without
// it becomes empty. `most_frames` are kept of each.
//
// In a tree of the result a function stands above its callers, with the time for which they have called it.
void turn_round(Profile& profile, std::string_view function = {},
                std::size_t most_frames = std::numeric_limits<std::size_t>::max());

// Leaves out of stacks what has called their outermost frame of this file; those without one stay as they are.
void begin_at_file(Profile& profile, std::string_view file);

}  // namespace plimsoll::profile
