// cpython/gil.h: the global interpreter lock, as it lies in memory.
#pragma once

#include "cpython/layout.h"
#include "memory/reader.h"

namespace plimsoll::cpython {

// Where the lock of an interpreter is: the runtime's, up to 3.11; else its own or one that it shares. Null if it cannot
// be told. Async-signal-safe if `memory` is.
template <memory::Reader M>
Address gil_of(const M& memory, const Layout& layout, Address runtime, Address interpreter) {
  if (layout.gil.in_runtime != kNoField) return offset_by(runtime, layout.gil.in_runtime);
  Address gil{};
  if (layout.gil.in_interpreter == kNoField ||
      !memory::load_address(memory, offset_by(interpreter, layout.gil.in_interpreter), gil))
    return {};
  return gil;
}

// Whether an address lies in it: it, its condition variables and their mutexes are one structure, of 208 bytes up to
// 3.15.
constexpr bool is_in_gil(Address gil, Address at) {
  constexpr std::uint64_t kSize = 256;
  return !is_null(gil) && raw(at) >= raw(gil) && raw(at) - raw(gil) < kSize;
}

}  // namespace plimsoll::cpython
