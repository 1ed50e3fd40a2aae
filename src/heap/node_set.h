// heap/node_set.h: sets of a snapshot's objects, and what can be said of one as a whole.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "heap/snapshot.h"

namespace plimsoll::heap {

// Some of the nodes 0 to `universe` - 1, which mostly are the objects: a bit for each. What is combined is of one
// snapshot.
class NodeSet {
 public:
  explicit NodeSet(std::size_t universe) : universe_(universe), words_((universe + kBits - 1) / kBits) {}

  // False if it is there already, or is none of these.
  bool insert(Node node) {
    if (node >= universe_ || contains(node)) return false;
    words_[node / kBits] |= std::uint64_t{1} << (node % kBits);
    return true;
  }
  [[nodiscard]] bool contains(Node node) const {
    return node < universe_ && (words_[node / kBits] >> (node % kBits) & 1U) != 0;
  }
  NodeSet& operator|=(const NodeSet& other);
  NodeSet& operator&=(const NodeSet& other);
  NodeSet& operator-=(const NodeSet& other);
  NodeSet& operator^=(const NodeSet& other);
  [[nodiscard]] bool operator==(const NodeSet&) const = default;
  [[nodiscard]] bool is_within(const NodeSet& other) const;

  [[nodiscard]] std::size_t universe() const { return universe_; }
  [[nodiscard]] std::size_t count() const;
  // visit(Node) for each, in order.
  template <typename Visit>
  void for_each(Visit visit) const {
    for (std::size_t word = 0; word < words_.size(); ++word)
      for (std::uint64_t rest = words_[word]; rest != 0; rest &= rest - 1)
        visit(static_cast<Node>(word * kBits + static_cast<std::size_t>(std::countr_zero(rest))));
  }

 private:
  static constexpr std::size_t kBits = 64;
  std::size_t universe_;
  std::vector<std::uint64_t> words_;
};

// All objects; those of the classes that a name or a pattern of the shell's ("app.*") fits.
NodeSet all_objects(const Snapshot& snapshot);
NodeSet objects_of(const Snapshot& snapshot, const std::string& class_pattern);

// Bytes that they take themselves.
std::uint64_t size_of(const Snapshot& snapshot, const NodeSet& set);
// What would be freed with all of them, themselves included: what nothing leads to from the root but by way of them.
// It can be more than what each of them retains alone: what two of them hold together, and nobody else, is of it.
// A walk over all that is left. Of a set of objects it is those; of one of all nodes what is no object, too: buffers,
// in a view of memory.
NodeSet retained_by(const Snapshot& snapshot, const NodeSet& set);
// The same, of all nodes.
NodeSet among_all_nodes(const Snapshot& snapshot, const NodeSet& set);
// Bytes that would be freed with all of them: of whatever node has them.
std::uint64_t retained_size(const Snapshot& snapshot, const NodeSet& set);
// What one of them holds; what holds one of them; and what can be reached from them, themselves included.
NodeSet held_by(const Snapshot& snapshot, const NodeSet& set);
NodeSet holders_of(const Snapshot& snapshot, const NodeSet& set);
NodeSet reached_from(const Snapshot& snapshot, const NodeSet& set);

}  // namespace plimsoll::heap
