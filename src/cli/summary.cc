// cli/summary.cc: heading and caveats of a report.
#include "cli/summary.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <vector>

#include "cli/output_path.h"
#include "cli/units.h"
#include "cli/utf8.h"
#include "formats/pypylog/reader.h"
#include "profile/time_kind.h"

namespace plimsoll::cli {
namespace {

constexpr std::int64_t kForever = std::numeric_limits<std::int64_t>::max();
// Less than this percentage of the CPU time covered by samples is worth a line.
constexpr double kGoodCoverage = 95;

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  return fmt::format("{}", fmt::join(parts, separator));
}

}  // namespace

std::string asked_hz(const profile::Profile& profile) {
  const std::string text = printable(profile.meta_value("rate_hz"));
  char* end = nullptr;
  const double hertz = std::strtod(text.c_str(), &end);
  const bool is_number = !text.empty() && *end == '\0' && hertz >= 10 && hertz < 1e9;
  return is_number ? fmt::format("{:.10g}", std::round(hertz * 10) / 10) : text;
}

namespace {

// "asked 1000 Hz, got 998 Hz": two rates, because the second is the one that the numbers rest on.
std::string rates(const profile::Profile& profile, const Selection& selection) {
  const double delivered = delivered_hz(selection.running_samples, selection.session_cpu_ns);
  const std::string asked = asked_hz(profile);
  if (asked.empty()) return delivered > 0 ? format_rate(delivered) : "";
  return delivered > 0 ? fmt::format("asked {} Hz, got {}", asked, format_rate(delivered))
                       : fmt::format("asked {} Hz", asked);
}

std::string name_of_time(const profile::Profile& profile) {
  return profile::is_cpu_time(profile) ? "CPU time " : "time ";
}

// As many of the facts as there is room for, in order of weight.
std::string session_line(const profile::Profile& profile, const Selection& selection, const Page& page) {
  const bool has_waits = selection.session_ns > selection.session_cpu_ns;
  const std::string total = has_waits ? fmt::format("time {}, {} on CPUs", format_time(selection.session_ns),
                                                    format_time(selection.session_cpu_ns))
                                      : name_of_time(profile) + format_time(selection.session_cpu_ns);
  std::string rest;
  for (const std::string& fact :
       {plural(selection.session_samples, "sample"), rates(profile, selection), python_of(profile),
        profile.end_ns > 0 ? format_time(profile.end_ns) + " elapsed" : ""}) {
    const std::string more = " · " + fact;
    if (!fact.empty() && display_width(total + rest + more) <= page.width) rest += more;
  }
  return page.paint(Style::kStrong, total) + rest + "\n";
}

std::string coverage_note(const profile::Profile& profile, const Selection& selection) {
  const double covered = percent_of(selection.session_cpu_ns, profile.process_cpu_ns);
  if (profile.process_cpu_ns <= 0 || covered >= kGoodCoverage) return {};
  return fmt::format("not covered by samples: {} of the {} of CPU time that the process used ({} %)",
                     format_time(profile.process_cpu_ns - selection.session_cpu_ns),
                     format_time(profile.process_cpu_ns), format_percent(100 - covered));
}

}  // namespace

Selection whole_session(const profile::Profile& profile) {
  Selection selection;
  selection.session_ns = selection.shown_ns = profile.sampled_ns();
  selection.session_cpu_ns = profile.sampled_cpu_ns();
  selection.session_samples = selection.shown_samples = profile.samples.size();
  selection.running_samples = profile.running_samples();
  return selection;
}

Selection select(profile::Profile& profile, const profile::Filter& conditions) {
  Selection selection = whole_session(profile);
  selection.conditions = conditions;
  if (!is_everything(conditions)) profile::filter(profile, conditions);
  selection.shown_ns = profile.sampled_ns();
  selection.shown_samples = profile.samples.size();
  return selection;
}

bool is_everything(const profile::Filter& conditions) {
  return conditions.thread.empty() && conditions.function.empty() && conditions.file.empty() &&
         conditions.activities.empty() && conditions.tags.empty() && conditions.domains.empty() &&
         conditions.from_ns <= 0 && conditions.to_ns == kForever;
}

std::string in_words(const profile::Filter& conditions) {
  std::vector<std::string> parts;
  const auto add_text = [&](std::string_view name, std::string_view value) {
    if (!value.empty()) parts.push_back(fmt::format("{} \"{}\"", name, printable(value)));
  };
  add_text("thread", conditions.thread);
  add_text("function", conditions.function);
  add_text("file", conditions.file);
  for (const profile::TagCondition& tag : conditions.tags) {
    if (tag.pattern.empty())
      parts.push_back(fmt::format("no tag {}", printable(tag.name)));
    else
      parts.push_back(fmt::format("tag {}={}", printable(tag.name), printable(tag.pattern)));
  }
  std::vector<std::string> activities;
  for (const Activity activity : conditions.activities) activities.emplace_back(text(activity));
  if (!activities.empty()) parts.push_back(join(activities, " or "));
  if (conditions.from_ns > 0 && conditions.to_ns != kForever)
    parts.push_back(fmt::format("from {} to {}", format_time(conditions.from_ns), format_time(conditions.to_ns)));
  else if (conditions.from_ns > 0)
    parts.push_back("from " + format_time(conditions.from_ns));
  else if (conditions.to_ns != kForever)
    parts.push_back("up to " + format_time(conditions.to_ns));
  return join(parts, ", ");
}

double delivered_hz(std::uint64_t samples, std::int64_t cpu_ns) {
  return cpu_ns > 0 ? static_cast<double>(samples) * 1e9 / static_cast<double>(cpu_ns) : 0;
}

