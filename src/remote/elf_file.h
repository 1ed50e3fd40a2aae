// remote/elf_file.h: an ELF file that is open, which may be damaged, and may change meanwhile.
#pragma once

#include <fcntl.h>
#include <gelf.h>
#include <sys/stat.h>

#include <memory>
#include <string>

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

// A file that somebody else has named. Not open if it is no regular one: opening others may have effects.
inline UniqueFd open_named_file(const std::string& path) {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0 || !S_ISREG(facts.st_mode)) return {};
  return UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
}

}  // namespace plimsoll::remote
