#include "sql/table.h"

#include <new>
#include <utility>

namespace plimsoll::sql {
namespace {

// SQLite's structures, as it wants them: ours begin with them.
struct Connected : sqlite3_vtab {
  Table* table = nullptr;
};
struct Cursor : sqlite3_vtab_cursor {
  RowSet rows;
  std::int64_t at = 0;  // of `rows`

  [[nodiscard]] bool is_at_end() const {
    return rows.is_list ? at >= static_cast<std::int64_t>(rows.list.size()) : at >= rows.end;
  }
  [[nodiscard]] std::int64_t row() const { return rows.is_list ? rows.list[static_cast<std::size_t>(at)] : at; }
};

Table& table_of(sqlite3_vtab* connected) { return *static_cast<Connected*>(connected)->table; }

// No exception may pass through SQLite.
template <typename Call>
int guarded(Call call) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return SQLITE_NOMEM;
  }
}

int connect(sqlite3* database, void* context, int, const char* const*, sqlite3_vtab** out, char**) {
  return guarded([&] {
    auto& table = *static_cast<Table*>(context);
    const std::string declaration = "CREATE TABLE x(" + std::string(table.columns()) + ")";
    const int failed = sqlite3_declare_vtab(database, declaration.c_str());
    if (failed != SQLITE_OK) return failed;
    auto* made = new Connected{};
    made->table = &table;
    *out = made;
    return SQLITE_OK;
  });
}

int disconnect(sqlite3_vtab* connected) {
  delete static_cast<Connected*>(connected);
  return SQLITE_OK;
}

// A plan is which column rows are found by: its number plus 2, 1 for the rowid, 0 for none.
int plan(Table& table, sqlite3_index_info* info) {
  const auto all = static_cast<double>(table.row_estimate());
  double fewest = all;
  int best = -1;
  for (int i = 0; i < info->nConstraint; ++i) {
    const auto& constraint = info->aConstraint[i];
    if (constraint.usable == 0 || constraint.op != SQLITE_INDEX_CONSTRAINT_EQ) continue;
    if (sqlite3_stricmp(sqlite3_vtab_collation(info, i), "BINARY") != 0) continue;
    const double rows = constraint.iColumn < 0 ? 1 : table.rows_per_value(constraint.iColumn);
    if (rows == 0 || rows >= fewest) continue;
    fewest = rows;
    best = i;
  }
  info->estimatedRows = static_cast<sqlite3_int64>(fewest) + 1;
  info->estimatedCost = fewest + 1;
  info->idxNum = 0;
  if (best < 0) return SQLITE_OK;
  info->idxNum = info->aConstraint[best].iColumn + 2;
  info->aConstraintUsage[best].argvIndex = 1;  // SQLite compares again, by its own rules for types
  return SQLITE_OK;
}

int best_index(sqlite3_vtab* connected, sqlite3_index_info* info) {
  return guarded([&] { return plan(table_of(connected), info); });
}

int open(sqlite3_vtab*, sqlite3_vtab_cursor** out) {
  return guarded([&] {
    *out = new Cursor{};
    return SQLITE_OK;
  });
}

int close(sqlite3_vtab_cursor* cursor) {
  delete static_cast<Cursor*>(cursor);
  return SQLITE_OK;
}

RowSet by_rowid(const Table& table, sqlite3_value* value) {
  const std::int64_t row = sqlite3_value_int64(value);
  if (row < 0 || row >= table.row_count()) return {};
  return {row, row + 1, {}, false};
}

int filter(sqlite3_vtab_cursor* raw, int chosen, const char*, int, sqlite3_value** values) {
  return guarded([&] {
    Table& table = table_of(raw->pVtab);
    auto& cursor = *static_cast<Cursor*>(raw);
    if (chosen == 0) {
      cursor.rows = {0, table.row_count(), {}, false};
    } else {
      cursor.rows = chosen == 1 ? by_rowid(table, values[0]) : table.find(chosen - 2, values[0]);
    }
    cursor.at = cursor.rows.is_list ? 0 : cursor.rows.first;
    return SQLITE_OK;
  });
}

int next(sqlite3_vtab_cursor* cursor) {
  ++static_cast<Cursor*>(cursor)->at;
  return SQLITE_OK;
}

int is_at_end(sqlite3_vtab_cursor* cursor) { return static_cast<Cursor*>(cursor)->is_at_end() ? 1 : 0; }

int column(sqlite3_vtab_cursor* cursor, sqlite3_context* out, int number) {
  return guarded([&] {
    table_of(cursor->pVtab).value(out, static_cast<Cursor*>(cursor)->row(), number);
    return SQLITE_OK;
  });
}

int rowid(sqlite3_vtab_cursor* cursor, sqlite3_int64* out) {
  *out = static_cast<Cursor*>(cursor)->row();
  return SQLITE_OK;
}

// Without a way to create one, a table is there under its module's name, and nobody can make another.
constexpr sqlite3_module kModule = [] {
  sqlite3_module module{};
  module.xConnect = connect;
  module.xBestIndex = best_index;
  module.xDisconnect = disconnect;
  module.xOpen = open;
  module.xClose = close;
  module.xFilter = filter;
  module.xNext = next;
  module.xEof = is_at_end;
  module.xColumn = column;
  module.xRowid = rowid;
  return module;
}();

}  // namespace

Status add_table(sqlite3* database, Table& table) {
  // The first statement that names it makes SQLite take note of its columns, which an authorizer would forbid.
  const std::string first = std::string("SELECT 1 FROM ") + table.name();
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_create_module(database, table.name(), &kModule, &table) == SQLITE_OK &&
      sqlite3_prepare_v2(database, first.c_str(), -1, &statement, nullptr) == SQLITE_OK) {
    sqlite3_finalize(statement);
    return Ok{};
  }
  return Error{ErrorKind::kSystem, std::string("SQLite: ") + sqlite3_errmsg(database)};
}

}  // namespace plimsoll::sql
