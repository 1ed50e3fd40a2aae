// alloc/malloc_family.h: the functions that modules call instead of malloc and its kin while those are recorded.
//
// Every block is the C library's: what is noted of it is forgotten when it is freed, and nothing else changes. So a
// block may come from before, or be freed after, or by somebody who was not met.
#pragma once

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "alloc/allocator_table.h"
#include "alloc/imports.h"

namespace plimsoll::alloc {

// How a block of memory comes to its end, as those who keep books of it are told.
enum class NativeEnd : std::uint8_t { kFreed, kMoved };

// The C library's functions. Filled before any of ours can be called.
struct RealMalloc {
  void* (*malloc)(std::size_t) = nullptr;
  void* (*calloc)(std::size_t, std::size_t) = nullptr;
  void* (*realloc)(void*, std::size_t) = nullptr;
  void (*free)(void*) = nullptr;
  int (*posix_memalign)(void**, std::size_t, std::size_t) = nullptr;
  void* (*aligned_alloc)(std::size_t, std::size_t) = nullptr;
  void* (*memalign)(std::size_t, std::size_t) = nullptr;
  void* (*valloc)(std::size_t) = nullptr;
  void* (*pvalloc)(std::size_t) = nullptr;
};
inline constinit RealMalloc real{};

// `Books` knows blocks:
//   is_due(size)           cheap: whether note() is to be told of a block of this size
//   note(domain, at, size) it was given out
//   not_given(size)        it was not: there is no memory
//   may_know(at)           cheap: whether take() may find something
//   take(at, end) -> Kept  what is known of a block, forgotten: it is about to come to this end
//   put_back(at, kept)     it lives on after all
//   ended(kept)            it does not
template <typename Books>
struct MallocFamily {
  static void* malloc(std::size_t size) {
    if (!Books::is_due(size)) [[likely]]
      return real.malloc(size);
    return noted(real.malloc(size), size);
  }
  static void* calloc(std::size_t count, std::size_t item) {
    std::size_t size = 0;
    if (__builtin_mul_overflow(count, item, &size) || !Books::is_due(size)) return real.calloc(count, item);
    return noted(real.calloc(count, item), size);
  }
  static void free(void* at) {
    if (Books::may_know(at)) [[unlikely]]
      forget(at);
    real.free(at);
  }
  static void* realloc(void* at, std::size_t size) {
    const bool is_known = at != nullptr && Books::may_know(at);
    // (Without a block it is malloc; with one and no size, free.)
    const bool is_due = (size != 0 || at == nullptr) && Books::is_due(size);
    if (!is_known && !is_due) [[likely]]
      return real.realloc(at, size);
    return changed(at, size, is_known, is_due);
  }
  static void* reallocarray(void* at, std::size_t count, std::size_t item) {
    std::size_t size = 0;
    if (!__builtin_mul_overflow(count, item, &size)) return realloc(at, size);
    errno = ENOMEM;
    return nullptr;
  }
  static int posix_memalign(void** out, std::size_t alignment, std::size_t size) {
    const int failed = real.posix_memalign(out, alignment, size);
    if (failed == 0 && Books::is_due(size)) noted(*out, size);
    return failed;
  }
  static void* aligned_alloc(std::size_t alignment, std::size_t size) {
    void* at = real.aligned_alloc(alignment, size);
    return Books::is_due(size) ? noted(at, size) : at;
  }
  static void* memalign(std::size_t alignment, std::size_t size) {
    void* at = real.memalign(alignment, size);
    return Books::is_due(size) ? noted(at, size) : at;
  }
  static void* valloc(std::size_t size) {
    void* at = real.valloc(size);
    return Books::is_due(size) ? noted(at, size) : at;
  }
  static void* pvalloc(std::size_t size) {
    void* at = real.pvalloc(size);
    return Books::is_due(size) ? noted(at, size) : at;
  }

  // Everything that modules import; `real` is filled.
  static std::array<Import, 10> imports() {
    const auto row = [](const char* name, auto* ours, auto* original) {
      return Import{name, reinterpret_cast<void*>(ours), reinterpret_cast<void*>(original), alias_of(name)};
    };
    return {row("malloc", &malloc, real.malloc),
            row("calloc", &calloc, real.calloc),
            row("realloc", &realloc, real.realloc),
            row("free", &free, real.free),
            row("reallocarray", &reallocarray, imported_function("reallocarray")),
            row("posix_memalign", &posix_memalign, real.posix_memalign),
            row("aligned_alloc", &aligned_alloc, real.aligned_alloc),
            row("memalign", &memalign, real.memalign),
            row("valloc", &valloc, real.valloc),
            row("pvalloc", &pvalloc, real.pvalloc)};
  }

 private:
  // The slow paths leave errno as the C library left it.
  [[gnu::noinline]] static void* noted(void* at, std::size_t size) {
    const int error = errno;
    if (at != nullptr)
      Books::note(Domain::kMalloc, at, size);
    else
      Books::not_given(size);
    errno = error;
    return at;
  }
  [[gnu::noinline]] static void forget(void* at) {
    const int error = errno;
    Books::ended(Books::take(at, NativeEnd::kFreed));
    errno = error;
  }
  [[gnu::noinline]] static void* changed(void* at, std::size_t size, bool is_known, bool is_due) {
    const int before = errno;
    // Forgotten before somebody else may be given the address.
    typename Books::Kept kept{};
    if (is_known) kept = Books::take(at, size == 0 ? NativeEnd::kFreed : NativeEnd::kMoved);
    errno = before;
    void* moved = real.realloc(at, size);
    const int error = errno;
    const bool has_failed = moved == nullptr && size != 0;
    if (is_known && has_failed) Books::put_back(at, kept);
    if (is_known && !has_failed) Books::ended(kept);
    if (is_due) noted(moved, size);
    errno = error;
    return moved;
  }
};

// Fills `real`. False if the program has no malloc that modules could import.
inline bool find_real_malloc() {
  const auto find = [](const char* name, auto& to) {
    to = reinterpret_cast<std::remove_reference_t<decltype(to)>>(imported_function(name));
  };
  find("malloc", real.malloc);
  find("calloc", real.calloc);
  find("realloc", real.realloc);
  find("free", real.free);
  find("posix_memalign", real.posix_memalign);
  find("aligned_alloc", real.aligned_alloc);
  find("memalign", real.memalign);
  find("valloc", real.valloc);
  find("pvalloc", real.pvalloc);
  return real.malloc != nullptr && real.calloc != nullptr && real.realloc != nullptr && real.free != nullptr;
}

}  // namespace plimsoll::alloc
