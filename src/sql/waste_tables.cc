// sql/waste_tables.cc: tables of what a heap wastes, and of the memory that it lies in.
#include <functional>
#include <optional>
#include <variant>

#include "heap/arenas.h"
#include "heap/duplicates.h"
#include "heap/resident.h"
#include "heap/waste.h"
#include "sql/heap_tables.h"
#include "sql/query.h"

namespace plimsoll::sql {
namespace {

using Row = std::vector<Value>;

Value number(std::uint64_t value) { return static_cast<std::int64_t>(value); }

// A table of few rows, which are made when one is asked for.
class MadeTable final : public Table {
 public:
  using Make = std::function<std::vector<Row>(HeapFacts&)>;
  MadeTable(HeapFacts& facts, const char* name, const char* columns, Make make)
      : facts_(facts), name_(name), columns_(columns), make_(std::move(make)) {}

  [[nodiscard]] const char* name() const override { return name_; }
  [[nodiscard]] const char* columns() const override { return columns_; }
  [[nodiscard]] std::int64_t row_count() const override { return static_cast<std::int64_t>(rows().size()); }
  [[nodiscard]] std::int64_t row_estimate() const override {
    constexpr std::int64_t kGuess = 100;
    return rows_ ? row_count() : kGuess;
  }
  void value(sqlite3_context* out, std::int64_t row, int column) override {
    const Value& value = rows()[static_cast<std::size_t>(row)][static_cast<std::size_t>(column)];
    if (const auto* whole = std::get_if<std::int64_t>(&value)) sqlite3_result_int64(out, *whole);
    if (const auto* real = std::get_if<double>(&value)) sqlite3_result_double(out, *real);
    if (const auto* text = std::get_if<std::string>(&value))
      sqlite3_result_text64(out, text->data(), text->size(), SQLITE_TRANSIENT, SQLITE_UTF8);
  }

 private:
  [[nodiscard]] const std::vector<Row>& rows() const {
    if (!rows_) rows_ = make_(facts_);
    return *rows_;
  }

  HeapFacts& facts_;
  const char* name_;
  const char* columns_;
  Make make_;
  mutable std::optional<std::vector<Row>> rows_;
};

std::vector<Row> duplicate_rows(HeapFacts& facts) {
  const heap::Snapshot& snapshot = facts.snapshot();
  std::vector<Row> rows;
  for (const heap::Duplicate& each : heap::duplicates(snapshot, facts.places())) {
    const std::string_view text = snapshot.text(each.first);
    rows.push_back({snapshot.types[each.type].name, number(each.count), number(each.size), number(each.waste),
                    facts.places().names[each.place], number(each.held_there), number(each.first),
                    text.empty() ? Value{} : Value{std::string(text)}});
  }
  return rows;
}

std::vector<Row> waste_rows(HeapFacts& facts) {
  const heap::Snapshot& snapshot = facts.snapshot();
  std::vector<Row> rows;
  for (const heap::Waste& each : heap::waste(snapshot, facts.places()))
    rows.push_back({std::string(each.kind == heap::WasteKind::kEmpty ? "empty" : "too large"),
                    snapshot.types[each.type].name, facts.places().names[each.place], number(each.count),
                    number(each.size), number(each.waste)});
  return rows;
}

std::vector<Row> arena_rows(HeapFacts& facts) {
  std::vector<Row> rows;
  for (const heap::Arena& each : heap::arenas(facts.snapshot()))
    rows.push_back({number(each.address), number(each.pools), number(each.empty_pools), number(each.bytes),
                    number(each.used), number(each.objects), number(each.other_blocks)});
  return rows;
}

std::vector<Row> mapping_rows(HeapFacts& facts) {
  const heap::Snapshot& snapshot = facts.snapshot();
  const std::vector<heap::RegionFacts> known = heap::region_facts(snapshot);
  std::vector<Row> rows;
  for (std::size_t i = 0; i < known.size(); ++i) {
    const heap::Region& region = snapshot.regions[i];
    rows.push_back({number(region.start), number(region.size), number(region.resident),
                    std::string(heap::use_name(known[i].use)), region.name.empty() ? Value{} : Value{region.name},
                    number(known[i].objects), number(known[i].object_bytes), number(known[i].pool_bytes),
                    number(known[i].own)});
  }
  return rows;
}

std::vector<Row> resident_rows(HeapFacts& facts) {
  std::vector<Row> rows;
  for (const heap::ResidentPart& each : heap::resident(facts.snapshot()).parts)
    rows.push_back({each.what, number(each.bytes)});
  return rows;
}

}  // namespace

void add_waste_tables(HeapFacts& facts, std::vector<std::unique_ptr<Table>>& tables) {
  const auto add = [&](const char* name, const char* columns, MadeTable::Make make) {
    tables.push_back(std::make_unique<MadeTable>(facts, name, columns, std::move(make)));
  };
  add("duplicates",
      "type TEXT, count INTEGER, size INTEGER, waste INTEGER, place TEXT, held_there INTEGER, first INTEGER, text TEXT",
      duplicate_rows);
  add("waste", "kind TEXT, type TEXT, place TEXT, count INTEGER, size INTEGER, waste INTEGER", waste_rows);
  add("arenas",
      "address INTEGER, pools INTEGER, empty_pools INTEGER, size INTEGER, used INTEGER, objects INTEGER, "
      "other_blocks INTEGER",
      arena_rows);
  add("mappings",
      "address INTEGER, size INTEGER, resident INTEGER, use TEXT, name TEXT, objects INTEGER, object_bytes INTEGER, "
      "pool_bytes INTEGER, own INTEGER",
      mapping_rows);
  add("rss", "part TEXT, bytes INTEGER", resident_rows);
}

}  // namespace plimsoll::sql
