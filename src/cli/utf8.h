// cli/utf8.h: texts of a profile on their way to a terminal.
//
// Names and source lines come from the profiled program, or from a file that somebody sent. They may hold invalid
// UTF-8, escape sequences that would drive the terminal, or direction overrides that make code read otherwise than it
// runs. Nothing of that reaches the screen.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace plimsoll::cli {

// One line that is safe to show: valid UTF-8, control characters as their pictures (U+2400...), direction overrides as
// U+FFFD. A tab becomes one space.
std::string printable(std::string_view text);

// The number of terminal cells of a valid text: 2 for East Asian wide characters and emoji, 0 for combining marks.
std::size_t display_width(std::string_view text);

// The longest start (end) of a valid text that fits into `width` cells.
std::string_view start_of(std::string_view text, std::size_t width);
std::string_view end_of(std::string_view text, std::size_t width);

// A text of at most `width` cells; what is cut from the right (left) shows as "…".
std::string cut_right(std::string_view text, std::size_t width);
std::string cut_left(std::string_view text, std::size_t width);

}  // namespace plimsoll::cli
