// alloc/reserved_memory.h: addresses that are reserved as a whole, and become memory from their beginning on.
//
// Until they do, they are neither data of the program, to which a limit may be set (RLIMIT_DATA), nor memory that the
// system has promised (vm.overcommit_memory=2).
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>

namespace plimsoll::alloc {

// Memory of which a page costs nothing before it is written to; null if there are no addresses for it.
inline void* map_memory(std::size_t bytes, int protection = PROT_READ | PROT_WRITE) {
  void* at = ::mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return at == MAP_FAILED ? nullptr : at;
}
inline void* reserve_addresses(std::size_t bytes) { return map_memory(bytes, PROT_NONE); }

// The pages of these bytes, which begin one, are memory from now on; those that were stay what they are. False if the
// system has no more to give.
inline bool make_memory(void* at, std::size_t bytes) { return ::mprotect(at, bytes, PROT_READ | PROT_WRITE) == 0; }

// How many bytes of a reservation are to be memory when those that are do not suffice: an eighth more, as each time is
// a system call; in whole `unit`s, and at least `least`.
constexpr std::size_t next_opened(std::size_t opened, std::size_t reserved, std::size_t unit, std::size_t least) {
  return std::min(opened + std::max(least, opened / 8 / unit * unit), reserved);
}

}  // namespace plimsoll::alloc
