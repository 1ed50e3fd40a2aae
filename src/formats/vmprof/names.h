// formats/vmprof/names.h: vmprof's texts for functions, "lang:symbol:line:file".
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace plimsoll::formats::vmprof {

// The parts of a name. A text that is not of that form is a symbol, and nothing else.
struct CodeName {
  std::string_view language;  // "py", "n" for native code
  std::string_view symbol;    // may hold colons
  std::uint32_t line = 0;     // the first of the function; 0 = unknown
  std::string_view file;      // empty = unknown; may hold a colon after a drive's letter
};
CodeName parse_name(std::string_view text);

// A mapping of /proc/self/maps, which version 0 has behind its trailer.
struct Mapping {
  std::uint64_t start = 0;
  std::uint64_t end = 0;
  std::string_view path;  // empty: anonymous memory, in PyPy mostly machine code of the JIT
};
// The mappings of a text, ordered by address; lines that are none are passed over.
std::vector<Mapping> parse_maps(std::string_view text);
// The one that holds an address; null if there is none.
const Mapping* mapping_at(const std::vector<Mapping>& maps, std::uint64_t address);

}  // namespace plimsoll::formats::vmprof
