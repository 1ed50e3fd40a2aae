// profile/testing.h: profiles drawn as text, for tests only. No product code may include it.
//
// A drawing has one sample per line: a stack, the outermost call first, then the CPU milliseconds it stands for.
//
//   GIVEN: draw_profile(R"(
//            main;work;inner        10
//            main;work               2.5
//            worker | run;!memcpy    4  @30
//          )")
//
//   frame     name | name(file) | name(file:line) | name(file:line def first_line)
//             !name is machine code, [name] is a frame made by the profiler, any other is Python
//   stack     frames joined by ";", or "-" for the empty stack; no blanks inside
//   thread    "name |" before the stack; without it the main thread. "name@pid |" puts it into another process
//   tags      "#name=value" at the end of the line, as many as there are, joined by ","
//   time      "@milliseconds" after the weight; without it the CPU time of the thread so far, this sample included
//
// Threads and processes get their ids in order of appearance: the main thread is 100 in process 100, then 101, 102, ...
// A mistake in a drawing aborts the test with the line.
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "profile/profile.h"

namespace plimsoll::profile::testing {

inline constexpr std::int64_t kFirstPid = 100;
inline constexpr std::int64_t kMillisecond = 1'000'000;

[[noreturn]] inline void bad_drawing(std::string_view line, const char* why) {
  std::fprintf(stderr, "bad drawing: %s: \"%.*s\"\n", why, static_cast<int>(line.size()), line.data());
  std::abort();
}

inline std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

// Cuts `text` at the first `mark`: returns what stands before it, leaves what stands after it.
inline std::string_view take_until(std::string_view& text, std::string_view mark) {
  const auto at = text.find(mark);
  const std::string_view before = text.substr(0, at);
  text = at == std::string_view::npos ? std::string_view{} : text.substr(at + mark.size());
  return before;
}

inline std::uint32_t line_number(std::string_view digits) {
  std::uint32_t number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number;
}

inline std::int64_t milliseconds(std::string_view text, std::string_view line) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) bad_drawing(line, "a number is expected");
  return std::llround(value * static_cast<double>(kMillisecond));
}

// Adds a frame written as in a drawing; returns its id.
inline FrameId draw_frame(Profile& profile, std::string_view text) {
  Function function;
  Frame frame;
  if (text.starts_with('!')) {
    function.kind = FunctionKind::kNative;
    text.remove_prefix(1);
  } else if (text.starts_with('[')) {
    function.kind = FunctionKind::kSynthetic;
  }
  std::string_view place = text.ends_with(')') ? text : std::string_view{};
  function.name = profile.strings.intern(place.empty() ? text : take_until(place, "("));
  if (!place.empty()) {
    place.remove_suffix(1);
    function.file = profile.strings.intern(take_until(place, ":"));
    frame.line = line_number(take_until(place, " def "));
    function.first_line = line_number(place);
  }
  frame.function = profile.functions.intern(function);
  return profile.frames.intern(frame);
}

// Adds a stack written as in a drawing, the outermost call first; returns its id.
inline StackId draw_stack(Profile& profile, std::string_view text) {
  StackId stack;
  if (text == "-") return stack;
  while (!text.empty()) stack = profile.stacks.intern({stack, draw_frame(profile, take_until(text, ";"))});
  return stack;
}

// The thread called `label`, which is "name" or "name@pid"; made at its first appearance.
inline ThreadId draw_thread(Profile& profile, std::string_view label) {
  const std::string name(take_until(label, "@"));
  const std::int64_t pid = label.empty() ? kFirstPid : line_number(label);
  for (std::size_t i = 0; i < profile.threads.size(); ++i) {
    const Thread& known = profile.threads[i];
    if (known.name == name && profile.processes[known.process.index()].pid == pid) return ThreadId{i};
  }
  const auto process = std::find_if(profile.processes.begin(), profile.processes.end(),
                                    [&](const Process& known) { return known.pid == pid; });
  const auto index = static_cast<std::size_t>(process - profile.processes.begin());
  const bool is_first_of_process = process == profile.processes.end();
  if (is_first_of_process)
    profile.processes.push_back({.pid = pid, .parent_pid = index == 0 ? 1 : kFirstPid, .name = "python app.py"});
  Thread thread;
  thread.process = ProcessId{index};
  thread.name = name;
  thread.is_main = is_first_of_process;
  thread.os_tid = is_first_of_process ? pid : kFirstPid + static_cast<std::int64_t>(profile.threads.size());
  profile.threads.push_back(thread);
  return ThreadId{profile.threads.size() - 1};
}

// The tag set written "name=value,name=value"; none of an empty text.
inline TagSetId draw_tags(Profile& profile, std::string_view text) {
  TagSet set;
  while (!text.empty()) {
    std::string_view tag = take_until(text, ",");
    const StringId name = profile.strings.intern(take_until(tag, "="));
    set.push_back({name, profile.strings.intern(tag)});
  }
  return set.empty() ? TagSetId{} : profile.tag_sets.intern(set);
}

