#include "sql/query.h"

#include <sqlite3.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <optional>
#include <utility>

#include "heap/node_set.h"
#include "heap/paths.h"
#include "sql/heap_tables.h"

namespace plimsoll::sql {
namespace {

struct CloseDatabase {
  void operator()(sqlite3* database) const { sqlite3_close_v2(database); }
};
struct FinishStatement {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Database = std::unique_ptr<sqlite3, CloseDatabase>;
using Statement = std::unique_ptr<sqlite3_stmt, FinishStatement>;

// What a statement may do: read our tables, and compute.
int authorize(void*, int action, const char*, const char*, const char*, const char*) {
  switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_FUNCTION:
    case SQLITE_RECURSIVE: return SQLITE_OK;
    default: return SQLITE_DENY;
  }
}

// The statement's line with the place of an error below it; nothing if SQLite does not know the place.
std::string place_of_error([[maybe_unused]] sqlite3* database, [[maybe_unused]] std::string_view statement) {
#if SQLITE_VERSION_NUMBER >= 3038000
  const int offset = sqlite3_error_offset(database);
  if (offset < 0 || static_cast<std::size_t>(offset) > statement.size()) return {};
  const auto at = static_cast<std::size_t>(offset);
  const std::size_t before = at == 0 ? std::string_view::npos : statement.rfind('\n', at - 1);
  const std::size_t begin = before == std::string_view::npos ? 0 : before + 1;
  const std::size_t end = std::min(statement.find('\n', at), statement.size());
  return "\n  " + std::string(statement.substr(begin, end - begin)) + "\n  " + std::string(at - begin, ' ') + "^";
#else
  return {};
#endif
}

// Whether there is no statement: space, comments and semicolons alone.
bool is_blank(sqlite3* database, std::string_view text) {
  while (!text.empty()) {
    sqlite3_stmt* made = nullptr;
    const char* rest = nullptr;
    const int failed = sqlite3_prepare_v2(database, text.data(), static_cast<int>(text.size()), &made, &rest);
    const Statement statement(made);
    if (failed != SQLITE_OK || made != nullptr || rest == text.data()) return false;
    text.remove_prefix(static_cast<std::size_t>(rest - text.data()));
  }
  return true;
}

Value value_of(sqlite3_stmt* statement, int column) {
  switch (sqlite3_column_type(statement, column)) {
    case SQLITE_INTEGER: return std::int64_t{sqlite3_column_int64(statement, column)};
    case SQLITE_FLOAT: return sqlite3_column_double(statement, column);
    case SQLITE_NULL: return std::monostate{};
    default: break;
  }
  const void* bytes = sqlite3_column_blob(statement, column);
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement, column));
  return bytes == nullptr ? std::string{} : std::string(static_cast<const char*>(bytes), size);
}

// The node that the only argument of a function is the number of.
std::optional<heap::Node> node_argument(const heap::Snapshot& snapshot, sqlite3_value* argument) {
  if (sqlite3_value_numeric_type(argument) != SQLITE_INTEGER) return std::nullopt;
  const std::int64_t number = sqlite3_value_int64(argument);
  if (number < 0 || number >= static_cast<std::int64_t>(snapshot.graph.size())) return std::nullopt;
  return static_cast<heap::Node>(number);
}

std::string path_to(const heap::Snapshot& snapshot, heap::Node node) {
  const auto paths = heap::paths_to(snapshot.graph, snapshot.root(), node, 1);
  if (paths.empty() || paths.front().size() < 2) return heap::describe(snapshot, node);
  // (the root's own edges say nothing)
  const std::vector<heap::Step>& path = paths.front();
  std::string text = heap::describe(snapshot, path[1].node);
  heap::each_shown_step(
      path.size(),
      [&](std::size_t i) { text += i == 0 ? "" : heap::describe_edge(snapshot, path[i].node, path[i].edge); },
      [&](std::size_t count) { text += " ... " + std::to_string(count) + " steps ... "; });
  return text;
}

