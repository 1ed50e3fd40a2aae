// cli/units.cc: formatting and parsing of quantities.
#include "cli/units.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <ctime>

namespace plimsoll::cli {
namespace {

// Three significant digits for 0 <= value < 1000.
std::string three_digits(double value) {
  const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return fmt::format("{:.{}f}", value, decimals);
}

struct Unit {
  std::string_view name;
  double factor;
};

// The value in the largest unit that leaves at least 1 in front; the first unit takes whole numbers.
template <std::size_t N>
std::string in_best_unit(double value, const std::array<Unit, N>& units) {
  std::size_t best = 0;
  // 999.5 would print as 1000 of the smaller unit.
  while (best + 1 < N && value >= 0.9995 * units[best + 1].factor) ++best;
  const double scaled = value / units[best].factor;
  return best == 0 ? fmt::format("{:.0f} {}", scaled, units[0].name)
                   : fmt::format("{} {}", three_digits(scaled), units[best].name);
}

constexpr std::array<Unit, 4> kTimes = {{{"ns", 1}, {"µs", 1e3}, {"ms", 1e6}, {"s", 1e9}}};
constexpr std::array<Unit, 5> kBytes = {{{"B", 1}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}}};
constexpr std::array<Unit, 9> kTyped = {{{"", 1e9},
                                         {"s", 1e9},
                                         {"ms", 1e6},
                                         {"us", 1e3},
                                         {"µs", 1e3},
                                         {"ns", 1},
                                         {"min", 60e9},
                                         {"m", 60e9},
                                         {"h", 3600e9}}};

}  // namespace

std::string format_time(std::int64_t ns) {
  if (ns < 0) return ns == INT64_MIN ? "-292 years" : "-" + format_time(-ns);
  if (ns == 0) return "0 s";
  const std::int64_t seconds = (ns + 500'000'000) / 1'000'000'000;
  if (seconds >= 3600) return fmt::format("{} h {:02} min", seconds / 3600, seconds % 3600 / 60);
  if (seconds >= 100) return fmt::format("{} min {:02} s", seconds / 60, seconds % 60);
  return in_best_unit(static_cast<double>(ns), kTimes);
}

std::string format_bytes(std::int64_t bytes) {
  const auto value = static_cast<double>(bytes);
  return bytes < 0 ? "-" + in_best_unit(-value, kBytes) : in_best_unit(value, kBytes);
}

std::string format_count(std::uint64_t count) {
  std::string digits = std::to_string(count);
  for (std::size_t end = digits.size(); end > 3; end -= 3) digits.insert(end - 3, ",");
  return digits;
}

std::string plural(std::size_t count, std::string_view word) {
  return fmt::format("{} {}{}", format_count(count), word, count == 1 ? "" : "s");
}

std::string format_percent(double percent) {
  if (percent > 0 && percent < 0.05) return "<0.1";
  return fmt::format("{:.1f}", percent);
}

std::string format_rate(double hertz) {
  if (hertz >= 9999.5) return fmt::format("{} kHz", three_digits(std::min(hertz / 1000, 999.0)));
  return fmt::format("{} Hz", hertz >= 99.5 ? fmt::format("{:.0f}", hertz) : fmt::format("{:.3g}", hertz));
}

std::string format_date(std::int64_t realtime_ns) {
  const std::time_t seconds = realtime_ns / 1'000'000'000;
  std::tm utc{};
  if (::gmtime_r(&seconds, &utc) == nullptr) return "unknown";
  return fmt::format("{:%Y-%m-%d %H:%M:%S} UTC", utc);
}

double percent_of(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? 100.0 * static_cast<double>(part) / static_cast<double>(whole) : 0.0;
}

TimeScale::TimeScale(std::int64_t largest, Quantity quantity) {
  const auto step = static_cast<std::size_t>(largest >= 1'000'000'000 ? 3 : largest >= 1'000'000 ? 2 : largest >= 1000);
  const Unit& unit = quantity == Quantity::kBytes ? kBytes[step] : kTimes[step];
  unit_ = unit.name;
  divisor_ = unit.factor;
  const double shown = static_cast<double>(largest) / divisor_;
  decimals_ = divisor_ == 1 ? 0 : shown < 100 ? 3 : shown < 1000 ? 2 : 1;
}

std::string TimeScale::format(std::int64_t ns) const {
  return ns == 0 ? "·" : fmt::format("{:.{}f}", static_cast<double>(ns) / divisor_, decimals_);
}

std::string bar(double fraction, std::size_t cells) {
  constexpr std::array<std::string_view, 8> kParts = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  if (!(fraction > 0)) return {};
  const double eighths = std::min(fraction, 1.0) * static_cast<double>(cells) * 8;
  const auto drawn = static_cast<std::size_t>(std::max(1.0, std::round(eighths)));
  std::string out;
  for (std::size_t i = 0; i < drawn / 8; ++i) out += "█";
  out += kParts[drawn % 8];
  return out;
}

Result<std::int64_t> parse_bytes(std::string_view text, std::string_view option) {
  constexpr std::array<Unit, 11> kUnits = {{{"", 1},
                                            {"B", 1},
                                            {"kB", 1e3},
                                            {"MB", 1e6},
                                            {"GB", 1e9},
                                            {"K", 1 << 10U},
                                            {"KiB", 1 << 10U},
                                            {"M", 1 << 20U},
                                            {"MiB", 1 << 20U},
                                            {"G", 1 << 30U},
                                            {"GiB", 1 << 30U}}};
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  const auto found = std::find_if(kUnits.begin(), kUnits.end(), [&](const Unit& known) { return known.name == unit; });
  if (error != std::errc{} || found == kUnits.end() || !(value >= 0) || value * found->factor > 9e18)
    return Error{ErrorKind::kUsage,
                 fmt::format("{}: \"{}\" is no number of bytes; write 4096, 512K, 1M or the like", option, text)};
  return static_cast<std::int64_t>(std::llround(value * found->factor));
}

Result<std::int64_t> parse_time(std::string_view text, std::string_view option) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  const auto found = std::find_if(kTyped.begin(), kTyped.end(), [&](const Unit& typed) { return typed.name == unit; });
  const bool fits = error == std::errc{} && found != kTyped.end() && value >= 0 && value * found->factor < 9e18;
  if (!fits)
    return Error{
        ErrorKind::kUsage,
        fmt::format("{}: \"{}\" is not a time; write seconds (1.5) or a number with a unit (200ms, 1.5s, 2min)", option,
                    text)};
  return static_cast<std::int64_t>(std::llround(value * found->factor));
}

}  // namespace plimsoll::cli
