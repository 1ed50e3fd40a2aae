// base/exact_row.h: what has become of blocks, as exact books tell it and as it is recorded.
#pragma once

#include <cstdint>

#include "base/growing_array.h"

namespace plimsoll {

// Which of Python's allocators a block came from. The numbers are part of the .plim format.
enum class AllocationDomain : std::uint8_t {
  kObject,  // PyObject_Malloc: objects
  kMemory,  // PyMem_Malloc: what objects own
  kRaw,     // PyMem_RawMalloc: what Python has of the system
  kMalloc,  // malloc and its kin, called by others than Python's allocators
  kMmap,    // anonymous memory of mmap, likewise
};

// What has become of blocks. The numbers are part of the .plim format.
enum class ExactChange : std::uint8_t {
  kBorn,
  kFreed,
  kFreedAtOnce,  // before the same stack had another such block
  kType,         // they are alive at the end, and their type is known
  kPeak,         // so many more, or fewer, were alive at the peak than at the peak known before
};

// Blocks of one stack and allocator, and what has become of them in an epoch of the books. There may be as many in an
// epoch as a program has stacks, and so they go from the books to the recorder as they are.
struct ExactRow {
  ExactChange change{};
  AllocationDomain domain{};
  std::uint8_t epoch = 0;   // that they were allocated in
  std::uint32_t stack = 0;  // its number
  std::int64_t blocks = 0;
  std::int64_t bytes = 0;
};
static_assert(sizeof(ExactRow) == 24);
using ExactRows = GrowingArray<ExactRow>;

}  // namespace plimsoll
