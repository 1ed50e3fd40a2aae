// formats/flamegraph/writer.h: a Profile as one page of HTML that shows a flame graph, in any browser, without a
// network.
//
// The page (page.html, page.css, page.js) is the same for all; the profile stands in it as JSON:
//
//   title, facts    texts: the command line; what the recording was
//   functions       [name, file, line, kind] of those that occur, kind as function_kind_name says
//   views           of time, and of allocations where there are any: what was allocated, is alive, was alive at the
//   peak
//     name, unit    "ns" or "bytes"
//     about         a text: what the numbers are, how sure
//     depth, function, total, self, count
//                   a call tree, a column each: callers before callees, the heaviest first; the root has depth 0. A
//                   function of -1 is the root's, and -2 stands for callees too small to be shown, so that nothing is
//                   missing from a sum
//     flat          [function, self, total], a row each: whatever of the tree is shown, these are of all
//
// Trees have at most kMostNodes nodes, the heaviest: a page stays below a megabyte however long the recording was.
#pragma once

#include <cstddef>
#include <string>

#include "profile/profile.h"

namespace plimsoll::formats::flamegraph {

inline constexpr std::size_t kMostNodes = 10'000;
inline constexpr std::size_t kMostFunctions = 500;  // of a view's table, by own weight, and as many by the whole

// The file's bytes.
std::string write(const profile::Profile& profile);
// What stands in the page.
std::string profile_json(const profile::Profile& profile, std::size_t most_nodes = kMostNodes);

}  // namespace plimsoll::formats::flamegraph
