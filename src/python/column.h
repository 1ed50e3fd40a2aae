// python/column.h: columns of tables as Python's memoryviews, without a copy.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace plimsoll::python {

// Numbers that somebody else keeps: `format` is that of one, as the module struct has it.
struct ColumnBytes {
  const void* data;
  std::size_t count;
  std::size_t item_bytes;
  const char* format;
};

// A read-only memoryview, which keeps `owner`.
nanobind::object memory_view(const ColumnBytes& bytes, nanobind::object owner);

// The first `count` of the values; `owner` keeps them. Ids are numbers.
template <typename T>
nanobind::object column(const std::vector<T>& values, std::size_t count, nanobind::handle owner) {
  static_assert(std::is_trivially_copyable_v<T> && (sizeof(T) == 1 || sizeof(T) == 4 || sizeof(T) == 8));
  constexpr const char* kFormat = sizeof(T) == 1                     ? "B"
                                  : sizeof(T) == 4                   ? "I"
                                  : std::is_same_v<T, std::uint64_t> ? "Q"
                                                                     : "q";
  return memory_view({values.data(), count, sizeof(T), kFormat}, nanobind::borrow(owner));
}
// All of them.
template <typename T>
nanobind::object column(const std::vector<T>& values, nanobind::handle owner) {
  return column(values, values.size(), owner);
}

}  // namespace plimsoll::python
