// memory/copied.h: a piece of memory as it was when it was copied.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "memory/reader.h"

namespace plimsoll::memory {

// Bytes from an address on; everything else is unreadable. The copy must outlive it. Async-signal-safe.
class CopiedMemory {
 public:
  CopiedMemory(Address start, std::span<const std::byte> bytes) : start_(start), bytes_(bytes) {}
  template <typename Integer>
  [[nodiscard]] bool load(Address at, Integer& out) const {
    return read(at, &out, sizeof out);
  }
  [[nodiscard]] bool read(Address at, void* out, std::size_t size) const {
    const std::uint64_t offset = raw(at) - raw(start_);
    if (at < start_ || offset > bytes_.size() || size > bytes_.size() - offset) return false;
    std::memcpy(out, bytes_.data() + offset, size);
    return true;
  }

 private:
  const Address start_;
  const std::span<const std::byte> bytes_;
};
static_assert(Reader<CopiedMemory>);

}  // namespace plimsoll::memory
