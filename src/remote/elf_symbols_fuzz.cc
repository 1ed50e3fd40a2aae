// Whatever file stands behind a mapping, its symbols are found, or none are. The file is a small shared library in
// which the fuzzer changes words: pairs of where and what.
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/unique_fd.h"
#include "remote/core_testing.h"
#include "remote/elf_symbols.h"

namespace {

// A library that defines _PyRuntime, in a section of that name.
struct Library {
  Elf64_Ehdr header = plimsoll::remote::testing::elf_header(ET_DYN, 1);
  Elf64_Phdr segment{};
  Elf64_Shdr sections[5] = {};
  Elf64_Sym symbols[2] = {};
  char names[64] = "\0_PyRuntime\0.PyRuntime\0.dynsym\0.dynstr";

  Library() {
    header.e_shoff = offsetof(Library, sections);
    header.e_shentsize = sizeof sections[0];
    header.e_shnum = 5;
    header.e_shstrndx = 2;
    segment.p_type = PT_LOAD;
    segment.p_filesz = segment.p_memsz = sizeof(Library);
    sections[1] = section(23, SHT_DYNSYM, offsetof(Library, symbols), sizeof symbols);
    sections[1].sh_link = 2;
    sections[1].sh_entsize = sizeof symbols[0];
    sections[2] = section(31, SHT_STRTAB, offsetof(Library, names), sizeof names);
    sections[3] = section(12, SHT_PROGBITS, 0, sizeof header);
    sections[4] = section(23, SHT_SYMTAB, offsetof(Library, symbols), sizeof symbols);
    sections[4].sh_link = 2;
    sections[4].sh_entsize = sizeof symbols[0];
    symbols[1].st_name = 1;
    symbols[1].st_shndx = 3;
    symbols[1].st_value = 0x1234;
  }
  static Elf64_Shdr section(unsigned name, unsigned type, std::size_t offset, std::size_t size) {
    Elf64_Shdr section{};
    section.sh_name = name;
    section.sh_type = type;
    section.sh_offset = offset;
    section.sh_size = size;
    return section;
  }
};
static_assert(offsetof(Library, segment) == sizeof(Elf64_Ehdr), "where elf_header says that segments are");

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace plimsoll;
  Library library;
  struct Change {
    std::uint16_t at;
    std::uint8_t bytes[8];
  } change;
  const bool is_whole = size < sizeof change;
  for (; size >= sizeof change; data += sizeof change, size -= sizeof change) {
    std::memcpy(&change, data, sizeof change);
    const std::size_t at = change.at % (sizeof library - sizeof change.bytes);
    std::memcpy(reinterpret_cast<std::uint8_t*>(&library) + at, change.bytes, sizeof change.bytes);
  }
  const UniqueFd file(::memfd_create("fuzz", MFD_CLOEXEC));
  const std::size_t length = sizeof library - (size * 31) % sizeof library;  // or a part of it
  if (!file.is_open() || ::write(file.get(), &library, length) != static_cast<ssize_t>(length)) __builtin_trap();
  constexpr std::string_view kNames[] = {"_PyRuntime", "Py_Version"};
  const auto found = remote::read_elf_symbols(file.get(), kNames);
  if (found && found->symbols.size() != std::size(kNames)) __builtin_trap();
  if (is_whole && size == 0 && (!found || found->symbols[0] != 0x1234)) __builtin_trap();
  return 0;
}
