// cpython/line_table.h: from an offset into bytecode to a place in the source.
#pragma once

#include <cstdint>
#include <string_view>

#include "cpython/layout.h"

namespace plimsoll::cpython {

// A place in a source file. Lines count from 1. Columns count UTF-8 bytes from 1 (CPython counts from 0). 0 = unknown.
struct Location {
  std::uint32_t line = 0;
  std::uint32_t column = 0;
  bool operator==(const Location&) const = default;
};

// Where the instruction at byte offset `position` comes from. `table` is co_lnotab (3.9) or co_linetable (3.10+), of
// any length, and may be damaged: decoding stops at the first byte that makes no sense. An instruction that has no
// line (the compiler made it up) is at line 0; a position before the first instruction, or one that is not known
// (kNoPosition), at `first_line`. Pure; linear in the table.
// Sources: Objects/lnotab_notes.txt (3.9), PEP 626 (3.10), Objects/locations.md of CPython (3.11+).
Location locate(LineTableStyle style, std::string_view table, std::int32_t first_line, std::int32_t position);

// As locate, but time needs a line to be spent on: an instruction that has none (those that set up the cells of a
// closure, or end a handler) counts for the nearest one before it, and for the first line if there is none.
Location locate_near(LineTableStyle style, std::string_view table, std::int32_t first_line, std::int32_t position);

}  // namespace plimsoll::cpython
