// cli/tree_view.h: which nodes of a call tree are worth a line, and how the lines hang together.
//
// A call tree of a real program is deep and mostly trivial: one call in one call in one call. Drawn the usual way, one
// step of indentation per call, it runs off the page before it says anything. So here a line is indented only at a
// fork, where time goes different ways. A function that is the only one called (of those shown) stands under its
// caller:
//
//   main
//   ↳ run                      run is what main calls
//     ├─ parse                 run calls parse and evaluate
//     │  ↳ tokenise
//     └─ evaluate ×12          evaluate calls itself, 12 deep
//
// Inside a library, the calls that only lead from its entry to where time goes different ways or is spent are one line:
// "5 frames of json". Import machinery is only mentioned on the line of the module that it leads to.
//
// Nothing gets lost unseen: callees too light to show are summed up in a line of their own once they weigh together as
// much as a callee that is shown.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "cli/units.h"
#include "profile/tree.h"

namespace plimsoll::cli {

// Whether runs of library frames, import machinery and recursion become one line.
enum class Folding { kOn, kOff };

// Whether children are callees, or, of stacks that were turned round, callers: what their trees have of their own is
// then where stacks begin, and nobody's question.
enum class Direction { kToCallees, kToCallers };

// Which nodes get a line.
struct TreeOptions {
  double min_percent = 1;                                       // of the total, below which a node has no line
  std::size_t depth = std::numeric_limits<std::size_t>::max();  // of calls
  Folding folding = Folding::kOn;
  Direction direction = Direction::kToCallees;
  Quantity quantity = Quantity::kTime;
  std::vector<double> margins;  // by node: how far the total may be off, in parts of it; empty = it is exact
};

// How a line is joined to the lines above it.
enum class Joint { kRoot, kOnlyCallee, kMiddle, kLast };

// What a line stands for.
enum class RowKind {
  kCall,    // a function, `count` deep if it calls itself and nothing else
  kFolded,  // `count` frames of `library`
  kHidden,  // `count` callees that are too light, together
};

// A line of the drawing.
struct TreeRow {
  RowKind kind = RowKind::kCall;
  std::size_t node = 0;  // in Tree::nodes; of kHidden, the caller
  std::uint64_t count = 1;
  std::string library;
  std::uint64_t via = 0;  // of kCall: frames of `library` between the line above and this function
  std::int64_t total_ns = 0;
  std::int64_t self_ns = 0;
  Joint joint = Joint::kRoot;
  std::string
      rails;  // a char per level left of the joint: '|' the fork goes on below, ' ' not, '.' below an only callee
};

// All lines from top to bottom, and how many nodes have none.
struct TreeView {
  std::vector<TreeRow> rows;
  std::uint64_t light_nodes = 0;  // below min_percent
  std::uint64_t deep_nodes = 0;   // below the depth
};

TreeView tree_view(const profile::Profile& profile, const profile::Tree& tree, const TreeOptions& options);

}  // namespace plimsoll::cli
