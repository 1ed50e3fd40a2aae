// base/no_memory_testing.h: a test whose thread is given no memory. No product code may include it.
#pragma once

#include <sys/resource.h>

#include <cstddef>
#include <cstdlib>
#include <new>

namespace plimsoll::testing {

// While this lives, the process has come to its limit, and what its allocator has left is taken: who asks for memory
// gets none, unless it has been given back in the meantime.
class NoMemory {
 public:
  // The allocators of sanitizers end the process instead.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  static constexpr bool kCanBe = false;
#else
  static constexpr bool kCanBe = true;
#endif

  NoMemory() {
    constexpr std::size_t kLargest = std::size_t{1} << 30U, kLargestSmall = 2048, kStep = 16;
    ::getrlimit(RLIMIT_AS, &before_);
    const rlimit none{4096, before_.rlim_max};
    ::setrlimit(RLIMIT_AS, &none);
    for (std::size_t size = kLargest; size >= kStep; size = size > kLargestSmall ? size / 2 : size - kStep)
      while (void* const taken = std::malloc(size)) last_ = new (taken) Taken{last_};
  }
  NoMemory(const NoMemory&) = delete;
  NoMemory& operator=(const NoMemory&) = delete;
  ~NoMemory() {
    ::setrlimit(RLIMIT_AS, &before_);
    while (last_ != nullptr) {
      Taken* const next = last_->next;
      std::free(last_);
      last_ = next;
    }
  }

 private:
  // The beginning of what was taken.
  struct Taken {
    Taken* next;
  };
  rlimit before_{};
  Taken* last_ = nullptr;
};

}  // namespace plimsoll::testing
