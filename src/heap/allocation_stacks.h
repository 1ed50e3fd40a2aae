// heap/allocation_stacks.h: who allocated what is alive, of snapshots taken while allocations were recorded.
#pragma once

#include <boost/container_hash/hash.hpp>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace plimsoll::heap {

// Stacks as a prefix tree. A stack is the number of its innermost frame.
struct AllocationStacks {
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  // A function.
  struct Code {
    std::string function, file;  // no file: a note in brackets
  };
  // A call of it, at a line (0 = not known), on top of another stack (kNone = of none). Callers have lower numbers.
  struct Frame {
    std::uint32_t caller = kNone;
    std::uint32_t code = 0;
    std::uint32_t line = 0;
  };
  std::vector<Code> codes;
  std::vector<Frame> frames;
  std::vector<std::uint32_t> of;  // by object: a stack, or kNone; empty: nothing was recorded

  [[nodiscard]] std::uint32_t of_node(std::size_t node) const { return node < of.size() ? of[node] : kNone; }
};

// "load (app.py:12)": where a stack's innermost frame is.
std::string describe_site(const AllocationStacks& stacks, std::uint32_t stack);
// Likewise of all frames, the innermost first: "load (app.py:12) < main (app.py:30)"; at most `most`.
std::string describe_stack(const AllocationStacks& stacks, std::uint32_t stack, std::size_t most = SIZE_MAX);

// Puts stacks together, frame by frame from the outermost on; equal ones are one.
class StackBuilder {
 public:
  // `caller` with one more frame on top; kNone begins a stack.
  std::uint32_t call(std::uint32_t caller, std::string_view function, std::string_view file, std::uint32_t line);
  [[nodiscard]] const AllocationStacks& stacks() const { return stacks_; }

 private:
  using Key = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;
  AllocationStacks stacks_;
  boost::unordered_flat_map<std::string, std::uint32_t> codes_;  // by file and function
  boost::unordered_flat_map<Key, std::uint32_t, boost::hash<Key>> frames_;
};

// ---- in the file (docs/heap-format.md, section 12) ----

// `stack_of` tells the stack that a number in the rows stands for, or kNone.
void put_stacks(std::string& out, const AllocationStacks& stacks, const std::vector<std::uint32_t>& stack_of);
// False if the bytes are damaged. Fills codes and frames.
bool read_stacks(std::string_view bytes, AllocationStacks& stacks, std::vector<std::uint32_t>& stack_of);

}  // namespace plimsoll::heap
