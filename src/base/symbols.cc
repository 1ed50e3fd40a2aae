#include "base/symbols.h"

#include <algorithm>
#include <bit>

namespace plimsoll {

SymbolModel::SymbolModel(unsigned direct) : direct_(direct), size_(direct + kLengths) {
  // Small numbers are more probable, for a start.
  for (unsigned symbol = 0; symbol < size_; ++symbol) counts_[symbol] = 1 + (16U >> std::min(symbol, 31U));
  divide();
}

void SymbolModel::renew() {
  left_ = period_ = std::min(2 * period_, kLastPeriod);
  divide();
}

void SymbolModel::divide() {
  std::uint32_t total = 0;
  for (unsigned symbol = 0; symbol < size_; ++symbol) total += counts_[symbol];
  if (total > kMostCounts) {
    total = 0;
    for (unsigned symbol = 0; symbol < size_; ++symbol) total += counts_[symbol] -= counts_[symbol] / 2;
  }
  // Each has one, whatever occurred; the rest is shared out.
  const std::uint32_t rest = (1U << kSymbolBits) - size_;
  std::uint32_t sum = 0;
  for (unsigned symbol = 0; symbol < size_; ++symbol) {
    before_[symbol] = static_cast<std::uint16_t>(symbol + sum * rest / total);
    sum += counts_[symbol];
  }
  before_[size_] = 1U << kSymbolBits;
  unsigned symbol = 0;
  for (std::size_t block = 0; block < first_.size(); ++block) {
    while (before_[symbol + 1] <= block << kBlockBits) ++symbol;
    first_[block] = static_cast<std::uint16_t>(symbol);
  }
}

SymbolModel::Parts SymbolModel::parts(std::uint64_t value) const {
  if (value < direct_) return {static_cast<unsigned>(value), 0, 0};
  const std::uint64_t above = value - direct_ + 1;
  const auto length = static_cast<unsigned>(std::bit_width(above)) - 1;
  return {direct_ + length, length, above - (std::uint64_t{1} << length)};
}

void SymbolWriter::put(SymbolModel& model, std::uint64_t value) {
  const SymbolModel::Parts parts = model.parts(value);
  const SymbolModel::Range range = model.range(parts.symbol);
  parts_.push_back(range.start | (range.size << kSymbolBits));
  model.count(parts.symbol);
  put_bits(parts.bits, parts.bit_count);
}

void SymbolWriter::put_bits(std::uint64_t bits, unsigned count) {
  while (count != 0) {
    const unsigned now = std::min(count, kSymbolBits);
    const unsigned unused = kSymbolBits - now;
    const auto part = static_cast<std::uint32_t>(bits & ((std::uint64_t{1} << now) - 1));
    parts_.push_back((part << unused) | (1U << (unused + kSymbolBits)));
    bits >>= now;
    count -= now;
  }
}

std::string SymbolWriter::take() {
  std::string out;
  if (parts_.empty()) return out;
  std::uint32_t state = SymbolReader::kLowest;
  for (std::size_t i = parts_.size(); i-- > 0;) {
    const std::uint32_t start = parts_[i] & SymbolReader::kMask;
    const std::uint32_t size = parts_[i] >> kSymbolBits;
    const std::uint64_t most = std::uint64_t{SymbolReader::kLowest >> kSymbolBits << 8U} * size;
    for (; state >= most; state >>= 8U) out.push_back(static_cast<char>(state));
    state = (state / size << kSymbolBits) + state % size + start;
  }
  for (unsigned i = 0; i < 4; ++i, state >>= 8U) out.push_back(static_cast<char>(state));
  std::reverse(out.begin(), out.end());
  parts_.clear();
  return out;
}

SymbolReader::SymbolReader(std::string_view bytes) : bytes_(bytes) {
  if (bytes.empty()) return;
  if (bytes.size() < 4) {
    failed_ = true;
    return;
  }
  state_ = 0;
  for (; next_ < 4; ++next_) state_ = (state_ << 8U) | static_cast<unsigned char>(bytes[next_]);
  failed_ = state_ < kLowest;
}

}  // namespace plimsoll
