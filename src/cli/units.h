// cli/units.h: quantities as people read them, and as people type them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace plimsoll::cli {

// For sentences, three digits with the unit that fits: "812 ns", "45.3 µs", "1.23 ms", "12.3 s", "2 min 05 s", "3 h 20
// min".
std::string format_time(std::int64_t ns);
// "0 B", "812 B", "12.3 kB", "1.95 GB": powers of 1000.
std::string format_bytes(std::int64_t bytes);
// Digits in groups of three: "12,340".
std::string format_count(std::uint64_t count);
// "1 thread", "3,000 threads".
std::string plural(std::size_t count, std::string_view word);
// One decimal: "60.1"; "<0.1" for a little that is not nothing.
std::string format_percent(double percent);
// A rate in Hz: "999 Hz", "1.25 kHz".
std::string format_rate(double hertz);
// Nanoseconds since 1970 as "2026-11-21 07:41:03 UTC".
std::string format_date(std::int64_t realtime_ns);

// part of whole in percent; 0 when there is no whole.
double percent_of(std::int64_t part, std::int64_t whole);

// What a number is of.
enum class Quantity { kTime, kBytes };

// One unit for a whole column, chosen by its largest value, so that the length of a number shows its size.
class TimeScale {
 public:
  explicit TimeScale(std::int64_t largest, Quantity quantity = Quantity::kTime);
  [[nodiscard]] std::string_view unit() const { return unit_; }
  // The number alone; "·" for exactly zero, because a column of zeros hides what is not zero.
  [[nodiscard]] std::string format(std::int64_t ns) const;

 private:
  std::string_view unit_;
  double divisor_;
  int decimals_;
};

// A horizontal bar of at most `cells` cells, drawn in eighths of a cell. Something that is not nothing shows.
std::string bar(double fraction, std::size_t cells);

// Bytes as typed: "4096", "512K", "512KiB", "1M" (powers of 1024), "64kB" (of 1000). `option` names the option in the
// error.
Result<std::int64_t> parse_bytes(std::string_view text, std::string_view option);

// A duration as typed: "1.5" and "1.5s" are seconds; "200ms", "50us", "50µs", "10ns", "2min", "1h" too.
// `option` names the option in the error.
Result<std::int64_t> parse_time(std::string_view text, std::string_view option);

}  // namespace plimsoll::cli
