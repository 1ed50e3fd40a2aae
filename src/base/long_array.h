// base/long_array.h: arrays whose memory is the system's again as soon as they are no more.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <new>
#include <vector>

namespace plimsoll {

// Gives each array of a megabyte or more a mapping of its own. malloc keeps what it once got for tens of megabytes, and
// the next array may not fit there.
//
// Without large pages: measured on 5 million objects, to have the kernel find and clear them takes from nothing to as
// long again as all decoding, and it is memory that is not needed.
template <typename T>
class MappingAllocator {
 public:
  using value_type = T;  // NOLINT(readability-identifier-naming): as allocators have it
  MappingAllocator() = default;
  template <typename U>
  explicit MappingAllocator(const MappingAllocator<U>&) {}

  T* allocate(std::size_t count) {
    const std::size_t bytes = count * sizeof(T);
    if (bytes < kLeastBytes) return static_cast<T*>(::operator new(bytes));
    void* start = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) throw std::bad_alloc();
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
