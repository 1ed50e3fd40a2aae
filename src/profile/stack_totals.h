// profile/stack_totals.h: sums over stacks, where a stack counts once for what may be on it more than once.
//
// All in time linear in the number of stacks, however deep they are: a walk from each stack down to its root takes the
// square of that in a chain of calls.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "profile/profile.h"

namespace plimsoll::profile {

// What stacks weigh, in nanoseconds or whatever is shown in their place, and of how many samples that is.
struct StackWeight {
  std::int64_t weight = 0;
  std::uint64_t count = 0;

  void add(const StackWeight& other) {
    weight += other.weight;
    count += other.count;
  }
};

// Of the samples of each stack, by StackId, and of those without one.
struct StackWeights {
  std::vector<StackWeight> by_stack;
  StackWeight no_stack;
};
inline StackWeights weights_of_stacks(const Profile& profile) {
  StackWeights weights;
  weights.by_stack.resize(profile.stacks.size());
  for (std::size_t row = 0; row < profile.samples.size(); ++row) {
    const StackId stack = profile.samples.stack[row];
    (stack.is_none() ? weights.no_stack : weights.by_stack[stack.index()]).add({profile.samples.weight_ns[row], 1});
  }
  return weights;
}

// Adds to each stack, by StackId, what those have that it is a part of.
template <typename Weight>
void add_up(const StackTable& stacks, std::vector<Weight>& by_stack) {
  // A parent's id is smaller than its children's.
  for (std::size_t i = by_stack.size(); i-- > 0;)
    if (const StackId parent = stacks.rows()[i].parent; !parent.is_none()) by_stack[parent.index()].add(by_stack[i]);
}

inline constexpr std::size_t kNoRow = std::numeric_limits<std::size_t>::max();

// Calls visit(StackId, row) for each stack whose innermost frame is of a row while no other frame of it is: what is
// added up of these counts once for the row. row_of(FrameId) is below `rows`, or kNoRow.
template <typename RowOf, typename Visit>
void each_outermost(const StackTable& stacks, std::size_t rows, RowOf row_of, Visit visit) {
  constexpr std::uint32_t kEnd = std::numeric_limits<std::uint32_t>::max();
  const std::size_t size = stacks.size();
  std::vector<std::uint32_t> first(size + 1, kEnd), next(size, kEnd);  // on top of each; last, the roots
  for (std::size_t i = size; i-- > 0;) {
    const StackId parent = stacks.rows()[i].parent;
    std::uint32_t& list = first[parent.is_none() ? size : parent.index()];
    next[i] = list;
    list = static_cast<std::uint32_t>(i);
  }
  std::vector<std::uint32_t> times(rows);  // that a row is on the way from the root
  const auto row_at = [&](std::uint32_t at) { return row_of(stacks.rows()[at].frame); };
  std::uint32_t at = first[size];
  while (at != kEnd) {
    if (const std::size_t row = row_at(at); row != kNoRow && times[row]++ == 0) visit(StackId{std::size_t{at}}, row);
    if (first[at] != kEnd) {
      at = first[at];
      continue;
    }
    for (bool goes_back = true; goes_back;) {
      if (const std::size_t row = row_at(at); row != kNoRow) --times[row];
      const StackId parent = stacks.rows()[at].parent;
      goes_back = next[at] == kEnd && !parent.is_none();
      at = goes_back ? parent.index() : next[at];
    }
  }
}

}  // namespace plimsoll::profile
