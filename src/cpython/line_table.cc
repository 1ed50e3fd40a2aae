#include "cpython/line_table.h"

#include <algorithm>

namespace plimsoll::cpython {
namespace {

// A line for a reader: never negative, whatever the table said.
Location at_line(std::int64_t line, std::uint32_t column = 0) {
  return Location{static_cast<std::uint32_t>(std::clamp<std::int64_t>(line, 0, INT32_MAX)), column};
}

std::uint8_t byte_at(std::string_view table, std::size_t at) { return static_cast<std::uint8_t>(table[at]); }

Location locate_lnotab(std::string_view table, std::int64_t line, std::int32_t position) {
  std::int64_t address = 0;
  for (std::size_t at = 0; at + 1 < table.size(); at += 2) {
    address += byte_at(table, at);
    if (address > position) break;
    line += static_cast<std::int8_t>(byte_at(table, at + 1));
  }
  return at_line(line);
}

Location locate_deltas(std::string_view table, std::int64_t line, std::int32_t position) {
  constexpr std::int8_t kNoLine = -128;
  std::int64_t end = 0;
  for (std::size_t at = 0; at + 1 < table.size(); at += 2) {
    const auto line_delta = static_cast<std::int8_t>(byte_at(table, at + 1));
    end += byte_at(table, at);
    if (line_delta != kNoLine) line += line_delta;
    if (position < end) return line_delta == kNoLine ? Location{} : at_line(line);
  }
  return Location{};
}

// Cursor over the bytes of one PEP 657 table. Past the end it reads zeros and says so.
class LocationCursor {
 public:
  explicit LocationCursor(std::string_view table) : table_(table) {}
  [[nodiscard]] bool at_end() const { return at_ >= table_.size(); }
  std::uint8_t byte() { return at_end() ? std::uint8_t{0} : byte_at(table_, at_++); }
  // Six bits a byte, least significant first, 0x40 on all but the last.
  std::uint32_t varint() {
    std::uint32_t value = 0;
    for (unsigned shift = 0; shift < 32; shift += 6) {
      const std::uint32_t part = byte();
      value |= (part & 0x3fU) << shift;
      if ((part & 0x40U) == 0) break;
    }
    return value;
  }
  // The sign is the lowest bit.
  std::int64_t signed_varint() {
    const std::uint32_t value = varint();
    return (value & 1U) != 0 ? -static_cast<std::int64_t>(value >> 1U) : static_cast<std::int64_t>(value >> 1U);
  }

 private:
  std::string_view table_;
  std::size_t at_ = 0;
};

Location locate_locations(std::string_view table, std::int64_t line, std::int32_t position) {
  LocationCursor cursor(table);
  std::int64_t end = 0;
  while (!cursor.at_end()) {
    const std::uint8_t head = cursor.byte();
    const unsigned code = (head >> 3U) & 15U;
    end += (std::int64_t{head & 7U} + 1) * 2;
    std::uint32_t column = 0;
    bool has_line = true;
    if (code <= 9) {  // short: same line; the column in steps of 8 from the code, the rest from one byte
      column = code * 8 + ((std::uint32_t{cursor.byte()} >> 4U) & 7U) + 1;
    } else if (code <= 12) {  // one line: the line delta is in the code, then start and end column
      line += code - 10;
      column = std::uint32_t{cursor.byte()} + 1;
      cursor.byte();
    } else if (code == 13) {  // no columns
      line += cursor.signed_varint();
    } else if (code == 14) {  // long: line delta, end line delta, start column + 1, end column + 1
      line += cursor.signed_varint();
      cursor.varint();
      column = cursor.varint();
      cursor.varint();
    } else {  // 15: no location
      has_line = false;
    }
    if (position < end) return has_line ? at_line(line, column) : Location{};
  }
  return Location{};
}

}  // namespace

Location locate(LineTableStyle style, std::string_view table, std::int32_t first_line, std::int32_t position) {
  if (position < 0) return at_line(first_line);
  switch (style) {
    case LineTableStyle::kLnotab: return locate_lnotab(table, first_line, position);
    case LineTableStyle::kDeltas: return locate_deltas(table, first_line, position);
    case LineTableStyle::kLocations: return locate_locations(table, first_line, position);
  }
  return Location{};
}

Location locate_near(LineTableStyle style, std::string_view table, std::int32_t first_line, std::int32_t position) {
  constexpr int kFarthest = 32;  // units of bytecode; bounds the work on a damaged table
  for (int back = 0; back < kFarthest && position >= 0; ++back, position -= 2)
    if (const Location at = locate(style, table, first_line, position); at.line != 0) return at;
  return at_line(first_line);
}

}  // namespace plimsoll::cpython
