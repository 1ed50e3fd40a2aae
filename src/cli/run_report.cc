#include "cli/run_report.h"

#include <fmt/format.h>
#include <glob.h>

#include <algorithm>
#include <filesystem>

#include "cli/session_facts.h"
#include "cli/summary.h"
#include "cli/units.h"
#include "profile/memory.h"
#include "profile/plim_reader.h"

namespace plimsoll::cli {
namespace {

std::string counted(std::size_t count, const std::string& one, const std::string& many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

}  // namespace

void report_recording(const std::string& plim, const std::string& shown_as, Console& console) {
  std::error_code error;
  if (!std::filesystem::exists(plim, error)) return console.notice("nothing was recorded");
  const Result<profile::Profile> result = profile::read_plim_file(plim);
  if (!result.ok()) return console.notice(result.error().message);
  const profile::Profile& profile = result.value();
  const SessionFacts facts = session_facts(profile, std::filesystem::file_size(plim, error));
  console.notice(fmt::format("{} of {} of CPU time ({} % of the program's) in {}, {}, by {}",
                             counted(profile.samples.size(), "sample", "samples"), format_time(facts.sampled_cpu_ns),
                             format_percent(facts.covered_percent), format_time(profile.end_ns),
                             counted(profile.threads.size(), "thread", "threads"), profile.meta_value("engine")));
  if (profile.allocation_distance != 0)
    console.notice(fmt::format("{}, one in {} on average: plimsoll show FILE live, peak, leaks, types or memory",
                               counted(profile.allocations.size(), "sampled allocation", "sampled allocations"),
                               format_bytes(static_cast<std::int64_t>(profile.allocation_distance))));
  if (profile.is_exact) {
    profile::MemoryEstimate all;
    for (const profile::AllocationRow& row : profile.allocations) all.add(row, 0);
    console.notice(fmt::format("{} allocations of {}, exactly: plimsoll show FILE live, peak, leaks, types or memory",
                               format_count(all.samples), format_bytes(std::llround(all.bytes))));
  }
  for (const profile::Drop& drop : profile.drops)
    if (drop.reason != "end of thread")
      console.notice(fmt::format("{}: {}", is_lost(drop) ? "not in it" : "not whole", in_words(drop)));
  if (!profile.complete) console.notice("the recording was cut short: the program was killed, or could not write on");
  if (shown_as.empty()) return;
  console.notice(fmt::format("wrote {} ({}); next: plimsoll show {}", shown_as,
                             format_bytes(static_cast<std::int64_t>(facts.file_bytes)), shown_as));
}

std::vector<std::string> profiles_of_children(const std::string& plim, std::string_view ending) {
  // As _session_facts.path_with_pid names them: app.plim, app.123.plim.
  const std::filesystem::path path(plim);
  const std::string pattern =
      (path.parent_path() / path.stem()).string() + ".[0-9]*" + path.extension().string() + std::string(ending);
  std::vector<std::string> found_paths;
  glob_t found{};
  if (::glob(pattern.c_str(), 0, nullptr, &found) == 0)
    for (std::size_t i = 0; i < found.gl_pathc; ++i) {
      const std::string_view file(found.gl_pathv[i]);
      found_paths.emplace_back(file.substr(0, file.size() - ending.size()));
    }
  ::globfree(&found);
  return found_paths;
}

void report_children(const std::string& plim, Console& console) {
  const std::vector<std::string> children = profiles_of_children(plim);
  if (children.empty()) return;
  constexpr std::size_t kNamed = 4;
  std::string names;
  for (std::size_t i = 0; i < std::min(children.size(), kNamed); ++i) names += " " + children[i];
  if (children.size() > kNamed) names += " ...";
  console.notice(fmt::format(
      "{}:{}",
      counted(children.size(), "child process has a profile of its own", "child processes have profiles of their own"),
      names));
}

}  // namespace plimsoll::cli
