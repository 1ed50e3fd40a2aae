// native/loaded_file.h: an ELF file as it was loaded into a process: where its parts are, what it is told by, and the
// unwind table of its code.
#pragma once

#include <elf.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "base/unique_fd.h"
#include "native/eh_frame.h"
#include "native/module_map.h"
#include "native/process_memory.h"
#include "os/process.h"

namespace plimsoll::native {

// Opens the file that a mapping is of; not open if it cannot be had.
using OpenFile = std::function<UniqueFd(const os::Mapping&)>;

// From where files that were loaded are read: the memory they were loaded into, and if need be themselves.
struct LoadedFiles {
  const ProcessMemory& memory;
  const OpenFile open;
};

// The program headers of the ELF file whose first byte is in memory at `start`; false if there is none.
bool read_headers(const ProcessMemory& memory, std::uint64_t start, std::vector<Elf64_Phdr>& headers);

// The first one of a type; null if there is none.
const Elf64_Phdr* header_of(const std::vector<Elf64_Phdr>& headers, std::uint32_t type);

// How far a file is from where it was linked to be, of which the first part is at `start`.
std::uint64_t slide_of(std::uint64_t start, const Elf64_Phdr& first);

// Whether another file is where a module was. (What cannot be read any more is about to go, which mappings tell.)
bool is_replaced(const Module& module, const ProcessMemory& memory);

// Fills in a module of which the mappings are known. The file may be damaged, or be unloaded meanwhile: then what could
// not be read is not there. `meanwhile` as of compile_eh_frame.
void compile(Module& module, RulePool& pool, const LoadedFiles& files, const Meanwhile& meanwhile);

}  // namespace plimsoll::native
