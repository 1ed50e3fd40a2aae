#include "sql/heap_tables.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "heap/groups.h"

namespace plimsoll::sql {
namespace {

using heap::EdgeKind;
using heap::Node;
using heap::Snapshot;

void put_number(sqlite3_context* out, std::uint64_t value) {
  sqlite3_result_int64(out, static_cast<sqlite3_int64>(value));
}

// NULL for an empty one.
void put_text(sqlite3_context* out, std::string_view text) {
  if (!text.empty()) sqlite3_result_text64(out, text.data(), text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
}

// The whole number that a value stands for, if there is one.
std::optional<std::int64_t> whole_number(sqlite3_value* value) {
  constexpr double kExact = 9007199254740992;  // 2^53
  switch (sqlite3_value_numeric_type(value)) {
    case SQLITE_INTEGER: return sqlite3_value_int64(value);
    case SQLITE_FLOAT: {
      const double number = sqlite3_value_double(value);
      if (std::abs(number) <= kExact && number == std::floor(number)) return static_cast<std::int64_t>(number);
      return std::nullopt;
    }
    default: return std::nullopt;
  }
}

// The node that a value is the number of.
std::optional<Node> node_in(const Snapshot& snapshot, sqlite3_value* value) {
  const auto number = whole_number(value);
  if (!number || *number < 0 || *number >= static_cast<std::int64_t>(snapshot.graph.size())) return std::nullopt;
  return static_cast<Node>(*number);
}

RowSet list_of(std::vector<std::int64_t> rows) { return {0, 0, std::move(rows), true}; }

double per(std::size_t rows, std::size_t values) {
  return static_cast<double>(rows) / static_cast<double>(std::max<std::size_t>(values, 1)) + 1;
}

// ---- objects ----

class Objects final : public Table {
 public:
  explicit Objects(HeapFacts& facts) : facts_(facts), snapshot_(facts.snapshot()) {}

  [[nodiscard]] const char* name() const override { return "objects"; }
  [[nodiscard]] const char* columns() const override {
    return "id INTEGER, type TEXT, size INTEGER, retained INTEGER, holders INTEGER, held INTEGER, refcount INTEGER, "
           "address INTEGER, dominator INTEGER, text TEXT, place TEXT, referrers TEXT, generation TEXT, "
           "allocation_site TEXT, allocation_stack TEXT";
  }
  [[nodiscard]] std::int64_t row_count() const override { return static_cast<std::int64_t>(snapshot_.graph.size()); }

  void value(sqlite3_context* out, std::int64_t row, int column) override {
    const auto node = static_cast<Node>(row);
    switch (column) {
      case kId: return sqlite3_result_int64(out, row);
      case kType: return put_text(out, snapshot_.type_name(node));
      case kSize: return put_number(out, snapshot_.size[node]);
      case kRetained: return put_number(out, facts_.dominance().retained[node]);
      case kHolders: return put_number(out, facts_.incoming().first[node + 1] - facts_.incoming().first[node]);
      case kHeld: return put_number(out, snapshot_.graph.from(node).size());
      case kText: return put_text(out, snapshot_.text(node));
      case kPlace: return put_text(out, facts_.places().names[facts_.places().of[node]]);
      case kReferrers: return put_text(out, facts_.referrers().names[facts_.referrers().of[node]]);
      default: return put_what_may_be_missing(out, node, column);
    }
  }

  [[nodiscard]] double rows_per_value(int column) const override {
    switch (column) {
      case kId:
      case kAddress: return 1;
      case kType: return per(snapshot_.graph.size(), snapshot_.types.size());
      case kDominator: return 10;
      default: return 0;
    }
  }

  RowSet find(int column, sqlite3_value* value) override {
    if (column == kType) return of_type(value);
    if (column == kAddress) return at_address(value);
    const auto node = node_in(snapshot_, value);
    if (!node) return {};
    if (column == kId) return {*node, std::int64_t{*node} + 1, {}, false};
    const auto dominated = facts_.dominated().from(*node);
    return list_of({dominated.begin(), dominated.end()});
  }

 private:
  enum Column : int {
    kId,
    kType,
    kSize,
    kRetained,
    kHolders,
    kHeld,
    kRefcount,
    kAddress,
    kDominator,
    kText,
    kPlace,
    kReferrers,
    kGeneration,
    kAllocationSite,
    kAllocationStack
  };

  void put_what_may_be_missing(sqlite3_context* out, Node node, int column) {
    if (column == kRefcount && snapshot_.refcount[node] != 0) put_number(out, snapshot_.refcount[node]);
    if (column == kAddress && snapshot_.address[node] != 0) put_number(out, snapshot_.address[node]);
    if (column == kGeneration && node < snapshot_.generation.size())
      put_text(out, heap::generation_name(snapshot_.generation[node]));
    const std::uint32_t stack = snapshot_.allocated.of_node(node);
    const bool is_recorded = stack != heap::AllocationStacks::kNone;
    if (column == kAllocationSite && is_recorded) put_text(out, heap::describe_site(snapshot_.allocated, stack));
    if (column == kAllocationStack && is_recorded) put_text(out, heap::describe_stack(snapshot_.allocated, stack));
    if (column != kDominator) return;
    const Node dominator = facts_.dominance().tree.parent[node];
    if (dominator != heap::kNoNode) put_number(out, dominator);
  }

  RowSet of_type(sqlite3_value* value) {
    const unsigned char* text = sqlite3_value_text(value);
    if (text == nullptr) return {};
    const std::string_view name(reinterpret_cast<const char*>(text),
                                static_cast<std::size_t>(sqlite3_value_bytes(value)));
    std::vector<bool> is_meant;
    for (const heap::Type& type : snapshot_.types) is_meant.push_back(type.name == name);
    std::vector<std::int64_t> rows;
    for (std::size_t node = 0; node < snapshot_.type.size(); ++node)
      if (is_meant[snapshot_.type[node]]) rows.push_back(static_cast<std::int64_t>(node));
    return list_of(std::move(rows));
  }

  RowSet at_address(sqlite3_value* value) const {
    const auto wanted = whole_number(value);
    if (!wanted) return {};
    const std::optional<Node> found = snapshot_.object_at(static_cast<std::uint64_t>(*wanted));
    if (!found) return {};
    const std::int64_t row = *found;
    return {row, row + 1, {}, false};
  }

  HeapFacts& facts_;
  const Snapshot& snapshot_;
};

// ---- edges ----

// Those of the graph, by holder; behind them the weak ones.
class Edges final : public Table {
 public:
  explicit Edges(HeapFacts& facts) : facts_(facts), snapshot_(facts.snapshot()) {}

  [[nodiscard]] const char* name() const override { return "edges"; }
  [[nodiscard]] const char* columns() const override { return "holder INTEGER, held INTEGER, kind TEXT, name TEXT"; }
  [[nodiscard]] std::int64_t row_count() const override {
    return strong_count() + static_cast<std::int64_t>(snapshot_.weak.size());
  }

  void value(sqlite3_context* out, std::int64_t row, int column) override {
    const bool is_weak = row >= strong_count();
    switch (column) {
      case kHolder: return put_number(out, is_weak ? weak(row).first : holder_of(static_cast<std::uint32_t>(row)));
      case kHeld: return put_number(out, is_weak ? weak(row).second : target(row));
      case kKind: return put_text(out, heap::edge_kind_name(is_weak ? EdgeKind::kWeak : kind(row)));
      default: break;
    }
    if (!is_weak) put_text(out, name_of(static_cast<std::uint32_t>(row)));
  }

  [[nodiscard]] double rows_per_value(int column) const override {
    if (column != kHolder && column != kHeld) return 0;
    return per(static_cast<std::size_t>(row_count()), snapshot_.graph.size());
  }

  RowSet find(int column, sqlite3_value* value) override {
    const auto node = node_in(snapshot_, value);
    if (!node) return {};
    return list_of(column == kHolder ? held_by(*node) : holding(*node));
  }

 private:
  enum Column : int { kHolder, kHeld, kKind, kName };

  [[nodiscard]] std::vector<std::int64_t> held_by(Node node) const {
    std::vector<std::int64_t> rows;
    for (std::int64_t edge = snapshot_.graph.first[node]; edge < snapshot_.graph.first[node + 1]; ++edge)
      rows.push_back(edge);
    const auto of_node = std::equal_range(snapshot_.weak.begin(), snapshot_.weak.end(), std::pair(node, Node{}),
                                          [](const auto& a, const auto& b) { return a.first < b.first; });
    for (auto at = of_node.first; at != of_node.second; ++at)
      rows.push_back(strong_count() + (at - snapshot_.weak.begin()));
    return rows;
  }
  std::vector<std::int64_t> holding(Node node) {
    const HeapFacts::Incoming& incoming = facts_.incoming();
    std::vector<std::int64_t> rows(incoming.edges.begin() + incoming.first[node],
                                   incoming.edges.begin() + incoming.first[node + 1]);
    for (auto at = std::lower_bound(incoming.weak.begin(), incoming.weak.end(), std::pair(node, std::uint32_t{0}));
         at != incoming.weak.end() && at->first == node; ++at)
      rows.push_back(strong_count() + at->second);
    return rows;
  }

  [[nodiscard]] std::int64_t strong_count() const { return static_cast<std::int64_t>(snapshot_.graph.targets.size()); }
  [[nodiscard]] const std::pair<Node, Node>& weak(std::int64_t row) const {
    return snapshot_.weak[static_cast<std::size_t>(row - strong_count())];
  }
  [[nodiscard]] Node target(std::int64_t row) const { return snapshot_.graph.targets[static_cast<std::size_t>(row)]; }
  [[nodiscard]] EdgeKind kind(std::int64_t row) const { return snapshot_.kind[static_cast<std::size_t>(row)]; }
  [[nodiscard]] Node holder_of(std::uint32_t edge) const {
    const auto& first = snapshot_.graph.first;
    return static_cast<Node>(std::upper_bound(first.begin(), first.end(), edge) - first.begin() - 1);
  }

  std::string name_of(std::uint32_t edge) { return words_.of(holder_of(edge), edge); }

  HeapFacts& facts_;
  const Snapshot& snapshot_;
  heap::EdgeWords words_{snapshot_};  // mostly asked in order
};

// ---- types and meta ----

class Types final : public Table {
 public:
  explicit Types(HeapFacts& facts) : facts_(facts) {}

  [[nodiscard]] const char* name() const override { return "types"; }
  [[nodiscard]] const char* columns() const override {
    return "name TEXT, count INTEGER, size INTEGER, retained INTEGER";
  }
  [[nodiscard]] std::int64_t row_count() const override { return static_cast<std::int64_t>(facts_.types().size()); }
  [[nodiscard]] std::int64_t row_estimate() const override {
    return static_cast<std::int64_t>(facts_.snapshot().types.size());
  }
  void value(sqlite3_context* out, std::int64_t row, int column) override {
    const heap::TypeRow& type = facts_.types()[static_cast<std::size_t>(row)];
    if (column == 0) return put_text(out, facts_.snapshot().types[type.type].name);
    put_number(out, column == 1 ? type.count : column == 2 ? type.size : type.retained);
  }

 private:
  HeapFacts& facts_;
};

class Meta final : public Table {
 public:
  explicit Meta(HeapFacts& facts) : meta_(facts.snapshot().meta) {}

  [[nodiscard]] const char* name() const override { return "meta"; }
  [[nodiscard]] const char* columns() const override { return "name TEXT, value TEXT"; }
  [[nodiscard]] std::int64_t row_count() const override { return static_cast<std::int64_t>(meta_.size()); }
  void value(sqlite3_context* out, std::int64_t row, int column) override {
    const auto& [name, value] = meta_[static_cast<std::size_t>(row)];
    put_text(out, column == 0 ? name : value);
  }

 private:
  const std::vector<std::pair<std::string, std::string>>& meta_;
};

}  // namespace

const heap::Dominance& HeapFacts::dominance() {
  if (!dominance_) dominance_ = heap::dominance(snapshot_);
  return *dominance_;
}

const heap::Graph& HeapFacts::dominated() {
  if (!dominated_) dominated_ = heap::tree_edges(dominance().tree);
  return *dominated_;
}

const HeapFacts::Incoming& HeapFacts::incoming() {
  if (incoming_) return *incoming_;
  Incoming made{heap::incoming_edges(snapshot_.graph), {}};
  for (std::uint32_t i = 0; i < snapshot_.weak.size(); ++i) made.weak.emplace_back(snapshot_.weak[i].second, i);
  std::sort(made.weak.begin(), made.weak.end());
  return incoming_.emplace(std::move(made));
}

const std::vector<heap::TypeRow>& HeapFacts::types() {
  if (!types_) types_ = heap::types(snapshot_, dominance());
  return *types_;
}

const heap::Places& HeapFacts::places() {
  if (!places_) places_ = heap::places(snapshot_);
  return *places_;
}

const heap::Places& HeapFacts::referrers() {
  if (!referrers_) referrers_ = heap::referrer_classes(snapshot_, heap::reversed(snapshot_.graph));
  return *referrers_;
}

std::vector<std::unique_ptr<Table>> heap_tables(HeapFacts& facts) {
  std::vector<std::unique_ptr<Table>> tables;
  tables.push_back(std::make_unique<Objects>(facts));
  tables.push_back(std::make_unique<Edges>(facts));
  tables.push_back(std::make_unique<Types>(facts));
  tables.push_back(std::make_unique<Meta>(facts));
  add_waste_tables(facts, tables);
  return tables;
}

}  // namespace plimsoll::sql
