// cli/render_info.cc: the facts of a session as text.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cli/session_facts.h"
#include "cli/summary.h"
#include "cli/units.h"
#include "cli/utf8.h"
#include "profile/time_kind.h"

namespace plimsoll::cli {
namespace {

// Meta entries that have a line of their own.
constexpr std::array<std::string_view, 8> kShownMeta = {"argv",   "python",  "plimsoll",     "mode",
                                                        "engine", "rate_hz", "child_cpu_ns", "clock_cpu_ns"};

std::string with_unit(std::int64_t value, std::string_view unit) {
  if (unit == "bytes") return format_bytes(value);
  if (unit == "ns") return format_time(value);
  return unit.empty() ? std::to_string(value) : fmt::format("{} {}", value, printable(unit));
}

class InfoRenderer {
 public:
  InfoRenderer(const profile::Profile& profile, const SessionFacts& facts, const Page& page)
      : profile_(profile), facts_(facts), page_(page) {}

  std::string render(std::string_view path) {
    out_ = page_.paint(Style::kStrong, cut_left(printable(path), page_.width)) + "\n\n";
    add_session();
    gap();
    add_sampling();
    add_allocations();
    gap();
    add_events();
    gap();
    add_sizes();
    return std::move(out_);
  }

 private:
  static constexpr std::size_t kNameCells = 16;

  void add(std::string_view name, const std::string& value, Style style = Style::kPlain) {
    if (value.empty()) return;
    const std::string label = cut_right(printable(name), kNameCells - 1);
    const std::string padding(kNameCells - display_width(label), ' ');
    out_ += page_.paint(Style::kDim, label) + padding;
    out_ += page_.paint(style, cut_right(value, page_.width - kNameCells)) + "\n";
  }
  void gap() {
    if (!out_.ends_with("\n\n")) out_ += "\n";
  }

  void add_session() {
    add("program", printable(profile_.meta_value("argv")));
    add("python", python_of(profile_));
    add("plimsoll", printable(profile_.meta_value("plimsoll")));
    for (const auto& [name, value] : profile_.meta)
      if (std::find(kShownMeta.begin(), kShownMeta.end(), name) == kShownMeta.end()) add(name, printable(value));
    add("started", profile_.start_realtime_ns == 0 ? "" : format_date(profile_.start_realtime_ns));
    add("elapsed", format_time(profile_.end_ns));
    if (profile_.complete)
      add("complete", "yes");
    else
      add("complete", "no: " + early_end(profile_), Style::kWarning);
  }

  void add_sampling() {
    add("mode", printable(profile_.meta_value("mode")));
    add("engine", printable(profile_.meta_value("engine")));
    const std::string asked = asked_hz(profile_);
    const std::string delivered = facts_.delivered_hz > 0 ? format_rate(facts_.delivered_hz) : "nothing";
    add("rate", asked.empty() ? fmt::format("{} delivered", delivered)
                              : fmt::format("{} Hz asked, {} delivered (per second of {})", asked, delivered,
                                            profile::is_cpu_time(profile_) ? "CPU time" : "time"));
    add("samples", format_count(profile_.samples.size()));
    add(profile::is_cpu_time(profile_) ? "CPU time" : "time",
        profile_.process_cpu_ns > 0
            ? fmt::format("{} of the process, {} covered by samples ({} %)", format_time(profile_.process_cpu_ns),
                          format_time(facts_.sampled_cpu_ns), format_percent(facts_.covered_percent))
            : format_time(facts_.sampled_cpu_ns) + " covered by samples");
    if (facts_.child_cpu_ns > 0)
      add("children", format_time(facts_.child_cpu_ns) + " of CPU time, of processes that ended");
    if (facts_.waited_ns > 0) add("waits", format_time(facts_.waited_ns) + " of all threads together, in samples");
    if (facts_.dropped == 0) add("lost", "nothing");
    for (const profile::Drop& drop : profile_.drops)
      if (drop.count > 0) add(is_lost(drop) ? "lost" : "not whole", in_words(drop), Style::kWarning);
  }

  void add_allocations() {
    if (!profile_.has_allocations()) return;
    std::uint64_t blocks = 0;
    std::uint64_t bytes = 0;
    for (const profile::AllocationRow& row : profile_.allocations) {
      blocks += row.blocks;
      bytes += row.size;
    }
    const std::string counted =
        fmt::format("{} blocks, {}", format_count(blocks), format_bytes(static_cast<std::int64_t>(bytes)));
    add("allocations", profile_.is_exact
                           ? counted + ", all that were recorded"
                           : fmt::format("{} sampled, one for every {}", counted,
                                         format_bytes(static_cast<std::int64_t>(profile_.allocation_distance))));
  }

  void add_events() {
    add("processes", format_count(profile_.processes.size()));
    add("threads", are_threads_told_apart(profile_) ? format_count(profile_.threads.size()) : "not told apart");
    for (const CounterSum& counter : facts_.counters) {
      const bool of_one = profile_.processes.size() > 1 && !counter.process.is_none();
      const std::string pid = of_one ? fmt::format(" (pid {})", profile_.processes[counter.process.index()].pid) : "";
      add(counter.name,
          fmt::format("peak {}, last {}, least {}{}", with_unit(counter.most, counter.unit),
                      with_unit(counter.last, counter.unit), with_unit(counter.least, counter.unit), pid));
    }
    for (const MarkerSum& marker : facts_.markers) {
      const std::string count = marker.count == 1 ? "once" : format_count(marker.count) + " times";
      const std::string times =
          fmt::format(", {} together, longest {}", format_time(marker.total_ns), format_time(marker.longest_ns));
      add(marker.name, marker.total_ns > 0 ? count + times : count);
    }
  }

  void add_sizes() {
    add("tables", fmt::format("{} strings, {} functions, {} frames, {} stacks", format_count(profile_.strings.size()),
                              format_count(profile_.functions.size()), format_count(profile_.frames.size()),
                              format_count(profile_.stacks.size())));
    add("sources",
        profile_.sources.empty() ? "none held" : fmt::format("{} files held", format_count(profile_.sources.size())));
    const std::string size = format_bytes(static_cast<std::int64_t>(facts_.file_bytes));
    add("file", profile_.samples.size() == 0
                    ? size
                    : fmt::format("{}, {:.2f} bytes per sample", size, facts_.bytes_per_sample));
  }

  const profile::Profile& profile_;
  const SessionFacts& facts_;
  const Page& page_;
  std::string out_;
};

}  // namespace

std::string render_info(const profile::Profile& profile, const SessionFacts& facts, std::string_view path,
                        const Page& page) {
  return InfoRenderer(profile, facts, page).render(path);
}

}  // namespace plimsoll::cli
