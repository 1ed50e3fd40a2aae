// remote/elf_symbols.h: where an ELF file says that things are.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace plimsoll::remote {

// What of an ELF file is asked for. Addresses are the file's own: where it is loaded is added to them.
struct ElfSymbols {
  std::uint64_t first_address = 0;                    // of its first loaded segment, down to a page
  std::vector<std::optional<std::uint64_t>> symbols;  // one for each name; none if the file does not define it
  std::optional<std::uint64_t> python_runtime;        // the section .PyRuntime, which CPython has since 3.10
};

// Looks names up in the file's dynamic symbols, then in all of them. None if it is no ELF file of this machine's word
// size. The file may be damaged, and may change meanwhile.
std::optional<ElfSymbols> read_elf_symbols(int descriptor, std::span<const std::string_view> names);

// Where the section of that name is, counted from the first loaded segment (as first_address is). None as above, or if
// there is none.
std::optional<std::uint64_t> find_elf_section(int descriptor, std::string_view name);

}  // namespace plimsoll::remote
