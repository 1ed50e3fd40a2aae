// formats/collapsed/reader.cc: line by line, frame by frame.
#include "formats/collapsed/reader.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "formats/foreign.h"

namespace plimsoll::formats::collapsed {
namespace {

constexpr double kMicrosecond = 1'000;
constexpr std::size_t kLongestLine = std::size_t{1} << 22U;

std::string_view take_line(std::string_view& text) {
  std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(text.size(), line.size() + 1));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

std::optional<std::int64_t> integer(std::string_view digits) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (digits.empty() || error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

// A line cut at its last blank.
struct StackLine {
  std::string_view frames;
  std::int64_t number = 0;
};
std::optional<StackLine> cut(std::string_view line) {
  const std::size_t blank = line.rfind(' ');
  if (blank == std::string_view::npos || blank == 0 || line.size() > kLongestLine) return std::nullopt;
  const std::optional<std::int64_t> number = integer(line.substr(blank + 1));
  if (!number) return std::nullopt;
  return StackLine{line.substr(0, blank), *number};
}

bool is_text(std::string_view line) {
  return std::none_of(line.begin(), line.end(),
                      [](char c) { return static_cast<unsigned char>(c) < 0x20 && c != '\t'; });
}

// "function (file:line)"; the parts that are missing stay empty.
ForeignFrame parse_frame(std::string_view text) {
  const std::size_t open = text.rfind(" (");
  if (open == std::string_view::npos || !text.ends_with(')')) return {.name = text, .file = {}};
  ForeignFrame frame{.name = text.substr(0, open), .file = text.substr(open + 2, text.size() - open - 3)};
  const std::size_t colon = frame.file.rfind(':');
  if (colon == std::string_view::npos) return frame;
  if (const std::optional<std::int64_t> line = integer(frame.file.substr(colon + 1))) {
    frame.line = *line;
    frame.file = frame.file.substr(0, colon);
  }
  return frame;
}

// Austin's "file:function:line".
ForeignFrame parse_austin_frame(std::string_view text) {
  const std::size_t second = text.rfind(':');
  if (second == std::string_view::npos || second == 0) return {.name = text, .file = {}};
  const std::size_t first = text.rfind(':', second - 1);
  const std::optional<std::int64_t> line = integer(text.substr(second + 1));
  if (first == std::string_view::npos || !line) return {.name = text, .file = {}};
  return {.name = text.substr(first + 1, second - first - 1), .file = text.substr(0, first), .line = *line};
}

std::string_view take_element(std::string_view& frames) {
  const std::string_view element = frames.substr(0, frames.find(';'));
  frames.remove_prefix(std::min(frames.size(), element.size() + 1));
  return element;
}

// Austin's first two elements; the thread may have its interpreter before a colon.
struct AustinThread {
  std::int64_t pid = 0;
  std::int64_t tid = 0;
};
std::optional<AustinThread> take_austin_thread(std::string_view& frames) {
  std::string_view rest = frames;
  const std::string_view process = take_element(rest);
  std::string_view thread = take_element(rest);
  if (!process.starts_with('P') || !thread.starts_with('T')) return std::nullopt;
  thread.remove_prefix(1);
  if (const std::size_t colon = thread.find(':'); colon != std::string_view::npos) thread.remove_prefix(colon + 1);
  const std::optional<std::int64_t> pid = integer(process.substr(1));
  std::int64_t tid = 0;
  const auto [end, error] = std::from_chars(thread.data(), thread.data() + thread.size(), tid);
  if (!pid || error != std::errc{} || end == thread.data()) return std::nullopt;
  frames = rest;
  return AustinThread{*pid, tid};
}

// Fills a Profile from lines.
class Reader {
 public:
  void add(std::string_view line) {
    if (line.empty() || line.starts_with('#')) return;
    const std::optional<StackLine> parts = cut(line);
    if (!parts) {
      ++unread_;
      return;
    }
    std::string_view frames = parts->frames;
    const std::optional<AustinThread> austin = take_austin_thread(frames);
    const ThreadId thread = austin ? out_.thread(std::to_string(austin->pid) + " " + std::to_string(austin->tid), "",
                                                 austin->tid, austin->pid)
                                   : out_.thread("", "");
    StackId stack;
    while (!frames.empty()) {
      const std::string_view element = take_element(frames);
      stack = out_.push(stack, out_.frame(austin ? parse_austin_frame(element) : parse_frame(element)));
    }
    out_.sample(thread, stack, nanoseconds_of(static_cast<double>(parts->number), kMicrosecond));
    is_austin_ = is_austin_ || austin.has_value();
  }

  Result<profile::Profile> take() {
    if (out_.profile.samples.size() == 0) return Error{ErrorKind::kBadInput, "no line is a collapsed stack"};
    if (is_austin_)
      out_.profile.set_meta("format", "austin");
    else
      out_.profile.set_meta("weights", "assumed: the numbers are microseconds");
    out_.profile.set_meta("times", "assumed: one stack after the other");
    if (unread_ > 0) out_.profile.drops.push_back({"lines that are no stacks", unread_, 0});
    return out_.take();
  }

 private:
  ForeignProfile out_{"collapsed"};
  std::uint64_t unread_ = 0;
  bool is_austin_ = false;
};

}  // namespace

bool is_collapsed(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::string_view line = take_line(bytes);
    if (!line.empty() && !line.starts_with('#'))
      return is_text(line) && !line.starts_with('{') && cut(line).has_value();
  }
  return false;
}

Result<profile::Profile> read(std::string_view bytes) {
  Reader reader;
  while (!bytes.empty()) reader.add(take_line(bytes));
  return reader.take();
}

}  // namespace plimsoll::formats::collapsed