std::string python_of(const profile::Profile& profile) {
  const std::string value = printable(profile.meta_value("python"));
  const bool bare_number = !value.empty() && value[0] >= '0' && value[0] <= '9';
  return bare_number ? "Python " + value : value;
}

bool are_threads_told_apart(const profile::Profile& profile) {
  const std::vector<profile::Thread>& threads = profile.threads;
  return threads.size() != 1 || threads[0].os_tid != 0 || threads[0].name != profile::kAllThreads;
}

std::string count_of_threads(const profile::Profile& profile) {
  return are_threads_told_apart(profile) ? plural(profile.threads.size(), "thread") : "threads not told apart";
}

std::string in_words(const profile::Drop& drop) {
  const std::string time = drop.cpu_ns > 0 ? fmt::format(", {} of CPU time", format_time(drop.cpu_ns)) : "";
  // (Stacks that lack frames are those of samples, or of allocations.)
  const std::string what = plural(drop.count, is_lost(drop) ? "sample" : "stack");
  return fmt::format("{} ({}){}", what, printable(drop.reason), time);
}

bool is_lost(const profile::Drop& drop) { return !drop.reason.starts_with("native frames missing"); }

std::string heading(const profile::Profile& profile, const Selection& selection, const Page& page) {
  std::string out = session_line(profile, selection, page);
  const std::string program = printable(profile.meta_value("argv"));
  if (!program.empty()) out += cut_right(program, page.width) + "\n";
  if (!is_everything(selection.conditions)) {
    const std::string line = fmt::format("shown: {} ({} %), {}: {}", format_time(selection.shown_ns),
                                         format_percent(percent_of(selection.shown_ns, selection.session_ns)),
                                         plural(selection.shown_samples, "sample"), in_words(selection.conditions));
    out += page.paint(Style::kStrong, cut_right(line, page.width)) + "\n";
  }
  return out + "\n";
}

std::string early_end(const profile::Profile& profile) {
  return profile.processes.size() > 1 ? "one of the processes at least was killed or is still running"
                                      : "the program was killed or is still running";
}

std::string incomplete_note(const profile::Profile& profile) {
  return profile.complete ? "" : "incomplete: " + early_end(profile) + "; this is what was recorded by then";
}

std::string no_allocations(const profile::Profile& profile, std::string_view file) {
  return profile.complete ? fmt::format("{} holds no allocations: record them with plimsoll run --alloc", file)
                          : fmt::format("{} holds no allocations; it ends early: {}", file, early_end(profile));
}

std::string no_allocation_left(const profile::Profile& profile, const profile::Filter& conditions,
                               std::string_view file) {
  std::string message = fmt::format("no allocation of {} is left to show", file);
  if (profile.is_exact && !conditions.tags.empty())
    message += ": exact recordings of allocations have no tags, samples (--alloc) have";
  if (!profile.complete) message += "; it ends early: " + early_end(profile);
  return message;
}

std::string caveats(const profile::Profile& profile, const Selection& selection, const Page& page) {
  std::string out;
  const auto add = [&](const std::string& line) {
    if (!line.empty()) out += page.paint(Style::kWarning, cut_right(line, page.width)) + "\n";
  };
  for (const profile::Drop& drop : profile.drops)
    if (drop.count > 0) add((is_lost(drop) ? "lost: " : "not whole: ") + in_words(drop));
  add(coverage_note(profile, selection));
  const std::string_view weights = profile.meta_value("weights");
  if (weights == formats::pypylog::kAssumedTicks)
    add("the log does not tell how long its ticks are: each is shown as a nanosecond, and only shares are right");
  if (weights == formats::pypylog::kEstimatedTicks)
    add("how long ticks are is estimated by how long the JIT says it took: on a busy machine times may be too short");
  add(incomplete_note(profile));
  return out;
}

std::string nothing_to_show(const profile::Profile& profile, const Selection& selection, std::string_view file) {
  if (selection.session_samples == 0) {
    std::string message = fmt::format("{} holds no samples", file);
    for (const profile::Drop& drop : profile.drops)
      if (drop.count > 0 && is_lost(drop)) message += "; lost: " + in_words(drop);
    if (!profile.complete) message += "; it ends early: the program was killed or is still running";
    if (profile.has_allocations())
      message += fmt::format("; its allocations: plimsoll show {} alloc, live or peak", shell_word(std::string(file)));
    return message;
  }
  std::string message = fmt::format("no sample of {} matches {}", file, in_words(selection.conditions));
  if (!selection.conditions.thread.empty()) {
    constexpr std::size_t kMostNames = 10;
    std::vector<std::string> names;
    for (std::size_t i = 0; i < std::min(profile.threads.size(), kMostNames); ++i)
      names.push_back(fmt::format("\"{}\"", printable(profile.threads[i].name)));
    message +=
        fmt::format("; its threads are {}{}", join(names, ", "), profile.threads.size() > kMostNames ? ", ..." : "");
  }
  if (!selection.conditions.tags.empty()) {
    std::vector<std::string> names;
    for (const profile::TagSet& set : profile.tag_sets.rows())
      for (const profile::Tag& tag : set)
        if (std::string name(printable(profile.strings[tag.name]));
            std::find(names.begin(), names.end(), name) == names.end())
          names.push_back(std::move(name));
    message += names.empty() ? "; it has no tags" : fmt::format("; its tags are {}", join(names, ", "));
  }
  if (selection.conditions.from_ns >= profile.end_ns)
    message += fmt::format("; it is {} long", format_time(profile.end_ns));
  return message;
}

}  // namespace plimsoll::cli
