// python/heap_data.h: a heap snapshot as the bindings have it.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "heap/analysis.h"
#include "heap/snapshot.h"
#include "python/released_gil.h"
#include "python/text.h"
#include "sql/query.h"

namespace plimsoll::python {

// A snapshot with what is computed of it at first use, by whichever thread asks first.
class HeapData {
 public:
  explicit HeapData(heap::Snapshot snapshot) : snapshot_(std::move(snapshot)) {}

  [[nodiscard]] const heap::Snapshot& snapshot() const { return snapshot_; }
  const heap::Dominance& dominance() {
    const nanobind::gil_scoped_release release;
    std::call_once(dominance_once_, [&] { dominance_ = heap::dominance(snapshot_); });
    return dominance_;
  }
  const heap::Graph& holders() {
    const nanobind::gil_scoped_release release;
    std::call_once(holders_once_, [&] { holders_ = heap::reversed(snapshot_.graph); });
    return holders_;
  }
  // The answer to an SQL statement; asked by one thread at a time. Ends early where `is_enough`, with the GIL, says so.
  Result<sql::Answer> ask(const std::string& statement, std::size_t most_rows, bool (*is_enough)()) {
    ReleasedGil released;
    const std::lock_guard<std::mutex> lock(database_mutex_);
    if (!database_) {
      auto made = sql::HeapDatabase::open(snapshot_);
      if (!made.ok()) return made.error();
      database_ = made.take();
    }
    return database_->ask(statement, most_rows, [&] { return released.taken_back_for(is_enough); });
  }
  // Columns that a snapshot has in a shorter form, as Python wants them: made at first use.
  const std::vector<std::uint64_t>& sizes() {
    std::call_once(sizes_once_, [&] { sizes_ = snapshot_.size.values(); });
    return sizes_;
  }
  const std::vector<std::uint64_t>& addresses() {
    std::call_once(addresses_once_, [&] { addresses_ = snapshot_.address.values(); });
    return addresses_;
  }
  [[nodiscard]] heap::Node check(std::int64_t node) const {
    if (node < 0 || static_cast<std::uint64_t>(node) >= snapshot_.type.size())
      throw nanobind::index_error("no such object");
    return static_cast<heap::Node>(node);
  }

 private:
  heap::Snapshot snapshot_;
  std::once_flag dominance_once_, holders_once_, sizes_once_, addresses_once_;
  heap::Dominance dominance_;
  heap::Graph holders_;
  std::vector<std::uint64_t> sizes_, addresses_;
  std::mutex database_mutex_;
  std::unique_ptr<sql::HeapDatabase> database_;
};

// (name, count, size, retained) of each class.
inline nanobind::list rows_of(const heap::Snapshot& snapshot, const std::vector<heap::TypeRow>& types) {
  nanobind::list rows;
  for (const heap::TypeRow& row : types)
    rows.append(nanobind::make_tuple(text(snapshot.types[row.type].name), row.count, row.size, row.retained));
  return rows;
}

}  // namespace plimsoll::python
