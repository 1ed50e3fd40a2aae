// profile/diff.h: what has changed from one profile to another, and what may be chance.
//
// A sampled time has an error: a function that was met n times might as well have been met n ± sqrt(n) times. Each time
// here has its standard error, measured from the weights of its samples, and a change counts as one only if chance
// would make one so large, anywhere in the whole report, once in a hundred times (a two-sided z-test with Bonferroni's
// correction for the number of rows). The work may differ from run to run, too; of that a single pair knows nothing.
// The total of two whole recordings of CPU time is no sampled time: it is the sum of what the threads' clocks have
// shown, of which the last period of each thread is missing. Its error is that, what was lost, and a thousandth of
// itself.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "profile/memory.h"
#include "profile/profile.h"

namespace plimsoll::profile {

// A time in both profiles.
struct TimeChange {
  std::int64_t before_ns = 0;
  std::int64_t after_ns = 0;
  double error_ns = 0;  // standard error of the difference
  double step_ns = 0;   // of sampled memory, by how much a block changes it that is met or missed; 0: by little
  bool is_beyond_chance = false;

  [[nodiscard]] std::int64_t change_ns() const { return after_ns - before_ns; }
};

// A function, or a line of one, in both profiles. same_functions.h says which functions are the same.
struct ChangedRow {
  std::string function;
  std::string file;
  std::uint32_t line = 0;  // in `after`, or in `before` if it is gone; 0 in a report on functions: where it begins
  TimeChange self;
  TimeChange total;
};

// A node of both call trees.
struct ChangedNode {
  std::string function;  // empty for the root
  std::string file;
  TimeChange total;
  TimeChange self;
  std::vector<std::size_t> children;  // by the size of their change, largest first
};

// The time between two samples: as the profile tells it, or as its weights make one think; of a recording that was
// asked for more than it delivered, what it delivered.
struct SamplingPeriod {
  std::int64_t ns = 0;
  bool is_assumed = false;
};

// Whether profiles are compared with all that they hold.
enum class Extent : std::uint8_t { kWhole, kSelection };

// A comparison of whole profiles.
struct Comparison {
  TimeChange total;
  SamplingPeriod before_period, after_period;
  std::vector<ChangedRow> functions;  // by the size of the change of their own time, largest first
  std::vector<ChangedRow> lines;      // likewise
  std::vector<ChangedNode> tree;      // [0] is the root
};

// What of it is wanted; the rest stays empty.
struct ComparedParts {
  bool functions = true, lines = true, tree = true;
};

// Compares two profiles; their weights are used up. Linear in samples and stacks.
Comparison compare(Profile before, Profile after, Extent extent = Extent::kSelection, ComparedParts parts = {});

// The same of a view of their allocations: wherever a time is told, it is bytes. Of samples the error is that of the
// estimates; what was counted, or is so large that it was sure to be a sample, has none, and any change of it counts.
// Where few large blocks make up a sum, chance changes it by whole blocks, and what it may do is that of their number.
// (A sampled peak is the highest of many estimates: how much too high it is for that is not in the error.)
Comparison compare_memory(Profile before, Profile after, const MemoryQuestion& question, ComparedParts parts = {});

}  // namespace plimsoll::profile
