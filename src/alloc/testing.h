// alloc/testing.h: what tests and fuzzers of hooks have in common. No product code may include it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>

#include "alloc/allocator_table.h"

namespace plimsoll::alloc::testing {

// Fails loudly in any program: tests see a crash, fuzzers an input that makes it.
inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "not so: %s\n", what);
  std::abort();
}

// Python's allocators, over the C library's.
class CLibraryTable final : public AllocatorTable {
 public:
  CLibraryTable() {
    now_.fill(
        {nullptr, [](void*, std::size_t size) { return std::malloc(std::max<std::size_t>(size, 1)); },
         [](void*, std::size_t count, std::size_t item) { return std::calloc(count, std::max<std::size_t>(item, 1)); },
         [](void*, void* at, std::size_t size) { return std::realloc(at, std::max<std::size_t>(size, 1)); },
         [](void*, void* at) { std::free(at); }});
  }
  [[nodiscard]] Allocator get(Domain domain) const override { return now_[static_cast<std::size_t>(domain)]; }
  void set(Domain domain, const Allocator& allocator) override { now_[static_cast<std::size_t>(domain)] = allocator; }
  [[nodiscard]] bool is_plain() const override { return true; }

 private:
  std::array<Allocator, kAllDomains> now_;
};

}  // namespace plimsoll::alloc::testing
