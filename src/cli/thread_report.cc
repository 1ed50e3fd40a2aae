// cli/thread_report.cc: samples by thread -> rows -> table.
#include "cli/thread_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cli/table.h"
#include "cli/units.h"
#include "cli/utf8.h"

namespace plimsoll::cli {
namespace {

void add_sample(ThreadRow& row, std::int64_t time_ns, std::int64_t cpu_ns, std::int64_t end_ns) {
  if (row.samples == 0) row.first_ns = row.last_ns = time_ns;
  row.first_ns = std::min(row.first_ns, time_ns);
  row.last_ns = std::max(row.last_ns, time_ns);
  row.sampled_ns += cpu_ns;
  ++row.samples;
  if (row.activity_ns.empty() || end_ns <= 0) return;
  const double position = static_cast<double>(time_ns) / static_cast<double>(end_ns);
  const auto parts = static_cast<double>(row.activity_ns.size());
  row.activity_ns[static_cast<std::size_t>(std::clamp(position * parts, 0.0, parts - 1))] += cpu_ns;
}

// One cell per part: blank = no sample, full = the thread had a CPU for itself.
std::string strip(const ThreadRow& row, std::int64_t end_ns) {
  constexpr std::array<std::string_view, 8> kLevels = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  const double part_ns =
      static_cast<double>(end_ns) / static_cast<double>(std::max<std::size_t>(1, row.activity_ns.size()));
  std::string out;
  for (const std::int64_t ns : row.activity_ns) {
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

std::size_t activity_parts(const Page& page) { return page.width >= 100 ? 24 : 8; }

std::vector<ThreadRow> thread_report(const profile::Profile& profile, std::size_t parts) {
  std::vector<ThreadRow> rows(profile.threads.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i].thread = ThreadId{i};
    rows[i].activity_ns.resize(parts);
  }
  const profile::SampleTable& samples = profile.samples;
  for (std::size_t i = 0; i < samples.size(); ++i)
    add_sample(rows[samples.thread[i].index()], samples.time_ns[i], samples.cpu_ns[i], profile.end_ns);
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
  const std::int64_t all_ns = profile.sampled_cpu_ns();
  const TimeScale scale(all_ns);
  const TimeScale clock(profile.end_ns);
  const bool several_processes = profile.processes.size() > 1;
  Table table({{"CPU %", Fit::kRight},
               {fmt::format("CPU {}", scale.unit()), Fit::kRight},
               {"samples", Fit::kRight},
               {fmt::format("first {}", clock.unit()), Fit::kRight},
               {fmt::format("last {}", clock.unit()), Fit::kRight},
               {"activity", Fit::kLeft},
               {several_processes ? "pid/tid" : "tid", Fit::kRight},
               {"thread", Fit::kCutRight}});
  for (const ThreadRow& row : rows) {
    const profile::Thread& thread = profile.threads[row.thread.index()];
    const double percent = percent_of(row.sampled_ns, all_ns);
    const bool has_process = several_processes && !thread.process.is_none();
    const std::string pid = has_process ? fmt::format("{}/", profile.processes[thread.process.index()].pid) : "";
    table.add_row({{{format_percent(percent), heat(percent)}},
                   {{scale.format(row.sampled_ns)}},
                   {{format_count(row.samples), Style::kDim}},
                   {{moment(clock, row.first_ns)}},
                   {{moment(clock, row.last_ns)}},
                   {{strip(row, profile.end_ns), Style::kMild}},
                   {{fmt::format("{}{}", pid, thread.os_tid), Style::kDim}},
                   {{thread_name(thread), thread.is_main ? Style::kStrong : Style::kPlain}}});
  }
  return table.render(page);
}

}  // namespace plimsoll::cli
