// base/symbols.h: numbers that are small or much like those before them, in as few bits as they are probable. What is
// probable is learned from the numbers themselves, by writer and reader alike, so no table of it is in the file, and a
// few numbers cost as little as many.
//
// The coder is an asymmetric numeral system (Duda) of 14 bits; docs/format.md, "Rows", is the specification.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/varint.h"

namespace plimsoll {

inline constexpr unsigned kSymbolBits = 14;  // the probabilities of a model's symbols have 2^14 as their sum

// How probable the numbers of one kind are. Those below `direct` have a symbol each; larger ones have one for all of
// the same length, and are told apart by bits that are taken to be equally probable.
class SymbolModel {
 public:
  static constexpr unsigned kMostDirect = 255;

  explicit SymbolModel(unsigned direct);

  // The part of 2^14 that a symbol has.
  struct Range {
    std::uint32_t start, size;
  };
  [[nodiscard]] Range range(unsigned symbol) const {
    const std::uint32_t start = before_[symbol];
    return {start, before_[symbol + 1] - start};
  }
  // The symbol whose part has `at`.
  [[nodiscard]] unsigned symbol_at(std::uint32_t at) const {
    unsigned symbol = first_[at >> kBlockBits];
    while (before_[symbol + 1] <= at) ++symbol;
    return symbol;
  }
  // It has occurred.
  void count(unsigned symbol) {
    counts_[symbol] += kStep;
    if (--left_ == 0) renew();
  }

  // A number's symbol, and the bits that follow it.
  struct Parts {
    unsigned symbol, bit_count;
    std::uint64_t bits;
  };
  [[nodiscard]] Parts parts(std::uint64_t value) const;
  [[nodiscard]] bool is_direct(unsigned symbol) const { return symbol < direct_; }
  [[nodiscard]] unsigned bit_count(unsigned symbol) const { return symbol - direct_; }
  [[nodiscard]] std::uint64_t value(unsigned symbol, std::uint64_t bits) const {
    return direct_ + ((std::uint64_t{1} << bit_count(symbol)) - 1) + bits;
  }

 private:
  static constexpr unsigned kLengths = 64;
  static constexpr unsigned kMostSymbols = kMostDirect + kLengths;
  static constexpr unsigned kBlockBits = 6;
  static constexpr std::uint32_t kStep = 32;
  static constexpr std::uint32_t kMostCounts = 1U << 16U;  // then those before count half
  static constexpr std::uint32_t kFirstPeriod = 4, kLastPeriod = 512;

  void renew();
  void divide();

  unsigned direct_;
  unsigned size_;
  std::uint32_t period_ = kFirstPeriod, left_ = kFirstPeriod;
  std::array<std::uint32_t, kMostSymbols> counts_{};
  std::array<std::uint16_t, kMostSymbols + 1> before_{};
  std::array<std::uint16_t, 1U << (kSymbolBits - kBlockBits)> first_{};  // the symbol that has a block's first place
};

// Writes numbers. The last one that is written is the first that the coder takes, so it is all put together at the end.
class SymbolWriter {
 public:
  void put(SymbolModel& model, std::uint64_t value);
  void put_signed(SymbolModel& model, std::int64_t value) { put(model, zigzag(value)); }
  [[nodiscard]] std::size_t size() const { return parts_.size(); }
  // All that was put since the last call, as bytes; none if that was nothing.
  std::string take();

 private:
  void put_bits(std::uint64_t bits, unsigned count);
  std::vector<std::uint32_t> parts_;  // the start, and the size above kSymbolBits
};

// Reads what take() gave, from bytes that may be hostile. After a read past the end failed() is true for good.
class SymbolReader {
 public:
  explicit SymbolReader(std::string_view bytes);

  std::uint64_t get(SymbolModel& model) {
    const std::uint32_t at = state_ & kMask;
    const unsigned symbol = model.symbol_at(at);
    const SymbolModel::Range range = model.range(symbol);
    take(range, at);
    model.count(symbol);
    if (model.is_direct(symbol)) [[likely]]
      return symbol;
    return model.value(symbol, get_bits(model.bit_count(symbol)));
  }
  std::int64_t get_signed(SymbolModel& model) { return unzigzag(get(model)); }

  [[nodiscard]] bool failed() const { return failed_; }
  // Whether all was read, and nothing was missing: what was written ends like this, and hardly anything else.
  [[nodiscard]] bool is_over() const { return !failed_ && next_ == bytes_.size() && state_ == kLowest; }

 private:
  friend class SymbolWriter;
  static constexpr std::uint32_t kMask = (1U << kSymbolBits) - 1;
  static constexpr std::uint32_t kLowest = 1U << 23U;

  void take(SymbolModel::Range range, std::uint32_t at) {
    state_ = range.size * (state_ >> kSymbolBits) + at - range.start;
    while (state_ < kLowest) {
      if (next_ == bytes_.size()) {
        failed_ = true;
        state_ = kLowest;
        return;
      }
      state_ = (state_ << 8U) | static_cast<unsigned char>(bytes_[next_++]);
    }
  }
  std::uint64_t get_bits(unsigned count) {
    std::uint64_t bits = 0;
    for (unsigned have = 0; have < count;) {
      const unsigned now = std::min(count - have, kSymbolBits);
      const unsigned unused = kSymbolBits - now;
      const std::uint32_t at = state_ & kMask;
      const std::uint32_t part = at >> unused;
      take({part << unused, 1U << unused}, at);
      bits |= std::uint64_t{part} << have;
      have += now;
    }
    return bits;
  }

  std::string_view bytes_;
  std::size_t next_ = 0;
  std::uint32_t state_ = kLowest;
  bool failed_ = false;
};

}  // namespace plimsoll
