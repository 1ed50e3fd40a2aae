// memory/reader.h: the one way to look at a target's memory.
//
// A walker is generic over a Reader, so the same code walks our own process (LocalReader), another process, a core
// file, or a test's drawing of memory (FakeMemory).
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>

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

}  // namespace plimsoll::memory
