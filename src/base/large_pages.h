// base/large_pages.h: long arrays on large pages of the kernel's: fewer faults, and fewer misses of the TLB.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

namespace plimsoll {

// Large pages come 2 MiB at a time, so that a short array would take more memory by them.
inline constexpr std::size_t kLeastForLargePages = std::size_t{16} << 20U;

// Asks for large pages under the whole capacity of an array, before it is filled, if that is long enough; where there
// are none to be had, nothing is lost.
template <typename T>
void want_large_pages(const std::vector<T>& array) {
  constexpr std::uintptr_t kPage = 4096;
  const auto start = (reinterpret_cast<std::uintptr_t>(array.data()) + kPage - 1) / kPage * kPage;
  const auto end = reinterpret_cast<std::uintptr_t>(array.data() + array.capacity()) / kPage * kPage;
  if (end < start + kLeastForLargePages) return;
  ::madvise(reinterpret_cast<void*>(start), end - start, MADV_HUGEPAGE);
}

// Gives each long array a mapping of its own, which is the system's again as soon as the array is no more. malloc keeps
// what it once got for tens of megabytes, and the next array may not fit there.
template <typename T>
class MappingAllocator {
 public:
  using value_type = T;
  MappingAllocator() = default;
  template <typename U>
  explicit MappingAllocator(const MappingAllocator<U>&) {}

  T* allocate(std::size_t count) {
    const std::size_t bytes = count * sizeof(T);
    if (bytes < kLeastBytes) return static_cast<T*>(::operator new(bytes));
    void* start = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) throw std::bad_alloc();
    if (bytes >= kLeastForLargePages) ::madvise(start, bytes, MADV_HUGEPAGE);
    return static_cast<T*>(start);
  }
  void deallocate(T* start, std::size_t count) {
    const std::size_t bytes = count * sizeof(T);
    if (bytes < kLeastBytes)
      ::operator delete(start);
    else
      ::munmap(start, bytes);
  }
  bool operator==(const MappingAllocator&) const { return true; }

 private:
  static constexpr std::size_t kLeastBytes = std::size_t{1} << 20U;
};

// For working memory that is long and soon done with.
template <typename T>
using LongArray = std::vector<T, MappingAllocator<T>>;

}  // namespace plimsoll
