// cli/thread_report.cc: samples by thread -> rows -> table.
#include "cli/thread_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "cli/activity_columns.h"
#include "cli/table.h"
#include "cli/units.h"
#include "cli/utf8.h"
#include "profile/time_kind.h"

namespace plimsoll::cli {
namespace {

// Gives each part of the time up to the end what passed in it of a sample, whose time passed before it.
void share_out(std::int64_t time_ns, std::int64_t weight_ns, std::int64_t end_ns, std::vector<std::int64_t>& parts) {
  const auto last = static_cast<double>(parts.size()) - 1;
  const double part_ns = static_cast<double>(end_ns) / static_cast<double>(parts.size());
  const auto part_at = [&](std::int64_t at) {
    return static_cast<std::size_t>(std::clamp(static_cast<double>(at) / part_ns, 0.0, last));
  };
  std::int64_t at_ns = time_ns - weight_ns;
  for (std::size_t part = part_at(at_ns); part < part_at(time_ns); ++part) {
    const auto next_ns = std::clamp(static_cast<std::int64_t>(part_ns * static_cast<double>(part + 1)), at_ns, time_ns);
    parts[part] += next_ns - std::exchange(at_ns, next_ns);
  }
  parts[part_at(time_ns)] += time_ns - at_ns;
}

void add_sample(ThreadRow& row, const profile::SampleTable& samples, std::size_t i, std::int64_t end_ns) {
  const std::int64_t time_ns = samples.time_ns[i];
  const std::int64_t weight_ns = samples.weight_ns[i];
  const Activity activity = samples.activity[i];
  if (row.samples == 0) row.first_ns = row.last_ns = time_ns;
  row.first_ns = std::min(row.first_ns, time_ns);
  row.last_ns = std::max(row.last_ns, time_ns);
  row.sampled_ns += weight_ns;
  row.by_activity[static_cast<std::size_t>(activity)] += weight_ns;
  ++row.samples;
  if (!row.busy_ns.empty() && end_ns > 0 && activity == Activity::kRunning)
    share_out(time_ns, weight_ns, end_ns, row.busy_ns);
}

// One cell per part: blank = no sample, full = the thread had a CPU for itself.
std::string strip(const ThreadRow& row, std::int64_t end_ns) {
  constexpr std::array<std::string_view, 8> kLevels = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  const double part_ns =
      static_cast<double>(end_ns) / static_cast<double>(std::max<std::size_t>(1, row.busy_ns.size()));
  std::string out;
  for (const std::int64_t ns : row.busy_ns) {
    const double busy = part_ns > 0 ? static_cast<double>(ns) / part_ns : 0;
    out += ns <= 0 ? " " : kLevels[static_cast<std::size_t>(std::clamp(busy * 8, 0.0, 7.0))];
  }
  return out;
}

std::string thread_name(const profile::Thread& thread) {
  if (!thread.name.empty()) return printable(thread.name);
  return thread.is_main ? "main thread" : "[no name]";
}

std::string moment(const TimeScale& scale, std::int64_t ns) { return ns == 0 ? "0" : scale.format(ns); }

}  // namespace

std::size_t busy_parts(const Page& page) { return page.width >= 100 ? 24 : 8; }

std::vector<ThreadRow> thread_report(const profile::Profile& profile, std::size_t parts) {
  std::vector<ThreadRow> rows(profile.threads.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i].thread = ThreadId{i};
    rows[i].busy_ns.resize(parts);
  }
  const profile::SampleTable& samples = profile.samples;
  for (std::size_t i = 0; i < samples.size(); ++i)
    add_sample(rows[samples.thread[i].index()], samples, i, profile.end_ns);
  for (ThreadRow& row : rows) {
    if (row.samples > 0) continue;
    row.first_ns = profile.threads[row.thread.index()].start_ns;
    row.last_ns = profile.threads[row.thread.index()].end_ns;
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const ThreadRow& a, const ThreadRow& b) { return a.sampled_ns > b.sampled_ns; });
  return rows;
}

std::string render_threads(const profile::Profile& profile, const std::vector<ThreadRow>& rows, const Page& page) {
  const std::int64_t all_ns = profile.sampled_ns();
  const TimeScale scale(all_ns);
  const TimeScale clock(profile.end_ns);
  const bool several_processes = profile.processes.size() > 1;
  const std::vector<Activity> activities = activities_in(rows);
  const std::string_view what = activities.empty() && profile::is_cpu_time(profile) ? "CPU" : "time";
  std::vector<Column> columns = {{fmt::format("{} %", what), Fit::kRight},
                                 {fmt::format("{} {}", what, scale.unit()), Fit::kRight}};
  for (const Activity activity : activities)
    columns.push_back({fmt::format("{} %", text(activity)), Fit::kRight, activity == Activity::kRunning ? 0 : 1});
  columns.insert(columns.end(), {{"samples", Fit::kRight, 4},
                                 {fmt::format("first {}", clock.unit()), Fit::kRight, 3},
                                 {fmt::format("last {}", clock.unit()), Fit::kRight, 3},
                                 {"activity", Fit::kLeft, 2},
                                 {several_processes ? "pid/tid" : "tid", Fit::kRight},
                                 {"thread", Fit::kCutRight}});
  Table table(std::move(columns));
  for (const ThreadRow& row : rows) {
    const profile::Thread& thread = profile.threads[row.thread.index()];
    const double percent = percent_of(row.sampled_ns, all_ns);
    const bool has_process = several_processes && !thread.process.is_none();
    const std::string pid = has_process ? fmt::format("{}/", profile.processes[thread.process.index()].pid) : "";
    std::vector<Cell> cells = {{{format_percent(percent), heat(percent)}}, {{scale.format(row.sampled_ns)}}};
    for (const Activity activity : activities)
      cells.push_back({{share_of(row, activity), activity == Activity::kRunning ? Style::kStrong : Style::kPlain}});
    cells.insert(cells.end(), {{{format_count(row.samples), Style::kDim}},
                               {{moment(clock, row.first_ns)}},
                               {{moment(clock, row.last_ns)}},
                               {{strip(row, profile.end_ns), Style::kMild}},
                               {{fmt::format("{}{}", pid, thread.os_tid), Style::kDim}},
                               {{thread_name(thread), thread.is_main ? Style::kStrong : Style::kPlain}}});
    table.add_row(std::move(cells));
  }
  return table.render(page);
}

}  // namespace plimsoll::cli
