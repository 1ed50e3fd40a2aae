// heap/wide_column.h: a column of 64-bit numbers in 4 bytes each, where neighbours mostly have the same upper half.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace plimsoll::heap {

// Addresses in their order, whose upper half changes once in 4 GiB, and sizes, which are hardly ever so large. The
// upper halves are kept once for all numbers on end that have them; numbers that are all over the place take 12 bytes
// each.
class WideColumn {
 public:
  WideColumn() = default;
  explicit WideColumn(const std::vector<std::uint64_t>& values) {
    reserve(values.size());
    for (const std::uint64_t value : values) push_back(value);
  }

  [[nodiscard]] std::size_t size() const { return lower_.size(); }
  [[nodiscard]] std::size_t capacity() const { return lower_.capacity(); }
  [[nodiscard]] std::uint64_t operator[](std::size_t i) const {
    return std::uint64_t{runs_.size() == 1 ? runs_[0].upper : upper(i)} << 32U | lower_[i];
  }
  void reserve(std::size_t count) { lower_.reserve(count); }
  void push_back(std::uint64_t value) {
    const auto upper = static_cast<std::uint32_t>(value >> 32U);
    if (runs_.empty() || runs_.back().upper != upper) runs_.push_back({lower_.size(), upper});
    lower_.push_back(static_cast<std::uint32_t>(value));
  }
  // Cuts it, or adds zeros.
  void resize(std::size_t count) {
    while (!runs_.empty() && runs_.back().start >= count) runs_.pop_back();
    if (count > size() && (runs_.empty() || runs_.back().upper != 0)) runs_.push_back({size(), 0});
    lower_.resize(count, 0);
  }

  // The first of the first `count` that is not less than `value`, or `count`; they must be sorted.
  [[nodiscard]] std::size_t lower_bound(std::uint64_t value, std::size_t count) const {
    std::size_t first = 0;
    while (first < count) {
      const std::size_t middle = first + (count - first) / 2;
      if ((*this)[middle] < value)
        first = middle + 1;
      else
        count = middle;
    }
    return first;
  }

  [[nodiscard]] std::uint64_t sum() const {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < size(); ++i) sum += (*this)[i];
    return sum;
  }
  // All of them, 8 bytes each: to change some, and for whoever wants an array.
  [[nodiscard]] std::vector<std::uint64_t> values() const {
    std::vector<std::uint64_t> all(size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = (*this)[i];
    return all;
  }

 private:
  // Numbers on end with the same upper half.
  struct Run {
    std::size_t start;
    std::uint32_t upper;
  };
  [[nodiscard]] std::uint32_t upper(std::size_t i) const {
    const auto after =
        std::upper_bound(runs_.begin(), runs_.end(), i, [](std::size_t at, const Run& run) { return at < run.start; });
    return (after - 1)->upper;
  }

  std::vector<std::uint32_t> lower_;
  std::vector<Run> runs_;
};

}  // namespace plimsoll::heap
