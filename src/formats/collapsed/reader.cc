// formats/collapsed/reader.cc: line by line, frame by frame.
#include "formats/collapsed/reader.h"

#include <algorithm>
#include <optional>

#include "formats/austin_facts.h"
#include "formats/foreign.h"
#include "formats/text_lines.h"

namespace plimsoll::formats::collapsed {
namespace {

constexpr std::size_t kLongestLine = std::size_t{1} << 22U;

// A line cut at its last blank.
struct StackLine {
  std::string_view frames;
  std::int64_t number = 0;
  bool is_idle = false;
};
// The numbers of Austin's full mode: time, idle or not, memory.
bool parse_full_metrics(std::string_view text, StackLine& line) {
  const std::size_t first = text.find(',');
  const std::size_t second = text.find(',', first + 1);
  if (first == std::string_view::npos || second == std::string_view::npos) return false;
  const std::optional<std::int64_t> time = integer(text.substr(0, first));
  const std::optional<std::int64_t> idle = integer(text.substr(first + 1, second - first - 1));
  if (!time || !idle || !integer(text.substr(second + 1))) return false;
  line.number = *time;
  line.is_idle = *idle != 0;
  return true;
}
std::optional<StackLine> cut(std::string_view line) {
  const std::size_t blank = line.rfind(' ');
  if (blank == std::string_view::npos || blank == 0 || line.size() > kLongestLine) return std::nullopt;
  StackLine parts{line.substr(0, blank)};
  const std::optional<std::int64_t> number = integer(line.substr(blank + 1));
  if (!number && !parse_full_metrics(line.substr(blank + 1), parts)) return std::nullopt;
  parts.number = number.value_or(parts.number);
  return parts;
}

bool is_text(std::string_view line) {
  return std::none_of(line.begin(), line.end(),
                      [](char c) { return static_cast<unsigned char>(c) < 0x20 && c != '\t'; });
}

// Austin's "file:function:line".
ForeignFrame parse_austin_frame(std::string_view text) {
  if (text == ":GC:") return {.name = kAustinCollector, .file = {}};
  if (text == ":INVALID:") return {.name = kAustinInvalidFrame, .file = {}};
  const std::size_t second = text.rfind(':');
  if (second == std::string_view::npos || second == 0) return {.name = text, .file = {}};
  const std::size_t first = text.rfind(':', second - 1);
  const std::optional<std::int64_t> line = integer(text.substr(second + 1));
  if (first == std::string_view::npos || !line) return {.name = text, .file = {}};
  return austin_frame(
      {.name = text.substr(first + 1, second - first - 1), .file = text.substr(0, first), .line = *line});
}

std::string_view take_element(std::string_view& frames) {
  const std::string_view element = frames.substr(0, frames.find(';'));
  frames.remove_prefix(std::min(frames.size(), element.size() + 1));
  return element;
}

// Austin's first two elements; the thread may have its interpreter before a colon, and then a name in place of its id.
struct AustinThread {
  std::int64_t pid = 0;
  std::int64_t tid = 0;
  std::string_view text;  // of the thread
};
std::optional<AustinThread> take_austin_thread(std::string_view& frames) {
  std::string_view rest = frames;
  const std::string_view process = take_element(rest);
  std::string_view thread = take_element(rest);
  if (!process.starts_with('P') || !thread.starts_with('T')) return std::nullopt;
  thread.remove_prefix(1);
  const std::size_t colon = thread.find(':');
  const bool has_interpreter = colon != std::string_view::npos && integer(thread.substr(0, colon));
  const std::optional<std::int64_t> pid = integer(process.substr(1));
  const std::optional<std::int64_t> tid = integer(has_interpreter ? thread.substr(colon + 1) : thread);
  if (!pid || (!tid && !has_interpreter)) return std::nullopt;
  frames = rest;
  return AustinThread{*pid, tid.value_or(0), thread};
}

// The first element of CPython's profiling.sampling: "tid:1234", before frames that are written as Austin's.
std::optional<std::int64_t> take_tid(std::string_view& frames) {
  constexpr std::string_view kPrefix = "tid:";
  std::string_view rest = frames;
  const std::string_view element = take_element(rest);
  if (!element.starts_with(kPrefix)) return std::nullopt;
  const std::optional<std::int64_t> tid = integer(element.substr(kPrefix.size()));
  if (tid) frames = rest;
  return tid;
}

// Fills a Profile from lines.
class Reader {
 public:
  void add(std::string_view line) {
    if (line.starts_with("# ")) return take_fact(line.substr(2));
    if (line.empty() || line.starts_with('#')) return;
    const std::optional<StackLine> parts = cut(line);
    if (!parts) {
      ++unread_;
      return;
    }
    std::string_view frames = parts->frames;
    const std::optional<AustinThread> austin = take_austin_thread(frames);
    const std::optional<std::int64_t> tid = austin ? std::nullopt : take_tid(frames);
    const ThreadId thread = austin ? thread_of(*austin)
                            : tid  ? out_.thread(std::to_string(*tid), "", *tid)
                                   : out_.thread("", "");
    StackId stack;
    while (!frames.empty()) {
      const std::string_view element = take_element(frames);
      stack = out_.push(stack, out_.frame(austin || tid ? parse_austin_frame(element) : frame_of_label(element)));
    }
    out_.sample(thread, stack, weight_of(static_cast<double>(parts->number), kMicrosecond),
                parts->is_idle ? Activity::kOther : Activity::kRunning);
    is_austin_ = is_austin_ || austin.has_value();
  }

  Result<profile::Profile> take() {
    profile::Profile& profile = out_.profile;
    if (profile.samples.size() == 0) return Error{ErrorKind::kBadInput, "no line is a collapsed stack"};
    if (is_austin_ && !facts_.has_time())
      return Error{ErrorKind::kUnsupported, "Austin's samples of memory: only profiles of time can be read"};
    if (is_austin_) {
      profile.set_meta("format", "austin");
      facts_.finish(profile);
    } else {
      profile.set_meta("weights", "assumed: the numbers are microseconds");
    }
    profile.set_meta("times", "assumed: one stack after the other");
    if (unread_ > 0) profile.drops.push_back({"lines that are no stacks", unread_, 0});
    return out_.take();
  }

 private:
  // Other tools write comments, too: they are facts only in a file that begins with Austin's own.
  void take_fact(std::string_view text) {
    const std::size_t colon = text.find(": ");
    if (colon == std::string_view::npos) return;
    const std::string_view name = text.substr(0, colon);
    has_facts_ = has_facts_ || name == "austin";
    if (has_facts_) facts_.take(name, text.substr(colon + 2), out_.profile);
  }
  ThreadId thread_of(const AustinThread& austin) {
    const std::string key = std::to_string(austin.pid) + " " + std::string(austin.text);
    const std::size_t colon = austin.text.find(':');
    return out_.thread(key, austin.tid == 0 ? austin.text.substr(colon + 1) : std::string_view{}, austin.tid,
                       austin.pid);
  }

  ForeignProfile out_{"collapsed"};
  std::uint64_t unread_ = 0;
  AustinFacts facts_;
  bool is_austin_ = false, has_facts_ = false;
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
