// native/eh_frame.h: compiles a module's .eh_frame, which its compiler wrote for exceptions, into an UnwindTable.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "native/unwind_table.h"

namespace plimsoll::native {

// The section as it is in memory.
struct EhFrame {
  std::span<const std::byte> bytes;  // to the section's end or beyond: it ends with four bytes of zero
  std::uint64_t address = 0;         // of bytes[0]
  // The module's code is within these. Offsets in the table are from `code_start`; at most 4 GiB are looked at.
  std::uint64_t code_start = 0, code_end = 0;
};

// What else there is to do while something takes long.
using Meanwhile = std::function<void()>;

// The bytes may be anything: entries that are damaged are left out, and their code has no rule. `meanwhile`, if there
// is one, is called after every thousandth function: that is every millisecond, roughly. Not for signal handlers.
UnwindTable compile_eh_frame(const EhFrame& section, RulePool& pool, const Meanwhile& meanwhile = nullptr);

}  // namespace plimsoll::native
