// heap/snapshot.h: a heap as it was: objects, their sizes, and who holds whom.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "heap/allocation_stacks.h"
#include "heap/graph.h"
#include "heap/wide_column.h"

namespace plimsoll::heap {

// How an object holds another. The numbers are those of the file format.
enum class EdgeKind : std::uint8_t {
  kReference = 0,  // somehow
  kElement = 1,    // as the next of its elements: the n-th such edge is element n
  kKey = 2,        // as a dict's key
  kValue = 3,      // as the value of the key before it
  kNamed = 4,      // by an attribute, variable or field with a name
  kType = 5,       // as its class
  kWeak = 6,       // without keeping it alive
};
inline constexpr std::uint8_t kEdgeKindCount = 7;
// "reference", "element", "key", "value", "attribute", "class" or "weak".
std::string_view edge_kind_name(EdgeKind kind);

// How often the garbage collector has passed an object by. The numbers are those of the file format.
enum class Generation : std::uint8_t {
  kYoung = 0,
  kMiddle = 1,
  kOld = 2,
  kFrozen = 3,     // set aside by gc.freeze()
  kUntracked = 4,  // not on the collector's lists
  kUnknown = 5,
};
inline constexpr std::uint8_t kGenerationCount = 6;

// A stretch of memory that Python's small-object allocator cut into blocks of one size. Pools lie in arenas.
struct Pool {
  std::uint64_t address = 0;
  std::uint32_t block_bytes = 0;
  std::uint32_t used = 0, capacity = 0;  // blocks
  std::uint32_t arena = 0;               // pools side by side with the same number are of one arena
};

// A mapping of the process.
struct Region {
  std::uint64_t start = 0, size = 0;
  std::uint64_t resident = 0;  // bytes of it that are in memory: its part of RSS
  bool is_writable = false, is_executable = false;
  std::string name;  // the file's, "[heap]", "[stack]"; "" for memory without a name
};

// Memory outside Python that an object owns.
struct Buffer {
  Node owner = 0;
  std::uint64_t start = 0, size = 0;
};

// A class, or a kind of node that is no object ("<thread>").
struct Type {
  std::string name;       // "collections.OrderedDict"; built-in ones without their module
  Node object = kNoNode;  // the class itself
};

// Columns by node, and the graph of all edges but weak ones.
//
// Objects come first, in the order of their addresses; then the nodes for what is no object: frames, threads, and the
// kinds of roots; the last node is the root of all.
struct Snapshot {
  std::vector<std::pair<std::string, std::string>> meta;
  std::vector<Type> types;

  std::vector<std::uint32_t> type;      // index into types
  WideColumn size;                      // bytes of memory it takes, with all that is its own alone
  WideColumn address;                   // 0: no object
  std::vector<std::uint32_t> refcount;  // 0: immortal, or not known

  Graph graph;
  std::vector<EdgeKind> kind;       // by edge, as Graph::targets
  std::vector<std::uint32_t> name;  // by edge: index into names, of kNamed edges
  std::vector<std::string> names;
  std::vector<std::pair<Node, Node>> weak;  // holder and held, in the order of holders

  std::vector<Generation> generation;  // by object; empty: not known
  // Of str and bytes, in the order of nodes: equal hashes are equal contents. Good within this snapshot only.
  std::vector<Node> hashed;
  std::vector<std::uint64_t> hash;
  AllocationStacks allocated;
  std::vector<Pool> pools;      // by address; empty: not known
  std::vector<Region> regions;  // likewise
  std::vector<Buffer> buffers;  // in the order of owners; of those that are known (own_memory.h, type_rules.h)

  // In views: addresses of objects that are folded, and the nodes that stand for them; sorted.
  std::vector<std::pair<std::uint64_t, Node>> folded;
  std::vector<std::vector<std::string>> bases;  // likewise, by type: names of base classes; see class_pattern.h

  std::size_t object_count = 0;
  std::uint64_t lost_edges = 0;  // that led to what was not recorded
  bool complete = false;         // false: the file ends early

  // The name of a function, class, module or thread; with values, what a str or number is. Empty: it has none.
  [[nodiscard]] std::string_view text(Node node) const;
  [[nodiscard]] std::string_view text_of_row(std::size_t row) const;  // of text_node
  // The object at an address; nothing if there is none. (What views have folded is in `folded`.)
  [[nodiscard]] std::optional<Node> object_at(std::uint64_t at) const;
  [[nodiscard]] Node root() const { return static_cast<Node>(type.size() - 1); }
  [[nodiscard]] bool is_object(Node node) const { return node < object_count; }
  [[nodiscard]] const std::string& type_name(Node node) const { return types[type[node]].name; }
  [[nodiscard]] std::string_view meta_value(std::string_view key) const;

  // Texts of the nodes that have one, in the order of nodes.
  std::vector<Node> text_node;
  std::vector<std::uint32_t> text_end;
  std::string texts;
};

// The texts of nodes that are asked for in their order, without a search.
class TextsInOrder {
 public:
  explicit TextsInOrder(const Snapshot& snapshot) : snapshot_(snapshot) {}
  std::string_view of(Node node) {
    while (row_ < snapshot_.text_node.size() && snapshot_.text_node[row_] < node) ++row_;
    const bool has_text = row_ < snapshot_.text_node.size() && snapshot_.text_node[row_] == node;
    return has_text ? snapshot_.text_of_row(row_) : std::string_view{};
  }

 private:
  const Snapshot& snapshot_;
  std::size_t row_ = 0;
};

// "app.Session", "app.Session 'name'" or "function app.main": what the node is, for people.
std::string describe(const Snapshot& snapshot, Node node);

// How `holder` holds `held`, directly or through its __dict__: the words of describe_edge; "" if it does not.
std::string describe_hold(const Snapshot& snapshot, Node holder, Node held);

// How the edge (an index into Graph::targets) leaves its holder: ".cache", "[3]", "['key']", "" if it has no name.
std::string describe_edge(const Snapshot& snapshot, Node holder, std::uint32_t edge);

// The same for many edges, each the quicker the nearer it comes behind the one before: describe_edge counts a list's
// elements from its beginning each time.
class EdgeWords {
 public:
  explicit EdgeWords(const Snapshot& snapshot) : snapshot_(snapshot) {}

  std::string of(Node holder, std::uint32_t edge);

 private:
  const Snapshot& snapshot_;
  // How many elements there are before an edge of a holder.
  Node counted_holder_ = kNoNode;
  std::uint32_t counted_to_ = 0;
  std::uint64_t elements_ = 0;
};

}  // namespace plimsoll::heap
