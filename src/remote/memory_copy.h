// remote/memory_copy.h: the memory of a process, copied while it stands still for as long as that takes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "memory/image.h"
#include "os/page_map.h"
#include "os/process.h"

namespace plimsoll::remote {

// A process's memory as it was at one moment.
struct MemoryCopy {
  memory::Image image;
  std::int64_t stop_ns = 0;  // for which the process stood still
};

// A part of a process's memory, in whole pages: what is to be copied of it, or where else it is.
struct MemoryPart {
  // Where its bytes are.
  enum class From : std::uint8_t { kMemory, kFile, kZeros };
  std::uint64_t start = 0, end = 0;
  From from = From::kMemory;
  std::size_t mapping = 0;  // which one it is of
};

// What there is of private, readable mappings: pages that the process has written to are memory's, others the file's,
// or zeros. `runs` are the pages that there are of the mapping, or nothing where that is not known; then all that can
// be written to is memory's, and what else is not code. Code is the file's. Pure.
void add_parts(const os::Mapping& mapping, std::size_t number, const std::optional<std::span<const os::PageRun>>& runs,
               std::vector<MemoryPart>& out);

// Copies it. At most `most_bytes` are copied, else an error says how many there are. The process is stopped meanwhile,
// and goes on whatever happens, also if this process is killed.
Result<MemoryCopy> copy_memory(os::Pid pid, std::uint64_t most_bytes);

}  // namespace plimsoll::remote
