// base/sparse_array.h: long arrays of zeros that take memory where they were written, and nowhere else.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

namespace plimsoll {

// kCount elements that are zeros at first, in a mapping of their own; or none. Pages that were never written take
// address space only, and all of it is the system's again as soon as the array is no more.
template <typename T, std::size_t kCount>
class SparseArray {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>, "begins as zeros, just ends");

 public:
  // None.
  SparseArray() = default;
  static SparseArray zeros() {
    SparseArray made;
    void* start = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED) throw std::bad_alloc();
    ::madvise(start, kBytes, MADV_NOHUGEPAGE);  // a large page would be taken for one element
    made.elements_ = static_cast<T*>(start);
    return made;
  }
  SparseArray(SparseArray&& other) noexcept : elements_(std::exchange(other.elements_, nullptr)) {}
  SparseArray& operator=(SparseArray&& other) noexcept {
    SparseArray before(std::move(*this));
    elements_ = std::exchange(other.elements_, nullptr);
    return *this;
  }
  ~SparseArray() {
    if (elements_ != nullptr) ::munmap(elements_, kBytes);
  }

  [[nodiscard]] bool is_there() const { return elements_ != nullptr; }
  T& operator[](std::size_t i) { return elements_[i]; }
  const T& operator[](std::size_t i) const { return elements_[i]; }

 private:
  static constexpr std::size_t kBytes = kCount * sizeof(T);  // NOLINT(bugprone-sizeof-expression): T may be a pointer
  T* elements_ = nullptr;
};

}  // namespace plimsoll