// An SQL function of one argument: words about a node, or NULL if there is no such node.
template <auto words>
void about_node(sqlite3_context* out, int, sqlite3_value** arguments) {
  try {
    const auto& snapshot = *static_cast<const heap::Snapshot*>(sqlite3_user_data(out));
    const auto node = node_argument(snapshot, arguments[0]);
    if (!node) return;
    const std::string text = words(snapshot, *node);
    sqlite3_result_text64(out, text.data(), text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
  } catch (const std::bad_alloc&) {
    sqlite3_result_error_nomem(out);
  }
}

// The SQL function of a group of nodes that tells how many bytes would be freed with all of them. Its state is a set,
// made with the first of them.
struct RetainedTogether {
  static void step(sqlite3_context* out, int, sqlite3_value** arguments) {
    try {
      const heap::Snapshot& snapshot = snapshot_of(out);
      auto** set = static_cast<heap::NodeSet**>(sqlite3_aggregate_context(out, sizeof(heap::NodeSet*)));
      if (set == nullptr) return sqlite3_result_error_nomem(out);
      if (*set == nullptr) *set = new heap::NodeSet(snapshot.graph.size());
      if (const auto node = node_argument(snapshot, arguments[0])) (*set)->insert(*node);
    } catch (const std::bad_alloc&) {
      sqlite3_result_error_nomem(out);
    }
  }
  // Also called when a statement is ended early.
  static void finish(sqlite3_context* out) {
    auto** made = static_cast<heap::NodeSet**>(sqlite3_aggregate_context(out, 0));
    const std::unique_ptr<heap::NodeSet> set(made == nullptr ? nullptr : *made);
    try {
      const std::uint64_t bytes = set == nullptr ? 0 : heap::retained_size(snapshot_of(out), *set);
      sqlite3_result_int64(out, static_cast<sqlite3_int64>(bytes));
    } catch (const std::bad_alloc&) {
      sqlite3_result_error_nomem(out);
    }
  }
  static const heap::Snapshot& snapshot_of(sqlite3_context* out) {
    return *static_cast<const heap::Snapshot*>(sqlite3_user_data(out));
  }
};

// While it lives, a database's statements can be ended.
class Interruption {
 public:
  Interruption(sqlite3* database, const std::function<bool()>& is_enough) : database_(database), is_enough_(is_enough) {
    constexpr int kSteps = 10'000;  // of SQLite's machine: less than a millisecond
    sqlite3_progress_handler(database_, kSteps, ask, this);
  }
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;
  ~Interruption() { sqlite3_progress_handler(database_, 0, nullptr, nullptr); }

 private:
  using Clock = std::chrono::steady_clock;

  static int ask(void* context) {
    auto& self = *static_cast<Interruption*>(context);
    constexpr std::chrono::milliseconds kPause{50};  // who is asked may have to wait for a lock
    if (Clock::now() - self.asked_ < kPause) return 0;
    const bool is_enough = self.is_enough_();
    self.asked_ = Clock::now();
    return is_enough ? 1 : 0;
  }

  sqlite3* database_;
  const std::function<bool()>& is_enough_;
  Clock::time_point asked_ = Clock::now();
};

class SqliteHeap final : public HeapDatabase {
 public:
  SqliteHeap(const heap::Snapshot& snapshot, Database database)
      : snapshot_(snapshot), facts_(snapshot), tables_(heap_tables(facts_)), database_(std::move(database)) {}

  Status prepare() {
    for (const auto& table : tables_) PLIMSOLL_TRY(add_table(database_.get(), *table));
    constexpr int kKind = SQLITE_UTF8 | SQLITE_DETERMINISTIC;
    void* context = const_cast<heap::Snapshot*>(&snapshot_);
    sqlite3_create_function(database_.get(), "describe", 1, kKind, context, about_node<heap::describe>, nullptr,
                            nullptr);
    sqlite3_create_function(database_.get(), "path", 1, kKind, context, about_node<path_to>, nullptr, nullptr);
    sqlite3_create_function(database_.get(), "retained_together", 1, kKind, context, nullptr, RetainedTogether::step,
                            RetainedTogether::finish);
    if (sqlite3_set_authorizer(database_.get(), authorize, nullptr) == SQLITE_OK) return Ok{};
    return error({});
  }

  using HeapDatabase::ask;
  Result<Answer> ask(std::string_view text, std::size_t most_rows, const std::function<bool()>& is_enough) override {
    if (text.find('\0') != std::string_view::npos)  // for SQLite it is the end
      return Error{ErrorKind::kUsage, "a statement cannot have a null character in it"};
    sqlite3_stmt* made = nullptr;
    const char* rest = nullptr;
    const int failed = sqlite3_prepare_v2(database_.get(), text.data(), static_cast<int>(text.size()), &made, &rest);
    const Statement statement(made);
    if (failed == SQLITE_AUTH) return Error{ErrorKind::kUsage, "a snapshot can only be read: one select statement"};
    if (failed != SQLITE_OK) return error(text);
    if (made == nullptr) return Error{ErrorKind::kUsage, "there is no statement"};
    if (!is_blank(database_.get(), text.substr(static_cast<std::size_t>(rest - text.data()))))
      return Error{ErrorKind::kUsage, "one statement at a time: there is more after the first ';'"};
    const Interruption interruption(database_.get(), is_enough);
    return rows_of(made, text, most_rows);
  }

  [[nodiscard]] std::string schema() const override {
    std::string text;
    for (const auto& table : tables_) text += std::string(table->name()) + "(" + table->columns() + ")\n";
    return text;
  }

 private:
  Result<Answer> rows_of(sqlite3_stmt* statement, std::string_view text, std::size_t most_rows) {
    Answer answer;
    const int columns = sqlite3_column_count(statement);
    for (int i = 0; i < columns; ++i) answer.columns.emplace_back(sqlite3_column_name(statement, i));
    int state = SQLITE_DONE;
    while ((state = sqlite3_step(statement)) == SQLITE_ROW) {
      if (answer.rows.size() == most_rows) {
        answer.is_cut = true;
        return answer;
      }
      std::vector<Value>& row = answer.rows.emplace_back();
      for (int i = 0; i < columns; ++i) row.push_back(value_of(statement, i));
    }
    if (state != SQLITE_DONE) return error(text);
    return answer;
  }

  [[nodiscard]] Error error(std::string_view statement) const {
    return {ErrorKind::kUsage, sqlite3_errmsg(database_.get()) + place_of_error(database_.get(), statement)};
  }

  const heap::Snapshot& snapshot_;
  HeapFacts facts_;
  std::vector<std::unique_ptr<Table>> tables_;
  Database database_;  // before the tables it goes
};

}  // namespace

Result<std::unique_ptr<HeapDatabase>> HeapDatabase::open(const heap::Snapshot& snapshot) {
  sqlite3* made = nullptr;
  const int failed = sqlite3_open_v2(":memory:", &made, SQLITE_OPEN_READWRITE | SQLITE_OPEN_MEMORY, nullptr);
  Database database(made);
  if (failed != SQLITE_OK) return Error{ErrorKind::kSystem, std::string("SQLite: ") + sqlite3_errstr(failed)};
  auto heap = std::make_unique<SqliteHeap>(snapshot, std::move(database));
  PLIMSOLL_TRY(heap->prepare());
  return std::unique_ptr<HeapDatabase>(std::move(heap));
}

}  // namespace plimsoll::sql
