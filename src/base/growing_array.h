// base/growing_array.h: an array for tables that become large while a program waits for them.
//
// A std::vector that grows copies what it has into fresh memory, each page of which the kernel must clear first. Here
// the kernel moves the pages instead (mremap), and gives large tables large ones. Where it has none to give, as in a
// program that has reached its limit (RLIMIT_AS) and goes on with what it freed, the elements go where that is.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

namespace plimsoll {

// Elements are not destroyed. References to them end with the next growth. Not thread-safe.
template <typename T>
class GrowingArray {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  GrowingArray() = default;
  GrowingArray(const GrowingArray&) = delete;
  GrowingArray& operator=(const GrowingArray&) = delete;
  GrowingArray(GrowingArray&& other) noexcept { swap(other); }
  GrowingArray& operator=(GrowingArray&& other) noexcept {
    GrowingArray taken(std::move(other));
    swap(taken);
    return *this;
  }
  ~GrowingArray() { free(); }

  [[nodiscard]] T* data() { return data_; }
  [[nodiscard]] const T* data() const { return data_; }
  [[nodiscard]] std::size_t size() const { return size_; }
  // Bytes of memory that it has touched: whole pages, however much it has mapped.
  [[nodiscard]] std::size_t memory() const { return (size_ * sizeof(T) + kPage - 1) / kPage * kPage; }
  [[nodiscard]] T* begin() { return data_; }
  [[nodiscard]] T* end() { return data_ + size_; }
  [[nodiscard]] const T* begin() const { return data_; }
  [[nodiscard]] const T* end() const { return data_ + size_; }
  bool operator==(const GrowingArray& other) const { return std::equal(begin(), end(), other.begin(), other.end()); }
  T& operator[](std::size_t at) { return data_[at]; }
  const T& operator[](std::size_t at) const { return data_[at]; }
  T& back() { return data_[size_ - 1]; }
  // May throw std::bad_alloc; then nothing has changed.
  void push_back(T element) {  // a copy, as it may be one of these
    if (size_ == capacity_) [[unlikely]]
      grow(size_ + 1);
    new (data_ + size_) T(element);
    ++size_;
  }
  // (What is beyond the last is made of zeros: extend() counts on that.)
  void pop_back() { std::memset(static_cast<void*>(data_ + --size_), 0, sizeof(T)); }
  // Room for so many. May throw std::bad_alloc; then nothing has changed.
  void reserve(std::size_t count) {
    if (count > capacity_) grow(count);
  }
  // It is empty, and keeps its memory.
  void clear() {
    if (size_ != 0) std::memset(static_cast<void*>(data_), 0, size_ * sizeof(T));
    size_ = 0;
  }
  // It is empty, and has no memory.
  void free() {
    release();
    data_ = nullptr;
    size_ = capacity_ = written_ = bytes_ = 0;
  }
  // At least so many, the new ones made of zeros. May throw std::bad_alloc; then nothing has changed.
  void extend(std::size_t size) {
    if (size <= size_) return;
    if (size > capacity_) grow(size);
    if (size > written_) [[unlikely]]
      write_to_pages(size);
    size_ = size;
  }

 private:
  static constexpr std::size_t kPage = 4096;
  static constexpr std::size_t kFirstBytes = std::size_t{64} << 10U;
  // From so many bytes on. Of smaller tables a large page would often be half for nothing, and where the host of a
  // virtual machine has to find memory for it first, it takes some milliseconds (a tree that is recorded exactly has
  // five tables: 4.7 times plain instead of 3.6).
  static constexpr std::size_t kLargePages = std::size_t{32} << 20U;

  void swap(GrowingArray& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
    std::swap(written_, other.written_);
    std::swap(bytes_, other.bytes_);
    std::swap(is_mapped_, other.is_mapped_);
  }
  [[gnu::noinline]] void grow(std::size_t least) {
    const std::size_t before = bytes_;
    std::size_t bytes = before == 0 ? kFirstBytes : 2 * before;
    while (bytes / sizeof(T) < least) bytes *= 2;
    void* moved = MAP_FAILED;
    if (data_ == nullptr)
      moved = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    else if (is_mapped_)
      moved = ::mremap(static_cast<void*>(data_), before, bytes, MREMAP_MAYMOVE);
    if (moved == MAP_FAILED) return grow_in_heap(bytes);
    if (bytes >= kLargePages) ::madvise(moved, bytes, MADV_HUGEPAGE);
    is_mapped_ = true;
    set_memory(moved, bytes);
  }
  // Zeros, where there are such. The kernel gives a page that is read before it is written to twice, at first the one
  // of zeros that all share; to exchange it, it interrupts all CPUs that the process runs on, for some 20 us.
  [[gnu::noinline]] void write_to_pages(std::size_t size) {
    volatile char* const bytes = reinterpret_cast<char*>(data_);
    const std::size_t into_page = reinterpret_cast<std::uintptr_t>(data_) % kPage;
    const std::size_t before = into_page + std::max(size_, written_) * sizeof(T);
    std::size_t page = (before + kPage - 1) / kPage * kPage - into_page;  // where one begins, from data_ on
    for (; page < size * sizeof(T); page += kPage) bytes[page] = 0;
    written_ = std::max(size, page / sizeof(T));
  }
  void grow_in_heap(std::size_t bytes) {
    void* const copy = std::calloc(1, bytes);
    if (copy == nullptr) throw std::bad_alloc();
    if (size_ != 0) std::memcpy(copy, static_cast<const void*>(data_), size_ * sizeof(T));
    release();
    is_mapped_ = false;
    set_memory(copy, bytes);
  }
  void set_memory(void* at, std::size_t bytes) {
    data_ = static_cast<T*>(at);
    bytes_ = bytes;
    capacity_ = bytes / sizeof(T);
  }
  void release() {
    if (data_ == nullptr) return;
    if (is_mapped_)
      ::munmap(static_cast<void*>(data_), bytes_);
    else
      std::free(static_cast<void*>(data_));
  }

  T* data_ = nullptr;
  std::size_t size_ = 0, capacity_ = 0, bytes_ = 0;
  std::size_t written_ = 0;  // no element before it is on a page that extend() has yet to write to, nor before size_
  bool is_mapped_ = false;
};

}  // namespace plimsoll
