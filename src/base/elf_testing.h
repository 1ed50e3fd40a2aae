// base/elf_testing.h: ELF files drawn byte by byte, for tests only. No product code may include it.
#pragma once

#include <elf.h>

#include <cstdint>
#include <cstring>

namespace plimsoll::testing {

// The head of a file of x86-64 with so many segments right behind it, and no sections.
inline Elf64_Ehdr elf_header(std::uint16_t type, std::uint16_t segments) {
  Elf64_Ehdr head{};
  std::memcpy(head.e_ident, ELFMAG, SELFMAG);
  head.e_ident[EI_CLASS] = ELFCLASS64;
  head.e_ident[EI_DATA] = ELFDATA2LSB;
  head.e_ident[EI_VERSION] = EV_CURRENT;
  head.e_type = type;
  head.e_machine = EM_X86_64;
  head.e_version = EV_CURRENT;
  head.e_phoff = head.e_ehsize = sizeof head;
  head.e_phentsize = sizeof(Elf64_Phdr);
  head.e_phnum = segments;
  return head;
}

}  // namespace plimsoll::testing
