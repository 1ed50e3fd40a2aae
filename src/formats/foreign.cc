// formats/foreign.cc: rows of the profile's tables.
#include "formats/foreign.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <initializer_list>

#include "formats/labels.h"
#include "formats/text_lines.h"

namespace plimsoll::formats {
namespace {

using profile::FunctionKind;

constexpr std::int64_t kLatestNs = 4'000'000'000'000'000'000;  // the year 2096

std::uint32_t position(std::int64_t value) {
  return value > 0 && value <= INT32_MAX ? static_cast<std::uint32_t>(value) : 0;
}

bool ends_with_one_of(std::string_view text, std::initializer_list<std::string_view> endings) {
  return std::any_of(endings.begin(), endings.end(), [&](std::string_view one) { return text.ends_with(one); });
}

// Files with the source of machine code.
bool is_native_source(std::string_view file) {
  return ends_with_one_of(file, {".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".hxx", ".rs", ".go", ".s", ".S",
                                 ".asm", ".m", ".mm", ".f", ".f90", ".cu", ".zig"});
}

// Tools do not tell what sort of code a function is, but names do: what profilers put in is in brackets, files with
// lines are source, whatever they are called ("<string>" and scripts without an ending, too), and a file without lines
// is a library unless it ends as Python's do.
FunctionKind kind_of(const ForeignFrame& frame) {
  if (frame.file.empty())
    return frame.name.starts_with('[') && frame.name.ends_with(']') ? FunctionKind::kSynthetic : FunctionKind::kPython;
  if (ends_with_one_of(frame.file, {".py", ".pyx", ".pyw", ".ipynb", ">"})) return FunctionKind::kPython;
  const bool has_lines = position(frame.line) != 0 || position(frame.first_line) != 0;
  const bool is_library = frame.file.starts_with('[') || frame.file.find(".so.") != std::string_view::npos ||
                          ends_with_one_of(frame.file, {".so", ".dll", ".dylib", ".exe", ".pyd"});
  return has_lines && !is_library && !is_native_source(frame.file) ? FunctionKind::kPython : FunctionKind::kNative;
}

// Whether it may be the place of a function: C++ has types of arguments in brackets, too.
bool is_place(std::string_view text) {
  return text.find_first_of("/\\.") != std::string_view::npos || text.starts_with('<') || text.starts_with('[') ||
         ends_with_line(text);
}

// Where " (file:line)" begins; npos if the label has none. Paths may have brackets, which mostly are balanced.
std::size_t place_in(std::string_view label) {
  if (!label.ends_with(')')) return std::string_view::npos;
  std::size_t open = label.size() - 1;
  for (std::size_t depth = 1; depth > 0 && open > 0;) {
    --open;
    if (label[open] == ')') ++depth;
    if (label[open] == '(') --depth;
  }
  const bool is_balanced = label[open] == '(' && open > 0 && label[open - 1] == ' ';
  const std::size_t start = is_balanced ? open - 1 : label.rfind(" (");
  if (start == std::string_view::npos) return start;
  return is_place(label.substr(start + 2, label.size() - start - 3)) ? start : std::string_view::npos;
}

}  // namespace

ForeignFrame frame_of_label(std::string_view label) {
  const std::size_t open = place_in(label);
  if (open == std::string_view::npos) return {.name = label, .file = {}};
  ForeignFrame frame{.name = label.substr(0, open), .file = label.substr(open + 2, label.size() - open - 3)};
  const std::size_t colon = frame.file.rfind(':');
  if (colon == std::string_view::npos) return frame;
  if (const std::optional<std::int64_t> line = integer(frame.file.substr(colon + 1))) {
    frame.line = *line;
    frame.file = frame.file.substr(0, colon);
  }
  return frame;
}

std::int64_t nanoseconds_of(double value, double unit_ns) {
  const double ns = value * unit_ns;
  return std::abs(ns) <= static_cast<double>(kLatestNs) ? std::llround(ns) : 0;
}

std::int64_t weight_of(double value, double unit_ns) {
  constexpr auto kMost = static_cast<double>(kLatestNs);
  const double ns = value * unit_ns;
  return std::isnan(ns) ? 0 : std::llround(std::clamp(ns, -kMost, kMost));
}

void set_period(profile::Profile& profile, double period_ns) {
  if (!(period_ns >= 1 && period_ns <= 1e12)) return;
  std::array<char, 32> text{};
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), 1e9 / period_ns);
  if (error == std::errc{}) profile.set_meta("rate_hz", {text.data(), static_cast<std::size_t>(end - text.data())});
}

