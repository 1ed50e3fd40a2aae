// memory/reader.h: the one way to look at a target's memory.
//
// A walker is generic over a Reader, so the same code walks our own process (LocalReader), another process, a core
// file, or a test's drawing of memory (FakeMemory).
#pragma once

#include <cassert>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/ids.h"

namespace plimsoll::memory {

// Copies bytes out of a target. load reads one integer of 1, 2, 4 or 8 bytes, read a run of bytes. Both return false,
// and leave `out` unspecified, if any byte is not readable. Both must be async-signal-safe where the Reader says so.
template <typename M>
concept Reader = requires(const M& memory, Address at, void* out, std::size_t size, std::uint8_t& u8,
                          std::uint32_t& u32, std::uint64_t& u64) {
  { memory.load(at, u8) } -> std::same_as<bool>;
  { memory.load(at, u32) } -> std::same_as<bool>;
  { memory.load(at, u64) } -> std::same_as<bool>;
  { memory.read(at, out, size) } -> std::same_as<bool>;
};

// Loads a pointer as an Address.
template <Reader M>
bool load_address(const M& memory, Address at, Address& out) {
  std::uint64_t value = 0;
  if (!memory.load(at, value)) return false;
  out = Address{value};
  return true;
}

// A Reader that keeps copies: window(at, size) is where the copy of those bytes stands, or null if there is none in one
// piece.
template <typename M>
concept CopyingReader = Reader<M> && requires(const M& memory, Address at, std::size_t size) {
  { memory.window(at, size) } -> std::same_as<const std::byte*>;
};

// One structure of the target, of which some fields are read: in a copy it is found once, not once for each of them.
template <Reader M>
class Fields {
 public:
  // `size`: no field that is read ends behind so many bytes.
  [[gnu::always_inline]] Fields(const M& memory, Address at, std::size_t size) : memory_(memory), at_(at), size_(size) {
    if constexpr (CopyingReader<M>) copy_ = memory.window(at, size);
  }
  template <typename Word>
  [[nodiscard, gnu::always_inline]] inline bool load(std::uint32_t offset, Word& out) const {
    assert(offset + sizeof out <= size_);
    if constexpr (CopyingReader<M>) {
      if (copy_ == nullptr) [[unlikely]]
        return load_elsewhere(offset, out);
      std::memcpy(&out, copy_ + offset, sizeof out);
      return true;
    } else {
      return memory_.load(offset_by(at_, offset), out);
    }
  }
  [[nodiscard, gnu::always_inline]] inline bool load(std::uint32_t offset, Address& out) const {
    std::uint64_t value = 0;
    if (!load(offset, value)) return false;
    out = Address{value};
    return true;
  }
  [[nodiscard]] Address at() const { return at_; }

 private:
  template <typename Word>
  [[gnu::noinline]] bool load_elsewhere(std::uint32_t offset, Word& out) const {
    return memory_.load(offset_by(at_, offset), out);
  }

  const M& memory_;
  const Address at_;
  const std::size_t size_;
  const std::byte* copy_ = nullptr;
};

}  // namespace plimsoll::memory
