#include "formats/heapsnapshot/trace_tree.h"

#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>
#include <utility>

#include "heap/graph.h"

namespace plimsoll::formats::heapsnapshot {
namespace {

using heap::AllocationStacks;

// The loader goes down the tree by calling itself: beyond this depth frames are shown beside each other.
constexpr std::uint32_t kDeepest = 1000;

void put(std::string& out, std::uint64_t number) {
  if (!out.empty() && out.back() != '[') out += ',';
  out += std::to_string(number);
}

// By frame, and the root as the last: what it calls.
heap::Graph calls(const std::vector<AllocationStacks::Frame>& frames) {
  const auto root = static_cast<heap::Node>(frames.size());
  std::vector<std::uint32_t> depth(frames.size(), 1);
  std::vector<heap::Node> caller(frames.size(), root);
  heap::Graph graph;
  graph.first.assign(frames.size() + 3, 0);
  for (std::size_t i = 0; i < frames.size(); ++i) {
    if (const std::uint32_t from = frames[i].caller; from != AllocationStacks::kNone) {
      const bool is_deep = depth[from] == kDeepest;
      caller[i] = is_deep ? caller[from] : from;
      depth[i] = is_deep ? kDeepest : depth[from] + 1;
    }
    ++graph.first[caller[i] + 2];
  }
  for (std::size_t i = 1; i < graph.first.size(); ++i) graph.first[i] += graph.first[i - 1];
  graph.targets.resize(frames.size());
  for (heap::Node i = 0; i < frames.size(); ++i) graph.targets[graph.first[caller[i] + 1]++] = i;
  graph.first.pop_back();
  return graph;
}

}  // namespace

TraceTree::TraceTree(const heap::Snapshot& snapshot, const std::function<std::uint64_t(std::string_view)>& string)
    : snapshot_(snapshot) {
  if (snapshot.allocated.frames.empty()) return;
  write_functions(string);
  write_tree();
}

void TraceTree::write_functions(const std::function<std::uint64_t(std::string_view)>& string) {
  const AllocationStacks& stacks = snapshot_.allocated;
  const auto add = [&](std::string_view name, std::string_view file, std::uint32_t line) {
    put(functions_, function_count_++);
    for (const std::uint64_t number :
         {string(name), string(file), std::uint64_t{0}, std::uint64_t{line}, std::uint64_t{0}})
      put(functions_, number);
  };
  add("(root)", "", 0);
  boost::unordered_flat_map<std::uint64_t, std::uint32_t> known;
  for (const AllocationStacks::Frame& frame : stacks.frames) {
    const auto [found, is_new] =
        known.try_emplace(std::uint64_t{frame.code} << 32U | frame.line, static_cast<std::uint32_t>(function_count_));
    if (is_new) add(stacks.codes[frame.code].function, stacks.codes[frame.code].file, frame.line);
    function_of_.push_back(found->second);
  }
}

void TraceTree::write_tree() {
  const std::vector<AllocationStacks::Frame>& frames = snapshot_.allocated.frames;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> own(frames.size());  // objects and bytes
  for (std::size_t node = 0; node < snapshot_.allocated.of.size(); ++node) {
    const std::uint32_t stack = snapshot_.allocated.of[node];
    if (stack == AllocationStacks::kNone) continue;
    ++own[stack].first;
    own[stack].second += snapshot_.size[node];
  }
  constexpr std::uint64_t kLargestNumber = UINT32_MAX;
  const heap::Graph called = calls(frames);
  const auto root = static_cast<heap::Node>(frames.size());
  for (const std::uint64_t number : {kRootId, std::uint64_t{0}, std::uint64_t{0}, std::uint64_t{0}}) put(tree_, number);
  tree_ += ",[";
  std::vector<std::pair<heap::Node, std::uint32_t>> open{{root, called.first[root]}};
  while (!open.empty()) {
    auto& [node, next] = open.back();
    if (next == called.first[node + 1]) {
      tree_ += ']';
      open.pop_back();
      continue;
    }
    const heap::Node frame = called.targets[next++];
    for (const std::uint64_t number : {frame + kFirstId, std::uint64_t{function_of_[frame]}, own[frame].first,
                                       std::min(own[frame].second, kLargestNumber)})
      put(tree_, number);
    tree_ += ",[";
    open.emplace_back(frame, called.first[frame]);  // moves `open`: the references are not used after
  }
}

}  // namespace plimsoll::formats::heapsnapshot
