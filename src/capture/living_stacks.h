// capture/living_stacks.h: the stack on which each sampled block that is still alive was allocated, for whoever looks
// at living objects (python/heap_allocations.h). A sink writes samples down and forgets them; this keeps what is alive.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "capture/raw_sample.h"
#include "cpython/code_object.h"

namespace plimsoll::capture {

// A frame for people: it keeps what is known of its code object, which may be gone.
struct NamedFrame {
  std::shared_ptr<const cpython::CodeInfo> code;
  std::uint32_t line = 0;  // 0 = not known
};

// Stacks by the numbers of samples, as a prefix tree. As large as what is alive: what nothing living needs is dropped
// when the tree has doubled. The caller serialises all calls.
class LivingStacks {
 public:
  using Codes = std::span<const std::shared_ptr<const cpython::CodeInfo>>;

  // `frames` root first; `codes` are theirs.
  void allocated(std::uint64_t number, std::span<const SampleFrame> frames, Codes codes);
  void freed(std::uint64_t number) { node_of_.erase(number); }
  // The frames of a living sample, innermost first; false if the sample is not known.
  bool find(std::uint64_t number, std::vector<NamedFrame>& frames) const;
  [[nodiscard]] std::size_t living() const { return node_of_.size(); }
  // Frames that are kept, for all stacks together.
  [[nodiscard]] std::size_t tree_size() const { return nodes_.size(); }

 private:
  // A frame on top of a stack.
  struct Key {
    std::uint32_t parent = 0;
    std::uint32_t code = 0;
    std::uint32_t line = 0;
    bool operator==(const Key&) const = default;
    friend std::size_t hash_value(const Key& key) {
      std::uint64_t hash = (std::uint64_t{key.parent} << 32U | key.code) * 0x9e3779b97f4a7c15U;
      hash ^= key.line * 0xc2b2ae3d27d4eb4fU;
      return static_cast<std::size_t>(hash ^ (hash >> 29U));
    }
  };
  // Likewise; its number is its place.
  struct Node {
    Key key;
    std::shared_ptr<const cpython::CodeInfo> code;
  };
  std::uint32_t child(const Key& key, const std::shared_ptr<const cpython::CodeInfo>& code);
  void drop_dead();

  std::vector<Node> nodes_{1};  // the first is the empty stack
  boost::unordered_flat_map<Key, std::uint32_t, boost::hash<Key>> known_;
  boost::unordered_flat_map<std::uint64_t, std::uint32_t> node_of_;  // by number
  std::vector<std::uint32_t> last_;                                  // nodes of the stack at hand, root first
  std::size_t drop_at_ = 1U << 16U;                                  // nodes
};

}  // namespace plimsoll::capture
