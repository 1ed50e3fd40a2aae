// cpython/int_object.h: objects of class int, of any size.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cpython/literals.h"
#include "cpython/object_view.h"

namespace plimsoll::cpython {

// How many digits an int has, of 30 bits each.
struct IntDigits {
  std::uint64_t count = 0;
  bool is_negative = false;
};

template <memory::Reader M>
IntDigits int_digits(const ObjectView<M>& view, Address object) {
  // From 3.12 on the count stands above three bits that tell the sign.
  constexpr std::uint64_t kSignMask = 3, kNegative = 2;
  const std::uint32_t at = view.layout().object.type + 8;
  if (view.layout().version.minor >= 12) {
    const std::uint64_t tag = view.word(object, at);
    return {tag >> 3U, (tag & kSignMask) == kNegative};
  }
  return {view.item_count(object), view.template number<std::int64_t>(object, at) < 0};
}

template <memory::Reader M>
std::uint32_t int_digit(const ObjectView<M>& view, Address object, std::uint64_t place) {
  return view.template number<std::uint32_t>(object, view.layout().object.type + 16 + place * 4);
}

// One that is not negative and has 64 bits at most.
template <memory::Reader M>
std::optional<std::uint64_t> small_int(const ObjectView<M>& view, Address object) {
  constexpr std::uint64_t kMost = 3, kBits = 30;
  const IntDigits digits = int_digits(view, object);
  if (digits.count > kMost || digits.is_negative) return std::nullopt;
  std::uint64_t value = 0;
  for (std::uint64_t i = 0; i < digits.count; ++i) value |= std::uint64_t{int_digit(view, object, i)} << (kBits * i);
  return value;
}

// In decimal if that takes at most `room` characters; else how large it is.
template <memory::Reader M>
std::string int_text(const ObjectView<M>& view, Address object, std::size_t room) {
  constexpr std::uint64_t kMostDigits = 128, kBits = 30;
  constexpr std::uint64_t kLargest = std::uint64_t{1} << 40U;
  const IntDigits digits = int_digits(view, object);
  if (digits.count <= kMostDigits) {
    std::vector<std::uint32_t> read;
    for (std::uint64_t i = 0; i < digits.count; ++i) read.push_back(int_digit(view, object, i));
    std::string text = int_literal(read, digits.is_negative);
    if (text.size() <= room) return text;
  }
  if (digits.count > kLargest) return "<unreadable>";
  const auto highest = static_cast<std::uint64_t>(std::bit_width(int_digit(view, object, digits.count - 1)));
  const std::uint64_t bits = (digits.count - 1) * kBits + highest;
  return (digits.is_negative ? "<negative int of " : "<int of ") + std::to_string(bits) + " bits>";
}

}  // namespace plimsoll::cpython
