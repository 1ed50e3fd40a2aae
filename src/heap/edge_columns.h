// heap/edge_columns.h: the edges of a block's rows, one after the other, out of the columns of a snapshot file.
//
// begin_row() tells how many edges the next row has, next() gives each of them, end_row() ends it. The former two are
// false if something cannot be. Bytes may be hostile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/varint.h"
#include "heap/snapshot.h"
#include "heap/snapshot_format.h"

namespace plimsoll::heap {

// Numbers stay below the two that Graph and Node need for themselves and the nodes that add_roots adds.
inline constexpr std::uint64_t kMostNodes = kNoNode - 16;

// An edge as the file has it: its target may be beyond all nodes. That of one to the class is not in the file, and
// kNoNode here.
struct RowEdge {
  EdgeKind kind{};
  Node target = kNoNode;
  std::uint32_t name = 0;
};

// How the edges of a row are: where in the columns of the block their kinds and names begin. (Chunks are shorter than
// 4 GiB.)
struct EdgePattern {
  std::uint32_t kinds = 0, names = 0;
  std::uint32_t degree = 0;
};

// Of version 2.
struct EdgeColumns {
  VarintCursor shapes;
  std::string_view kinds, low_targets, middle_targets;
  VarintCursor high_targets;
  std::span<const std::uint32_t> names;

  // `pattern`: that of the row's type.
  bool begin_row(const EdgePattern& pattern, std::uint64_t& degree) {
    const std::uint64_t shape = shapes.varint();
    if (shapes.failed() || shape > kinds.size() - own.kinds + 1) return false;
    is_own = shape != 0;
    if (is_own) own.degree = static_cast<std::uint32_t>(shape - 1);
    at = is_own ? own : pattern;
    degree = at.degree;
    to_class = 0;
    return true;
  }
  bool next(Node holder, RowEdge& edge) {
    edge.kind = static_cast<EdgeKind>(kinds[at.kinds++]);
    if (edge.kind == EdgeKind::kType) {
      ++to_class;
      return true;
    }
    if (static_cast<std::uint8_t>(edge.kind) >= kEdgeKindCount || !next_target(holder, edge.target)) return false;
    if (edge.kind != EdgeKind::kNamed) return true;
    if (at.names == names.size()) return false;
    edge.name = names[at.names++];
    return true;
  }
  void end_row(EdgePattern& pattern) {
    if (!is_own) return;
    pattern = own.degree <= file::kLongestPattern && to_class <= 1 ? own : EdgePattern{};
    own = {at.kinds, at.names, 0};
  }
  [[nodiscard]] bool at_end() const { return own.kinds == kinds.size(); }

  EdgePattern own{};  // of the next row with a shape of its own
  EdgePattern at{};   // of the row
  bool is_own = false;
  std::size_t to_class = 0;  // edges of the row
  std::size_t targets = 0;   // that were taken

 private:
  bool next_target(Node holder, Node& target) {
    if (targets >= low_targets.size() || targets >= middle_targets.size()) return false;
    const std::uint64_t high = high_targets.bounded(kMostNodes >> 15U);
    const std::uint64_t step = static_cast<std::uint8_t>(low_targets[targets]) |
                               std::uint64_t{static_cast<std::uint8_t>(middle_targets[targets])} << 8U | high << 16U;
    ++targets;
    const std::int64_t sum = std::int64_t{holder} + unzigzag(step);
    target = static_cast<Node>(sum);
    return !high_targets.failed() && sum >= 0 && sum < static_cast<std::int64_t>(kMostNodes);
  }
};

// Of version 1, which has no patterns.
struct EdgeColumnsOfVersion1 {
  VarintCursor degrees;
  std::string_view kinds;
  VarintCursor targets, names;
  std::size_t name_count;

  bool begin_row(const EdgePattern&, std::uint64_t& degree) {
    degree = degrees.varint();
    return !degrees.failed() && degree <= kinds.size();
  }
  bool next(Node holder, RowEdge& edge) {
    edge.kind = static_cast<EdgeKind>(kinds.front());
    kinds.remove_prefix(1);
    if (edge.kind == EdgeKind::kType) return true;
    std::int64_t sum = 0;
    if (static_cast<std::uint8_t>(edge.kind) >= kEdgeKindCount ||
        __builtin_add_overflow(std::int64_t{holder}, targets.signed_varint(), &sum) || targets.failed() || sum < 0 ||
        sum >= static_cast<std::int64_t>(kMostNodes))
      return false;
    edge.target = static_cast<Node>(sum);
    if (edge.kind != EdgeKind::kNamed) return true;
    const std::uint64_t name = names.varint();
    edge.name = static_cast<std::uint32_t>(name);
    return !names.failed() && name < name_count;
  }
  void end_row(EdgePattern&) {}
  [[nodiscard]] bool at_end() const { return kinds.empty(); }
};

}  // namespace plimsoll::heap
