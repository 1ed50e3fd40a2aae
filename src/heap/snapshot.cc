#include "heap/snapshot.h"

#include <algorithm>
#include <array>

namespace plimsoll::heap {

std::string_view edge_kind_name(EdgeKind kind) {
  static constexpr std::array<std::string_view, kEdgeKindCount> kNames{"reference", "element", "key", "value",
                                                                       "attribute", "class",   "weak"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string_view Snapshot::text(Node node) const {
  const auto found = std::lower_bound(text_node.begin(), text_node.end(), node);
  if (found == text_node.end() || *found != node) return {};
  return text_of_row(static_cast<std::size_t>(found - text_node.begin()));
}

std::string_view Snapshot::text_of_row(std::size_t row) const {
  const std::uint32_t start = row == 0 ? 0 : text_end[row - 1];
  return std::string_view(texts).substr(start, text_end[row] - start);
}

std::optional<Node> Snapshot::object_at(std::uint64_t at) const {
  const std::size_t found = address.lower_bound(at, object_count);
  if (found == object_count || address[found] != at) return std::nullopt;
  return static_cast<Node>(found);
}

std::string_view Snapshot::meta_value(std::string_view key) const {
  const auto found = std::find_if(meta.begin(), meta.end(), [&](const auto& entry) { return entry.first == key; });
  return found == meta.end() ? std::string_view{} : std::string_view(found->second);
}

std::string describe(const Snapshot& snapshot, Node node) {
  const std::string_view text = snapshot.text(node);
  const std::string& type = snapshot.type_name(node);
  if (text.empty()) return type;
  if (!snapshot.is_object(node)) return std::string(text);
  return type + " " + std::string(text);
}

std::string describe_hold(const Snapshot& snapshot, Node holder, Node held) {
  std::uint32_t part_edge = snapshot.graph.first[holder + 1];
  for (std::uint32_t edge = snapshot.graph.first[holder]; edge < snapshot.graph.first[holder + 1]; ++edge) {
    if (snapshot.graph.targets[edge] == held) return describe_edge(snapshot, holder, edge);
    if (snapshot.kind[edge] == EdgeKind::kNamed && snapshot.names[snapshot.name[edge]] == "__dict__") part_edge = edge;
  }
  if (part_edge == snapshot.graph.first[holder + 1]) return {};
  const Node part = snapshot.graph.targets[part_edge];
  for (std::uint32_t edge = snapshot.graph.first[part]; edge < snapshot.graph.first[part + 1]; ++edge)
    if (snapshot.graph.targets[edge] == held) return describe_edge(snapshot, part, edge);
  return {};
}

std::string describe_edge(const Snapshot& snapshot, Node holder, std::uint32_t edge) {
  switch (snapshot.kind[edge]) {
    case EdgeKind::kNamed: return "." + snapshot.names[snapshot.name[edge]];
    case EdgeKind::kType: return ".__class__";
    case EdgeKind::kKey: return " key";
    case EdgeKind::kElement: return EdgeWords(snapshot).of(holder, edge);
    case EdgeKind::kValue: {
      const bool has_key = edge > snapshot.graph.first[holder] && snapshot.kind[edge - 1] == EdgeKind::kKey;
      return "[" + (has_key ? describe(snapshot, snapshot.graph.targets[edge - 1]) : std::string("...")) + "]";
    }
    case EdgeKind::kReference:
    case EdgeKind::kWeak: break;
  }
  return {};
}

std::string EdgeWords::of(Node holder, std::uint32_t edge) {
  if (snapshot_.kind[edge] != EdgeKind::kElement) return describe_edge(snapshot_, holder, edge);
  if (counted_holder_ != holder || edge < counted_to_) {
    counted_holder_ = holder;
    counted_to_ = snapshot_.graph.first[holder];
    elements_ = 0;
  }
  for (; counted_to_ < edge; ++counted_to_) elements_ += snapshot_.kind[counted_to_] == EdgeKind::kElement ? 1 : 0;
  return "[" + std::to_string(elements_) + "]";
}

}  // namespace plimsoll::heap
