// native/unwind_table.h: from which instruction on which rule holds, for the code of one module.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "native/rule_pool.h"

namespace plimsoll::native {

// A compiled table; offsets are from the module's first byte. Immutable once built: find is async-signal-safe.
class UnwindTable {
 public:
  UnwindTable() = default;
  // `starts` ascends strictly; rules[i] holds from starts[i] to starts[i + 1], the last one for ever. `functions` are
  // where functions begin, ascending.
  UnwindTable(std::vector<std::uint32_t> starts, std::vector<RuleIndex> rules, std::vector<std::uint32_t> functions)
      : starts_(std::move(starts)), rules_(std::move(rules)), functions_(std::move(functions)) {
    if (starts_.empty()) return;
    // For each page of code, the last row that begins at or before its first byte (0 if there is none).
    pages_.resize((starts_.back() >> kPageBits) + 2);
    std::size_t row = 0;
    for (std::size_t page = 0; page < pages_.size(); ++page) {
      while (row + 1 < starts_.size() && std::uint64_t{starts_[row + 1]} <= std::uint64_t{page} << kPageBits) ++row;
      pages_[page] = static_cast<std::uint32_t>(row);
    }
  }

  [[nodiscard]] RuleIndex find(std::uint32_t offset) const {
    if (starts_.empty() || offset < starts_.front()) return RulePool::kNoRule;
    const std::size_t page = std::min<std::size_t>(offset >> kPageBits, pages_.size() - 2);
    std::size_t low = pages_[page];
    // starts_[low] <= offset; without branches that depend on it, which nothing could foresee.
    for (std::size_t left = pages_[page + 1] - low; left > 0;) {
      const std::size_t half = (left + 1) / 2;
      low += starts_[low + half] <= offset ? half : 0;
      left -= half;
    }
    return rules_[low];
  }

  // Where the function begins that has `offset` in it, as far as the table tells functions apart; `offset` if unknown.
  [[nodiscard]] std::uint32_t function_of(std::uint32_t offset) const {
    const auto next = std::upper_bound(functions_.begin(), functions_.end(), offset);
    return next == functions_.begin() ? offset : *(next - 1);
  }
  [[nodiscard]] bool empty() const { return starts_.empty(); }
  [[nodiscard]] std::size_t rows() const { return starts_.size(); }
  [[nodiscard]] std::size_t memory() const {
    return starts_.capacity() * sizeof(std::uint32_t) + rules_.capacity() * sizeof(RuleIndex) +
           (functions_.capacity() + pages_.capacity()) * sizeof(std::uint32_t);
  }

 private:
  static constexpr unsigned kPageBits = 10;  // a page has some ten rows

  std::vector<std::uint32_t> starts_;
  std::vector<RuleIndex> rules_;
  std::vector<std::uint32_t> functions_;
  std::vector<std::uint32_t> pages_;
};

}  // namespace plimsoll::native
