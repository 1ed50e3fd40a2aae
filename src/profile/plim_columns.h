// profile/plim_columns.h: what the columns of samples and of allocations in a .plim file have in common.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "base/ids.h"
#include "base/varint.h"
#include "profile/plim_format.h"

namespace plimsoll::profile {

// A payload that is longer than this ends, and another section follows; so one with as many rows.
inline constexpr std::size_t kFullSection = std::size_t{4} << 20U;
inline constexpr std::size_t kRowsInSection = std::size_t{1} << 18U;
// What is put together before it is compressed.
inline constexpr std::size_t kFullChunk = std::size_t{1} << 20U;
static_assert(kFullChunk + 2 * kFullSection + kRowsInSection * 40 < plim::kLargestChunk);

// An optional id as it is written where tables' ids are their rows' numbers in the file: 0 = none.
template <typename Tag>
std::uint64_t optional_id(Id<Tag> id) {
  return id.is_none() ? 0 : std::uint64_t{id.index()} + 1;
}

// Writes a column of pairs of a value and the number of rows that have it.
class RunEncoder {
 public:
  void add(std::uint64_t value) {
    if (value != value_) end_run();
    value_ = value;
    ++rows_;
  }
  std::string take() {
    end_run();
    return std::move(out_);
  }

 private:
  void end_run() {
    if (rows_ == 0) return;
    put_varint(out_, value_);
    put_varint(out_, std::exchange(rows_, 0));
  }

  std::string out_;
  std::uint64_t value_ = 0, rows_ = 0;
};

// Reads one.
struct ColumnRun {
  std::uint64_t value = 0;
  std::uint64_t left = 0;

  // On to the next row; false if there is none, or its value is more than `most`.
  bool next(VarintCursor& column, std::uint64_t most) {
    if (left == 0) {
      value = column.bounded(most);
      left = column.varint();
      if (column.failed() || left == 0) return false;
    }
    --left;
    return true;
  }
};

// Adds to a number of the reader's; false if it does not fit.
inline bool add_step(std::int64_t& to, std::int64_t step) { return !__builtin_add_overflow(to, step, &to); }

// A time in units of so many nanoseconds, rounded.
inline std::int64_t to_units(std::int64_t ns, std::int64_t unit_ns) {
  return ns >= 0 ? (ns + unit_ns / 2) / unit_ns : -((-ns + unit_ns / 2) / unit_ns);
}
// Nanoseconds of a number of units of so many each; false if it does not fit.
inline bool to_nanoseconds(std::int64_t count, std::int64_t unit_ns, std::int64_t& ns) {
  return !__builtin_mul_overflow(count, unit_ns, &ns);
}

}  // namespace plimsoll::profile
