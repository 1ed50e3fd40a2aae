// formats/foreign.cc: rows of the profile's tables.
#include "formats/foreign.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "formats/labels.h"
#include "formats/text_lines.h"

namespace plimsoll::formats {
namespace {

using profile::FunctionKind;

constexpr std::int64_t kLatestNs = 4'000'000'000'000'000'000;  // the year 2096

std::uint32_t position(std::int64_t value) {
  return value > 0 && value <= INT32_MAX ? static_cast<std::uint32_t>(value) : 0;
}

// Tools do not tell what sort of code a function is, but names do: what profilers put in is in brackets, Python's files
// end with .py or are none ("<string>"), and any other file is a library or a source of native code.
FunctionKind kind_of(std::string_view name, std::string_view file) {
  if (file.empty())
    return name.starts_with('[') && name.ends_with(']') ? FunctionKind::kSynthetic : FunctionKind::kPython;
  for (const std::string_view ending : {".py", ".pyx", ".pyw", ".ipynb", ">"})
    if (file.ends_with(ending)) return FunctionKind::kPython;
  return FunctionKind::kNative;
}

}  // namespace

ForeignFrame frame_of_label(std::string_view label) {
  const std::size_t open = label.rfind(" (");
  if (open == std::string_view::npos || !label.ends_with(')')) return {.name = label, .file = {}};
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
  function.kind = frame.kind.value_or(kind_of(frame.name, frame.file));
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