// Adds the sample of one line of a drawing.
inline void draw_sample(Profile& profile, std::string_view line) {
  std::string_view tags = line;
  std::string_view rest = take_until(tags, " #");
  std::string_view label = "MainThread";
  if (rest.find(" | ") != std::string_view::npos) label = trimmed(take_until(rest, " | "));
  const auto at = rest.find(" @");
  std::optional<std::int64_t> time;
  if (at != std::string_view::npos) time = milliseconds(trimmed(rest.substr(at + 2)), line);
  rest = trimmed(rest.substr(0, at));
  const auto gap = rest.find_last_of(" \t");
  if (gap == std::string_view::npos) bad_drawing(line, "a stack and a weight are expected");
  std::string_view weight = rest.substr(gap + 1);
  const std::int64_t cpu = milliseconds(take_until(weight, ":"), line);
  const std::optional<Activity> activity = weight.empty() ? Activity::kRunning : activity_named(weight);
  if (!activity) bad_drawing(line, "there is no such activity");

  const ThreadId id = draw_thread(profile, label);
  Thread& thread = profile.threads[id.index()];
  if (*activity == Activity::kRunning) thread.cpu_ns += cpu;
  thread.end_ns = time.value_or(thread.end_ns + cpu);
  const StackId stack = draw_stack(profile, trimmed(rest.substr(0, gap)));
  profile.samples.push_back(thread.end_ns, id, stack, cpu, *activity, draw_tags(profile, tags));
  if (*activity == Activity::kRunning) profile.process_cpu_ns += cpu;
  profile.end_ns = std::max(profile.end_ns, thread.end_ns);
}

// The profile of a drawing; complete, started on 2026-01-02 03:04:05 UTC.
inline Profile draw_profile(std::string_view drawing) {
  Profile profile;
  profile.start_monotonic_ns = 5'000'000'000;
  profile.start_realtime_ns = 1'767'323'045'000'000'000;
  profile.complete = true;
  while (!drawing.empty()) {
    const std::string_view line = trimmed(take_until(drawing, "\n"));
    if (!line.empty()) draw_sample(profile, line);
  }
  return profile;
}

// A profile of `samples` samples over about `stacks` stacks of 5 to 40 frames on 4 threads, for measurements.
// The same numbers give the same profile.
inline Profile generated_profile(std::size_t samples, std::size_t stacks) {
  Profile profile = draw_profile("main(app.py:1)  1");
  for (const char* name : {"worker-1", "worker-2", "worker-3"}) draw_thread(profile, name);
  std::uint64_t state = 1;
  const auto random_below = [&](std::size_t limit) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    return static_cast<std::size_t>(state >> 33U) % limit;
  };
  std::vector<FrameId> frames;
  for (std::size_t i = 0; i < 3000; ++i)
    frames.push_back(draw_frame(profile, "function_" + std::to_string(i / 3) + "(/srv/app/module_" +
                                             std::to_string(i / 60) + ".py:" + std::to_string(i % 60 + 1) + " def 1)"));
  std::vector<StackId> known{profile.samples.stack[0]};
  while (known.size() < stacks) {
    StackId stack = known[random_below(known.size())];
    if (frames_of(profile.stacks, stack).size() > 35) stack = known[0];
    for (std::size_t depth = random_below(5) + 1; depth > 0; --depth)
      stack = profile.stacks.intern({stack, frames[random_below(frames.size())]});
    known.push_back(stack);
  }
  for (std::size_t i = 1; i < samples; ++i) {
    const auto cpu = static_cast<std::int64_t>(900'000 + random_below(200'000));
    const auto time = static_cast<std::int64_t>(i) * kMillisecond / 4;
    profile.samples.push_back(time, ThreadId{i % 4}, known[random_below(known.size())], cpu);
    profile.process_cpu_ns += cpu;
    profile.end_ns = time;
  }
  return profile;
}

// The function called `name`, for looking up results; none if there is none.
inline FunctionId function_named(const Profile& profile, std::string_view name) {
  for (std::size_t i = 0; i < profile.functions.size(); ++i)
    if (profile.strings[profile.functions.rows()[i].name] == name) return FunctionId{i};
  return {};
}

// The stacks of a profile as they are drawn, by names only, one for each sample.
inline std::vector<std::string> stacks_of(const Profile& profile) {
  std::vector<std::string> stacks;
  for (const StackId stack : profile.samples.stack) {
    std::string text;
    for (const FrameId frame : frames_of(profile.stacks, stack))
      text += (text.empty() ? "" : ";") +
              std::string(profile.strings[profile.functions[profile.frames[frame].function].name]);
    stacks.push_back(text);
  }
  return stacks;
}

}  // namespace plimsoll::profile::testing
