// formats/pypylog/reader.cc: lines -> sections -> markers, or stacks.
#include "formats/pypylog/reader.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "formats/chrometrace/spans.h"
#include "formats/foreign.h"
#include "formats/text_lines.h"

namespace plimsoll::formats::pypylog {
namespace {

using chrometrace::Spans;

constexpr std::string_view kClock = "plimsoll-clock-";

// A line that begins or ends a section.
struct Edge {
  std::int64_t ticks = 0;
  std::string_view section;
  bool is_start = false;
};
std::optional<Edge> edge_of(std::string_view line) {
  const std::size_t close = line.find("] ");
  if (!line.starts_with('[') || close == std::string_view::npos) return std::nullopt;
  const std::optional<std::int64_t> ticks = integer(line.substr(1, close - 1), 16);
  std::string_view section = line.substr(close + 2);
  if (!ticks || *ticks < 0 || section.size() < 2) return std::nullopt;
  const bool is_start = section.front() == '{';
  if (is_start == (section.back() == '}')) return std::nullopt;
  is_start ? section.remove_prefix(1) : section.remove_suffix(1);
  return Edge{*ticks, section, is_start};
}

// Whether a clock can have so many ticks in a nanosecond: 10 MHz to 10 GHz.
bool is_rate(double ticks_per_ns) {
  constexpr double kSlowest = 0.01, kFastest = 10;
  return ticks_per_ns >= kSlowest && ticks_per_ns <= kFastest;
}

// What turns ticks into the time of day: the first and the last clock section.
class Clock {
 public:
  void add(std::int64_t ticks, std::int64_t time_ns) {
    if (!first_) first_ = Point{ticks, time_ns};
    last_ = Point{ticks, time_ns};
  }
  // Whether two sections lie as far apart in time as a clock can have it.
  [[nodiscard]] bool is_known() const {
    if (!first_ || last_.ticks <= first_->ticks || last_.time_ns <= first_->time_ns) return false;
    return is_rate(ticks_per_ns());
  }
  [[nodiscard]] std::int64_t time_ns(std::int64_t ticks) const {
    return first_->time_ns + nanoseconds_of(static_cast<double>(ticks - first_->ticks) / ticks_per_ns(), 1);
  }

 private:
  // A moment by both clocks.
  struct Point {
    std::int64_t ticks = 0, time_ns = 0;
  };
  [[nodiscard]] double ticks_per_ns() const {
    return static_cast<double>(last_.ticks - first_->ticks) / static_cast<double>(last_.time_ns - first_->time_ns);
  }
  std::optional<Point> first_;
  Point last_;
};

// The microseconds that a line of jit-summary says the JIT took: "Tracing:", a tab, a number, a tab, "0.051975".
std::int64_t jit_us(std::string_view line) {
  constexpr std::size_t kDecimals = 6;
  if (!line.starts_with("Tracing:") && !line.starts_with("Backend:")) return 0;
  line.remove_prefix(line.rfind('\t') + 1);
  const std::size_t point = line.find('.');
  if (point == std::string_view::npos || line.size() - point - 1 != kDecimals) return 0;
  const auto seconds = integer(line.substr(0, point)), millionths = integer(line.substr(point + 1));
  constexpr std::int64_t kMostSeconds = 1'000'000'000;
  return seconds && millionths && *seconds >= 0 && *seconds < kMostSeconds && *millionths >= 0
             ? *seconds * 1'000'000 + *millionths
             : 0;
}

// All edges of a log, and its clock.
struct Log {
  std::vector<Edge> edges;
  Clock clock;
  double jit_us = 0;  // by its summary
};
Log parse(std::string_view text) {
  Log log;
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    const std::optional<Edge> edge = edge_of(line);
    if (!edge) {
      log.jit_us += static_cast<double>(jit_us(line));
      continue;
    }
    if (!edge->section.starts_with(kClock))
      log.edges.push_back(*edge);
    else if (const auto time = integer(edge->section.substr(kClock.size())); time && edge->is_start)
      log.clock.add(edge->ticks, *time);
  }
  return log;
}

// The sections that began and have not ended. An end closes the innermost one of its name, and what is open within it.
class OpenSections {
 public:
  void begin(const Edge& edge) { open_.push_back(edge); }
  std::optional<Edge> end(const Edge& edge) {
    for (std::size_t i = open_.size(); i > 0 && open_.size() - i < kDeepest; --i) {
      if (open_[i - 1].section != edge.section) continue;
      const Edge start = open_[i - 1];
      open_.resize(i - 1);
      return start;
    }
    return std::nullopt;
  }

