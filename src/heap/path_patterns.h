// heap/path_patterns.h: all ways from the root to an object that differ in more than which objects of a class they
// pass.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "heap/snapshot.h"

namespace plimsoll::heap {

// A step of many paths at once: objects of a class that hold the next ones by one name, or as elements, and so on.
struct PatternStep {
  Node holder = kNoNode;      // one of them
  std::uint32_t edge = 0;     // of this one, to one of the next (an index into Graph::targets)
  std::uint64_t holders = 0;  // how many they are
  bool repeats = false;       // some of them are held by others of them, in the same way
};

// In words: "app.User 'joe'", or "3 of app.User"; and ".team", "[2]", or of several "[]".
std::string describe_holders(const Snapshot& snapshot, const PatternStep& step);
std::string describe_hold(const Snapshot& snapshot, const PatternStep& step);

// Paths of the same steps, root first.
using PathPattern = std::vector<PatternStep>;

// What was found, patterns with the fewest steps first.
struct PathPatterns {
  std::vector<PathPattern> patterns;
  bool is_cut = false;  // there are more, or may be: the limits were reached
};

// At most `most` patterns, for which at most so many references are looked at. No path passes an object twice, and runs
// of equal steps (a linked list, a tree) are one step.
PathPatterns path_patterns(const Snapshot& snapshot, Node node, std::size_t most,
                           std::size_t most_references = std::size_t{4} << 20U);

}  // namespace plimsoll::heap
