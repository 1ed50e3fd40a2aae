// sql/table.h: tables whose rows are computed, for SQLite to ask.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace plimsoll::sql {

// Some rows of a table: a stretch of them, or those on a list.
struct RowSet {
  std::int64_t first = 0, end = 0;
  std::vector<std::int64_t> list;  // if `is_list`, these instead
  bool is_list = false;
};

// A table. Rows are numbered from 0, and that is their rowid. For one thread. May throw std::bad_alloc.
class Table {
 public:
  Table() = default;
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;
  virtual ~Table() = default;

  [[nodiscard]] virtual const char* name() const = 0;
  // Its columns, as between the parentheses of CREATE TABLE.
  [[nodiscard]] virtual const char* columns() const = 0;
  [[nodiscard]] virtual std::int64_t row_count() const = 0;
  // Gives `out` the value of a column, counted from 0; NULL if it gives none.
  // Nearly that, for plans: every statement that names the table asks for it, so it must not take work.
  [[nodiscard]] virtual std::int64_t row_estimate() const { return row_count(); }
  virtual void value(sqlite3_context* out, std::int64_t row, int column) = 0;
  // How many rows have the same value in that column, roughly; 0: rows cannot be found by it.
  [[nodiscard]] virtual double rows_per_value(int /*column*/) const { return 0; }
  // Rows that may have that value there; none that has it is missing. Only if rows_per_value is not 0.
  virtual RowSet find(int /*column*/, sqlite3_value* /*value*/) { return {}; }
};

// Makes `table` known to a database under its name. It must outlive the database.
Status add_table(sqlite3* database, Table& table);

}  // namespace plimsoll::sql
