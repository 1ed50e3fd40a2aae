// alloc/books.h: who keeps what is known of blocks while all allocations are recorded.
#pragma once

#include <cstddef>
#include <cstdint>

#include "alloc/allocator_table.h"

namespace plimsoll::alloc {

// How a block comes to its end.
enum class Fate : std::uint8_t {
  kFreed,
  kMoved,  // by realloc: what is in it lives on in another, and so it was not allocated in vain
};

// The books. Not thread-safe: the GIL, or a lock of the caller's, is around them. All may throw std::bad_alloc, and
// then nothing has changed.
class BlockBooks {
 public:
  using Token = std::uint32_t;  // of a living block; never 0
  // The largest blocks whose size is told by their site, one for each.
  static constexpr std::size_t kLargestSmall = 512;

  // Of a living block.
  struct Facts {
    std::uint32_t stack = 0;
    Domain domain{};
    std::uint8_t epoch = 0;
    std::size_t size = 0;
  };

  virtual ~BlockBooks() = default;
  // A block has been given out.
  virtual Token allocated(std::uint32_t stack, Domain domain, const void* at, std::size_t size) = 0;
  // It comes to its end.
  virtual void ended(Token token, const void* at, Fate fate) = 0;
  // It may be moved, and somebody else be given its address: nothing is known by that any more. Returns its size, for
  // whichever of the next two follows: that it was, or that it stays there after all.
  virtual std::size_t lift(Token token, const void* at) noexcept = 0;
  virtual void moved(Token token, std::size_t size) = 0;
  virtual void put_back(Token token, const void* at, std::size_t size) = 0;
  // Whether there is anything to tell since it was told last.
  [[nodiscard]] virtual bool has_changed() const = 0;
  [[nodiscard]] virtual Facts facts_of(Token token, const void* at) const = 0;
  [[nodiscard]] virtual std::uint32_t stack_of(Token token) const = 0;

 protected:
  BlockBooks() = default;
  BlockBooks(const BlockBooks&) = default;
  BlockBooks& operator=(const BlockBooks&) = default;
};

}  // namespace plimsoll::alloc
