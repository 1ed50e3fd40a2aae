// sql/query.h: questions about a heap snapshot, in SQL.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "heap/snapshot.h"

namespace plimsoll::sql {

// A value of an answer: nothing, a whole number, a number, or a text (any bytes).
using Value = std::variant<std::monostate, std::int64_t, double, std::string>;

// What a statement gives.
struct Answer {
  std::vector<std::string> columns;
  std::vector<std::vector<Value>> rows;
  bool is_cut = false;  // there are more rows
};

// A snapshot as a database of tables, in memory, which can be read only: no statement reaches a file. Beside
// SQLite's own functions there are describe(id), an object in words, path(id), the shortest way to it from a root, and
// of groups retained_together(id): bytes that would be freed with all of them.
// For one thread.
class HeapDatabase {
 public:
  // `snapshot` must outlive it.
  static Result<std::unique_ptr<HeapDatabase>> open(const heap::Snapshot& snapshot);
  HeapDatabase(const HeapDatabase&) = delete;
  HeapDatabase& operator=(const HeapDatabase&) = delete;
  virtual ~HeapDatabase() = default;

  // Runs one statement, for at most that many rows. Errors (kUsage) show the place in the statement, if there is one.
  // `is_enough` is asked some times a second: an error ends the statement where it says so.
  virtual Result<Answer> ask(std::string_view statement, std::size_t most_rows,
                             const std::function<bool()>& is_enough) = 0;
  Result<Answer> ask(std::string_view statement, std::size_t most_rows) {
    return ask(statement, most_rows, [] { return false; });
  }
  // The tables and their columns, as one would declare them, a line each.
  [[nodiscard]] virtual std::string schema() const = 0;

 protected:
  HeapDatabase() = default;
};

}  // namespace plimsoll::sql
