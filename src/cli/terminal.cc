// cli/terminal.cc: width and colours of the output.
#include "cli/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>

#include "cli/suggest.h"

namespace plimsoll::cli {
namespace {

std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

bool is_set(const std::optional<std::string>& value) { return value && !value->empty(); }

std::string_view sequence(Style style) {
  switch (style) {
    case Style::kPlain: return "";
    case Style::kDim: return "2";
    case Style::kStrong: return "1";
    case Style::kWarning: return "33";
    case Style::kHot: return "1;31";
    case Style::kWarm: return "33";
    case Style::kMild: return "32";
    case Style::kCool: return "2";
  }
  return "";
}

}  // namespace

Result<ColorChoice> parse_color(std::string_view word) {
  if (word == "auto") return ColorChoice::kAuto;
  if (word == "always") return ColorChoice::kAlways;
  if (word == "never") return ColorChoice::kNever;
  return Error{ErrorKind::kUsage, no_such("--color choice", word, {"auto", "always", "never"})};
}

Environment process_environment() {
  Environment environment;
  environment.is_tty = ::isatty(STDOUT_FILENO) == 1;
  winsize size{};
  if (environment.is_tty && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) environment.tty_columns = size.ws_col;
  environment.no_color = variable("NO_COLOR");
  environment.force_color = variable("FORCE_COLOR");
  environment.python_colors = variable("PYTHON_COLORS");
  environment.term = variable("TERM");
  environment.columns = variable("COLUMNS");
  std::error_code unreadable;  // a deleted directory: then no path is below it
  environment.directory = std::filesystem::current_path(unreadable).string();
  return environment;
}

bool wants_color(ColorChoice choice, const Environment& environment) {
  if (choice != ColorChoice::kAuto) return choice == ColorChoice::kAlways;
  if (environment.python_colors == "1" || environment.python_colors == "0") return environment.python_colors == "1";
  if (is_set(environment.no_color)) return false;
  if (is_set(environment.force_color)) return environment.force_color != "0";
  if (environment.term == "dumb") return false;
  return environment.is_tty;
}

std::size_t output_width(const Environment& environment) {
  constexpr std::size_t kNarrowest = 40, kWidest = 1000, kUnknownTerminal = 80, kPipe = 100'000;
  std::size_t width = 0;
  if (environment.columns) {
    const std::string& text = *environment.columns;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), width);
    if (error != std::errc{} || end != text.data() + text.size()) width = 0;
  }
  if (width == 0) width = environment.tty_columns;
  if (width == 0 && !environment.is_tty) return kPipe;
  if (width == 0) width = kUnknownTerminal;
  return std::clamp(width, kNarrowest, kWidest);
}

Style heat(double percent) {
  if (percent >= 50) return Style::kHot;
  if (percent >= 20) return Style::kWarm;
  return percent >= 5 ? Style::kMild : Style::kCool;
}

std::string Paint::operator()(Style style, std::string_view text) const {
  const std::string_view codes = sequence(style);
  if (!colors_ || codes.empty() || text.empty()) return std::string(text);
  return fmt::format("\x1b[{}m{}\x1b[0m", codes, text);
}

}  // namespace plimsoll::cli
