// cli/heap_units.h: a snapshot's numbers, which have no sign, as text.
#pragma once

#include <cstdint>
#include <string>

#include "cli/units.h"

namespace plimsoll::cli {

inline std::string bytes_text(std::uint64_t bytes) { return format_bytes(static_cast<std::int64_t>(bytes)); }

// In percent; 0 of nothing.
inline double share(std::uint64_t part, std::uint64_t whole) {
  return percent_of(static_cast<std::int64_t>(part), static_cast<std::int64_t>(whole));
}

}  // namespace plimsoll::cli
