#include "heap/waste.h"

#include <algorithm>
#include <array>
#include <boost/unordered/unordered_flat_map.hpp>
#include <boost/unordered/unordered_flat_set.hpp>
#include <charconv>
#include <string_view>
#include <tuple>

#include "heap/object_size.h"

namespace plimsoll::heap {
namespace {

enum class Container : std::uint8_t { kNone, kList, kDict, kSet, kOther };

Container container_of(std::string_view type) {
  if (type == "list") return Container::kList;
  if (type == "dict") return Container::kDict;
  if (type == "set") return Container::kSet;
  if (type == "collections.deque" || type == "collections.OrderedDict" || type == "collections.defaultdict")
    return Container::kOther;
  return Container::kNone;
}

unsigned minor_version(const Snapshot& snapshot) {
  std::string_view text = snapshot.meta_value("python");
  text.remove_prefix(
      std::min(text.size(), text.find('.') == std::string_view::npos ? text.size() : text.find('.') + 1));
  unsigned minor = 13;
  std::from_chars(text.data(), text.data() + text.size(), minor);
  return minor;
}

Allocator allocator_of(const Snapshot& snapshot) {
  const std::string_view text = snapshot.meta_value("python");
  const bool is_free = text.find("free-threading") != std::string_view::npos || text.ends_with("t");
  return is_free ? Allocator::kMimalloc : Allocator::kPymalloc;
}

class WasteFinder {
 public:
  WasteFinder(const Snapshot& snapshot, const Places& places)
      : snapshot_(snapshot),
        places_(places),
        minor_(minor_version(snapshot)),
        allocator_(allocator_of(snapshot)),
        text_type_(static_cast<std::uint32_t>(snapshot.types.size())) {
    for (std::uint32_t i = 0; i < snapshot.types.size(); ++i) {
      container_.push_back(container_of(snapshot.types[i].name));
      if (snapshot.types[i].name == "str") text_type_ = i;
    }
    // What one of them takes without any room, the same for all.
    empty_size_.assign(snapshot.types.size(), UINT64_MAX);
    for (Node node = 0; node < snapshot.object_count; ++node)
      empty_size_[snapshot.type[node]] = std::min(empty_size_[snapshot.type[node]], snapshot.size[node]);
    for (const auto& [holder, held] : snapshot.weak) holds_weakly_.insert(holder);
  }

  std::vector<Waste> run() {
    for (Node node = 0; node < snapshot_.object_count; ++node)
      if (container_[snapshot_.type[node]] != Container::kNone && !holds_weakly_.contains(node)) look_at(node);
    std::vector<Waste> rows;
    for (const auto& [key, row] : rows_) rows.push_back(row);
    std::sort(rows.begin(), rows.end(), [](const Waste& a, const Waste& b) {
      return std::tuple(b.waste, a.type, a.place, a.kind) < std::tuple(a.waste, b.type, b.place, b.kind);
    });
    return rows;
  }

 private:
  void look_at(Node node) {
    std::uint64_t items = 0, size = snapshot_.size[node];
    bool has_text_only = true;
    const Container container = container_[snapshot_.type[node]];
    for (std::uint32_t edge = snapshot_.graph.first[node]; edge < snapshot_.graph.first[node + 1]; ++edge) {
      const EdgeKind kind = snapshot_.kind[edge];
      const Node held = snapshot_.graph.targets[edge];
      if (!snapshot_.is_object(held)) {  // its table, in a view of memory
        size += snapshot_.size[held];
        continue;
      }
      if (kind == EdgeKind::kType || (container == Container::kDict && kind != EdgeKind::kKey)) continue;
      ++items;
      has_text_only = has_text_only && snapshot_.type[held] == text_type_;
    }
    if (items == 0) return add(WasteKind::kEmpty, node, size, size);
    if (container == Container::kOther) return;
    const std::uint64_t least = container == Container::kList   ? items * 8
                                : container == Container::kDict ? least_dict_table(items, has_text_only, minor_)
                                                                : least_set_table(items);
    const std::uint64_t needed = empty_size_[snapshot_.type[node]] + block_of(least, allocator_);
    if (size > needed) add(WasteKind::kTooLarge, node, size, size - needed);
  }

  void add(WasteKind kind, Node node, std::uint64_t size, std::uint64_t bytes) {
    Waste& row = rows_[std::tuple(static_cast<std::uint8_t>(kind), snapshot_.type[node], places_.of[node])];
    row.kind = kind;
    row.type = snapshot_.type[node];
    row.place = places_.of[node];
    ++row.count;
    row.size += size;
    row.waste += bytes;
  }

  const Snapshot& snapshot_;
  const Places& places_;
  unsigned minor_;
  Allocator allocator_;
  std::uint32_t text_type_;
  std::vector<Container> container_;
  std::vector<std::uint64_t> empty_size_;
  // Not what it seems: CPython's dict of interned strs has thousands of them, which it does not keep alive.
  boost::unordered_flat_set<Node> holds_weakly_;
  boost::unordered_flat_map<std::tuple<std::uint8_t, std::uint32_t, std::uint32_t>, Waste> rows_;
};

}  // namespace

std::uint64_t least_dict_table(std::uint64_t entries, bool has_text_keys_only, unsigned minor_version) {
  if (entries == 0) return 0;
  // A table of 2^n indices has room for two thirds as many entries.
  unsigned bits = 3;
  while ((std::uint64_t{2} << bits) / 3 < entries && bits < 40) ++bits;
  const std::uint64_t slots = std::uint64_t{1} << bits;
  const std::uint64_t index = bits < 8 ? 1 : bits < 16 ? 2 : bits < 32 ? 4 : 8;
  const bool is_new = minor_version >= 11;
  return (is_new ? 32 : 40) + slots * index + slots * 2 / 3 * (is_new && has_text_keys_only ? 16 : 24);
}

std::uint64_t least_set_table(std::uint64_t entries) {
  // A set has places in itself until three fifths of them, less one, are taken. Then it takes the least power of two
  // above a multiple of what it has: two if it is made of another set at once, four if what comes fills it one by one.
  constexpr std::uint64_t kOwnSlots = 8, kLarge = 50'000, kMost = std::uint64_t{1} << 40U;
  const auto power_above = [](std::uint64_t number) {
    std::uint64_t slots = kOwnSlots;
    while (slots <= number) slots *= 2;
    return slots;
  };
  const auto full_at = [](std::uint64_t slots) { return ((slots - 1) * 3 + 4) / 5; };
  if (entries < full_at(kOwnSlots)) return 0;
  entries = std::min(entries, kMost);
  std::uint64_t filled = kOwnSlots;
  while (entries >= full_at(filled)) filled = power_above(full_at(filled) * (full_at(filled) > kLarge ? 2 : 4));
  return std::min(filled, power_above(2 * entries)) * 16;
}

std::vector<Waste> waste(const Snapshot& snapshot, const Places& places) { return WasteFinder(snapshot, places).run(); }

}  // namespace plimsoll::heap
