// formats/heapsnapshot/trace_tree.h: allocation stacks as DevTools wants them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "heap/snapshot.h"

namespace plimsoll::formats::heapsnapshot {

// "trace_function_infos" and "trace_tree" of a snapshot. Nodes of the tree are the stacks, and those that call them; a
// function is one for each line that it was met at, so that its line is that of the call.
class TraceTree {
 public:
  // `string` gives a text its number.
  TraceTree(const heap::Snapshot& snapshot, const std::function<std::uint64_t(std::string_view)>& string);

  [[nodiscard]] std::size_t function_count() const { return function_count_; }
  // The insides of the two arrays; empty if nothing was recorded.
  [[nodiscard]] const std::string& functions() const { return functions_; }
  [[nodiscard]] const std::string& tree() const { return tree_; }
  // trace_node_id of a node; 0: none.
  [[nodiscard]] std::uint64_t id_of(heap::Node node) const {
    const std::uint32_t stack = snapshot_.allocated.of_node(node);
    return stack == heap::AllocationStacks::kNone ? 0 : std::uint64_t{stack} + kFirstId;
  }

 private:
  static constexpr std::uint64_t kRootId = 1, kFirstId = 2;
  void write_functions(const std::function<std::uint64_t(std::string_view)>& string);
  void write_tree();

  const heap::Snapshot& snapshot_;
  std::vector<std::uint32_t> function_of_;  // by frame
  std::size_t function_count_ = 0;
  std::string functions_, tree_;
};

}  // namespace plimsoll::formats::heapsnapshot
