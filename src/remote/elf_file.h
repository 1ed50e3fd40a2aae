// remote/elf_file.h: an ELF file that is open, which may be damaged, and may change meanwhile.
#pragma once

#include <gelf.h>

#include <memory>
#include <string>

#include "base/regular_file.h"
#include "base/unique_fd.h"

namespace plimsoll::remote {

// Ends a handle of libelf's.
struct CloseElf {
  void operator()(Elf* elf) const { ::elf_end(elf); }
};
using ElfHandle = std::unique_ptr<Elf, CloseElf>;

// Null if it is no ELF file of this machine's word size. The descriptor must outlive it.
inline ElfHandle open_elf(int descriptor) {
  if (::elf_version(EV_CURRENT) == EV_NONE) return nullptr;
  // Not mapped: a file that is cut short meanwhile must be an error, not a fault.
  ElfHandle elf(::elf_begin(descriptor, ELF_C_READ, nullptr));
  if (!elf || ::elf_kind(elf.get()) != ELF_K_ELF || ::gelf_getclass(elf.get()) != ELFCLASS64) return nullptr;
  return elf;
}

}  // namespace plimsoll::remote
