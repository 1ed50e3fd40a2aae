// cpython/literals.h: numbers and texts as Python's repr writes them. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace plimsoll::cpython {

// "1.0", "1e+16", "nan".
std::string float_literal(double number);
// "(1+2j)", "2j".
std::string complex_literal(double real, double imaginary);
// Of an int's digits, 30 bits each, the lowest first. The time goes with the square of their number.
std::string int_literal(std::span<const std::uint32_t> digits, bool is_negative);
// UTF-8 between quotes: those that repr takes. In it may be lone surrogates, of three bytes each.
std::string text_literal(std::string_view utf8);
// "b'...'"
std::string bytes_literal(std::string_view bytes);

}  // namespace plimsoll::cpython