ForeignProfile::ForeignProfile(std::string_view format) : weight_left_(kLatestNs) {
  profile.set_meta("format", format);
  profile.complete = true;
}

FrameId ForeignProfile::frame(const ForeignFrame& frame) {
  if (frame.name == kNoStack) return {};
  profile::Function function;
  function.name = profile.strings.intern(frame.name);
  if (!frame.file.empty()) function.file = profile.strings.intern(frame.file);
  function.first_line = position(frame.first_line);
  function.kind = frame.kind.value_or(kind_of(frame));
  if (function.kind == FunctionKind::kNative && is_native_source(frame.file)) function.source = function.file;
  return profile.frames.intern({profile.functions.intern(function), position(frame.line), position(frame.column)});
}

StackId ForeignProfile::push(StackId below, FrameId frame) {
  return frame.is_none() ? below : profile.stacks.intern({below, frame});
}

ThreadId ForeignProfile::thread(const std::string& key, std::string_view name, std::int64_t tid, std::int64_t pid) {
  const auto [position, is_new] = threads_.try_emplace(key, profile.threads.size());
  if (!is_new) return position->second;
  const std::size_t processes = profile.processes.size();
  profile::Thread thread;
  thread.process = process(pid);
  thread.os_tid = tid;
  thread.name = name;
  thread.is_main = profile.processes.size() > processes;
  profile.threads.push_back(thread);
  return position->second;
}

ProcessId ForeignProfile::process(std::int64_t pid) {
  const auto [position, is_new] = processes_.try_emplace(pid, profile.processes.size());
  if (is_new) profile.processes.push_back({.pid = pid, .parent_pid = 0, .name = {}});
  return position->second;
}

void ForeignProfile::sample(ThreadId thread, StackId stack, std::int64_t weight_ns, Activity activity) {
  const std::int64_t end_ns = profile.threads[thread.index()].end_ns;
  sample_at(end_ns + std::clamp<std::int64_t>(weight_ns, 0, kLatestNs), thread, stack, weight_ns, activity);
}

void ForeignProfile::sample_at(std::int64_t time_ns, ThreadId thread, StackId stack, std::int64_t weight_ns,
                               Activity activity) {
  has_negative_ = has_negative_ || weight_ns < 0;
  // What take() refuses is not to leave 64 bits before.
  weight_ns = std::clamp<std::int64_t>(weight_ns, 0, weight_left_);
  weight_left_ -= weight_ns;
  time_ns = std::clamp(time_ns, std::int64_t{0}, kLatestNs);
  profile.samples.push_back(time_ns, thread, stack, weight_ns, activity);
  profile::Thread& row = profile.threads[thread.index()];
  row.end_ns = std::max(row.end_ns, time_ns);
  if (activity == Activity::kRunning) row.cpu_ns += weight_ns;
  profile.end_ns = std::max(profile.end_ns, time_ns);
}

void ForeignProfile::miss(std::string_view what) {
  auto& drops = profile.drops;
  const auto is_it = [&](const profile::Drop& drop) { return drop.reason == what; };
  const auto found = std::find_if(drops.begin(), drops.end(), is_it);
  if (found == drops.end())
    drops.push_back({std::string(what), 1, 0});
  else
    ++found->count;
}

Result<profile::Profile> ForeignProfile::take() {
  if (has_negative_)
    return Error{ErrorKind::kBadInput, "a weight is negative: not what was spent on stacks, but a difference of that"};
  if (weight_left_ == 0) return Error{ErrorKind::kBadInput, "its weights add up to more than a hundred years"};
  return std::move(profile);
}

}  // namespace plimsoll::formats