 private:
  static constexpr std::size_t kDeepest = 100;  // of what is open without an end; logs nest a few deep
  std::vector<Edge> open_;
};

// Ticks in a nanosecond, by how long the JIT was busy in both; 0 if the log does not tell, or it was too short.
double rate_by_jit(const Log& log) {
  constexpr double kEnoughUs = 1000;  // to be right to a few hundredths
  if (log.jit_us < kEnoughUs) return 0;
  double ticks = 0;
  std::optional<std::int64_t> start;
  for (const Edge& edge : log.edges) {
    if (edge.section != "jit-tracing") continue;
    if (!edge.is_start && start) ticks += static_cast<double>(edge.ticks - *start);
    start = edge.is_start ? std::optional(edge.ticks) : std::nullopt;
  }
  const double rate = ticks / (log.jit_us * 1000);
  return is_rate(rate) ? rate : 0;
}

}  // namespace

bool add_sections(profile::Profile& profile, std::string_view log) {
  const Log parsed = parse(log);
  if (!parsed.clock.is_known()) return false;
  OpenSections open;
  for (const Edge& edge : parsed.edges) {
    if (edge.is_start) {
      open.begin(edge);
      continue;
    }
    const std::optional<Edge> start = open.end(edge);
    if (!start || start->ticks > edge.ticks) continue;
    const std::int64_t end_ns = parsed.clock.time_ns(edge.ticks) - profile.start_realtime_ns;
    if (end_ns < 0) continue;
    const std::int64_t start_ns =
        std::max<std::int64_t>(parsed.clock.time_ns(start->ticks) - profile.start_realtime_ns, 0);
    profile.markers.push_back({start_ns, end_ns - start_ns, ThreadId{}, std::string(edge.section), {}});
    profile.end_ns = std::max(profile.end_ns, end_ns);
  }
  return true;
}

bool is_pypylog(std::string_view bytes) {
  constexpr std::size_t kLongest = 200;  // of a section's line
  for (int lines = 0; lines < 3 && !bytes.empty(); ++lines) {
    const std::string_view line = bytes.substr(0, kLongest);
    if (const auto edge = edge_of(line.substr(0, line.find_first_of("\r\n"))); edge && edge->is_start) return true;
    take_line(bytes);
  }
  return false;
}

Result<profile::Profile> read(std::string_view bytes) {
  const Log log = parse(bytes);
  if (log.edges.empty()) return Error{ErrorKind::kBadInput, "a log of PyPy's without sections"};
  ForeignProfile out("pypylog");
  const bool is_known = log.clock.is_known();
  const double rate = rate_by_jit(log);
  const auto time_of = [&](const Edge& edge) {
    const std::int64_t first = log.edges.front().ticks;
    if (is_known) return log.clock.time_ns(edge.ticks) - log.clock.time_ns(first);
    return rate > 0 ? nanoseconds_of(static_cast<double>(edge.ticks - first) / rate, 1) : edge.ticks - first;
  };
  Spans spans;
  std::int64_t last_ns = 0;
  for (const Edge& edge : log.edges) {
    last_ns = std::max(last_ns, time_of(edge));
    edge.is_start ? spans.begin(last_ns, edge.section) : spans.end(last_ns);
  }
  spans.finish(last_ns);
  spans.write_stacks(out, out.thread("", "PyPyLog"));
  if (is_known) out.profile.start_realtime_ns = log.clock.time_ns(log.edges.front().ticks);
  out.profile.complete = bytes.ends_with('\n');  // a killed program leaves a part of a line
  out.profile.set_meta("mode", "wall");
  out.profile.set_meta("weights", is_known ? kMeasuredTicks : rate > 0 ? kEstimatedTicks : kAssumedTicks);
  return out.take();
}

}  // namespace plimsoll::formats::pypylog
