// base/large_pages.h: large pages of the kernel's under long arrays: fewer faults, and fewer misses of the TLB.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace plimsoll {

// Asks for large pages under the whole capacity of an array, before it is filled; where there are none to be had,
// nothing is lost. They come 2 MiB at a time, so that a short array would take more memory by them: it is left alone.
template <typename T>
void want_large_pages(const std::vector<T>& array) {
  constexpr std::uintptr_t kPage = 4096, kLeastBytes = std::uintptr_t{16} << 20U;
  const auto start = (reinterpret_cast<std::uintptr_t>(array.data()) + kPage - 1) / kPage * kPage;
  const auto end = reinterpret_cast<std::uintptr_t>(array.data() + array.capacity()) / kPage * kPage;
  if (end < start + kLeastBytes) return;
  ::madvise(reinterpret_cast<void*>(start), end - start, MADV_HUGEPAGE);
}

}  // namespace plimsoll
