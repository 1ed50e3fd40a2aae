#include "cli/run_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "cli/children.h"
#include "cli/output_path.h"
#include "cli/session_facts.h"
#include "cli/summary.h"
#include "cli/units.h"
#include "profile/memory.h"
#include "profile/plim_reader.h"

namespace plimsoll::cli {
namespace {

// Of those that recorded.
struct RecordedChildren {
  std::int64_t count = 0;
  std::int64_t cpu_ns = 0;     // as the system counts it: with what they used before, and what recording took
  std::int64_t unsure_ns = 0;  // as much may be missing in that
};
RecordedChildren recorded_children(const std::string& plim, std::int64_t start_realtime_ns) {
  constexpr std::int64_t kEnd = 200'000'000;         // for Python to take itself down, behind the recording
  constexpr std::int64_t kLast = 1'000'000'000;      // of one that was killed
  std::map<std::int64_t, std::int64_t> used_by_pid;  // what calls exec goes on in another file, with the same clock
  RecordedChildren all;
  for (const std::string& child : profiles_of_children_since(plim, start_realtime_ns))
    if (const Result<profile::Profile> result = profile::read_plim_file(child); result.ok()) {
      const profile::Profile& profile = result.value();
      std::int64_t& used_ns = used_by_pid[pid_of_child(child)];
      used_ns = std::max({used_ns, profile.process_cpu_ns, meta_number(profile, "clock_cpu_ns")});
      ++all.count;
      all.unsure_ns += profile.complete ? kEnd : kLast;
    }
  for (const auto& [pid, used_ns] : used_by_pid) all.cpu_ns += used_ns;
  return all;
}

// CPU time of child processes that have no profiles, unless it is next to nothing.
void report_unrecorded_children(const std::string& plim, const profile::Profile& profile, std::int64_t cpu_ns,
                                Children children, Console& console) {
  if (is_little(cpu_ns, profile.process_cpu_ns)) return;
  if (children == Children::kLeftAlone)
    return console.notice(fmt::format(
        "not in it: child processes, {} of CPU time; plimsoll run --children records them, too", format_time(cpu_ns)));
  const RecordedChildren recorded = recorded_children(plim, profile.start_realtime_ns);
  const std::int64_t rest_ns = cpu_ns - recorded.cpu_ns;
  if (is_little(rest_ns - recorded.unsure_ns, profile.process_cpu_ns)) return;
  const std::string rest =
      recorded.count == 0
          ? fmt::format("some {} of CPU time", format_time(rest_ns))
          : fmt::format("{} of CPU time at most (with the end of Python in those that did)", format_time(rest_ns));
  console.notice(
      fmt::format("not in it: child processes that did not record, {}: no programs of Python, or started with -I, -E "
                  "or -S, or killed as they started",
                  rest));
}

// What is left between a thread's last tick and its end; not so where ticks have stopped long before. From outside it
// is what threads have used that were not met.
bool is_usual_end(const profile::Profile& profile, const profile::Drop& drop) {
  constexpr std::int64_t kMost = 100'000'000;  // of a thread, on average
  constexpr std::int64_t kMostShare = 20;      // of the program's
  if (drop.reason != "end of thread") return false;
  const bool has_ticks = profile.meta_value("engine") != "attached";
  return (has_ticks && drop.cpu_ns / kMost < static_cast<std::int64_t>(drop.count) + 1) ||
         drop.cpu_ns < profile.process_cpu_ns / kMostShare;
}

// From outside only threads that Python knows are looked at, and what others have used is in no sample.
void report_unseen_threads(const profile::Profile& profile, const SessionFacts& facts, Console& console) {
  if (profile.meta_value("engine") != "attached" || profile.meta_value("mode") == "gil") return;
  const std::int64_t rest_ns = profile.process_cpu_ns - facts.sampled_cpu_ns - facts.dropped_cpu_ns;
  if (is_little(rest_ns, profile.process_cpu_ns)) return;
  console.notice(
      fmt::format("not in it: {} of CPU time of threads that Python does not know, as those of libraries, or that had "
                  "ended before they were looked at; plimsoll run has them, but for --external",
                  format_time(rest_ns)));
}

// What is missing at the end, if anything is.
void report_ending(const profile::Profile& profile, Children children, Console& console) {
  if (!profile.complete)
    console.notice("the recording was cut short: the program was killed, or could not write on");
  else if (profile.meta_value("ending") == "exec")
    console.notice(children == Children::kRecorded
                       ? "the program became another one by exec, which has a profile of its own if it is a Python"
                       : "not in it: what the program became by exec; plimsoll run --children records that, too, if "
                         "it is a Python");
}

}  // namespace

bool is_little(std::int64_t cpu_ns, std::int64_t all_cpu_ns) {
  constexpr std::int64_t kLeast = 20'000'000, kLeastShare = 20;
  return cpu_ns < kLeast || cpu_ns < all_cpu_ns / kLeastShare;
}

void report_recording(const std::string& plim, const std::string& shown_as, Children children, Console& console) {
  std::error_code error;
  const std::filesystem::file_type type = std::filesystem::status(plim, error).type();
  if (type == std::filesystem::file_type::not_found) return console.notice("nothing was recorded");
  if (type == std::filesystem::file_type::character || type == std::filesystem::file_type::fifo)
    return console.notice(fmt::format("wrote {}, which cannot be read back", shown_as.empty() ? plim : shown_as));
  const Result<profile::Profile> result = profile::read_plim_file(plim);
  if (!result.ok()) return console.notice(result.error().message);
  const profile::Profile& profile = result.value();
  const SessionFacts facts = session_facts(profile, std::filesystem::file_size(plim, error));
  // PyPy's samples of mode wall do not tell computing from waiting.
  const bool is_wall_only = profile.meta_value("mode") == "wall" && facts.waited_ns == 0 && profile.process_cpu_ns == 0;
  const std::string of = is_wall_only
                             ? "time, computing and waiting,"
                             : fmt::format("CPU time ({} % of the program's)", format_percent(facts.covered_percent));
  console.notice(fmt::format("{} of {} of {} in {}, {}, by {}", plural(profile.samples.size(), "sample"),
                             format_time(facts.sampled_cpu_ns), of, format_time(profile.end_ns),
                             count_of_threads(profile), profile.meta_value("engine")));
  if (const std::string_view most = profile.meta_value("most_ticks_hz"); !most.empty())
    console.notice(fmt::format("ticks take so long on this machine that {} a second were made at most, not {}", most,
                               profile.meta_value("rate_hz")));
  if (profile.allocation_distance != 0)
    console.notice(fmt::format("{}, one in {} on average: plimsoll show FILE live, peak, leaks, types or memory",
                               plural(profile.allocations.size(), "sampled allocation"),
                               format_bytes(static_cast<std::int64_t>(profile.allocation_distance))));
  if (profile.is_exact) {
    profile::MemoryEstimate all;
    for (const profile::AllocationRow& row : profile.allocations) all.add(row, 0);
    console.notice(fmt::format("{} allocations of {}, exactly: plimsoll show FILE live, peak, leaks, types or memory",
                               format_count(all.samples), format_bytes(std::llround(all.bytes))));
  }
  for (const profile::Drop& drop : profile.drops)
    if (!is_usual_end(profile, drop))
      console.notice(fmt::format("{}: {}", is_lost(drop) ? "not in it" : "not whole", in_words(drop)));
  report_unseen_threads(profile, facts, console);
  report_unrecorded_children(plim, profile, facts.child_cpu_ns, children, console);
  report_ending(profile, children, console);
  if (shown_as.empty()) return;
  console.notice(fmt::format("wrote {} ({}); next: plimsoll show {}", shown_as,
                             format_bytes(static_cast<std::int64_t>(facts.file_bytes)), shell_word(shown_as)));
}

void report_children(const std::string& plim, std::int64_t start_realtime_ns, Console& console) {
  const std::vector<std::string> children = profiles_of_children_since(plim, start_realtime_ns);
  if (children.empty()) return;
  std::set<std::int64_t> processes;  // one has several where it has called exec
  for (const std::string& child : children) processes.insert(pid_of_child(child));
  constexpr std::size_t kNamed = 4;
  std::string names;
  for (std::size_t i = 0; i < std::min(children.size(), kNamed); ++i) names += " " + children[i];
  if (children.size() > kNamed) names += " ...";
  console.notice(fmt::format("{} of {} own:{}",
                             processes.size() == 1 ? "1 child process has a profile"
                                                   : fmt::format("{} child processes have profiles", processes.size()),
                             processes.size() == 1 ? "its" : "their", names));
  console.notice(fmt::format("all in one: plimsoll show {} --children", shell_word(plim)));
}

}  // namespace plimsoll::cli
