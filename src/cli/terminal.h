// cli/terminal.h: how wide the output is and whether it has colours.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace plimsoll::cli {

// What --color says.
enum class ColorChoice { kAuto, kAlways, kNever };

// The word after --color; an error lists the words.
Result<ColorChoice> parse_color(std::string_view word);

// What the outside says about the output. Texts are environment variables, nullopt = not set.
struct Environment {
  bool is_tty = false;          // standard output is a terminal
  std::size_t tty_columns = 0;  // as the terminal says; 0 = unknown
  std::optional<std::string> no_color, force_color, python_colors, term, columns;
  std::string directory;  // the current one; paths below it are shown relative to it
};

// The real one, of this process.
Environment process_environment();

// --color decides; else PYTHON_COLORS, NO_COLOR, FORCE_COLOR, TERM=dumb, in the order of Python's own rule; else
// whether a person is watching.
bool wants_color(ColorChoice choice, const Environment& environment);

// COLUMNS, else what the terminal says, else 80; at least 40. A pipe has no width, unless COLUMNS gives it one: whoever
// reads it searches for whole names.
std::size_t output_width(const Environment& environment);

// What a piece of text is, not what it looks like; terminal.cc has the looks.
enum class Style { kPlain, kDim, kStrong, kWarning, kHot, kWarm, kMild, kCool };

// How much of the total decides how hot a row is.
Style heat(double percent);

// Adds escape sequences to a text, or nothing when the output has no colours.
class Paint {
 public:
  explicit Paint(bool colors) : colors_(colors) {}
  [[nodiscard]] std::string operator()(Style style, std::string_view text) const;

 private:
  bool colors_;
};

// What a renderer has to know: nothing here depends on the process, so a test can make one.
struct Page {
  std::size_t width = 120;
  Paint paint{false};
  std::string directory;
};

}  // namespace plimsoll::cli
