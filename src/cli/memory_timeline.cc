// cli/memory_timeline.cc: memory over time, as text and as JSON.
#include "cli/memory_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/json_document.h"
#include "cli/memory_estimate.h"
#include "cli/place.h"
#include "cli/summary.h"
#include "cli/table.h"
#include "cli/units.h"
#include "formats/json.h"
#include "profile/memory.h"

namespace plimsoll::cli {
namespace {

using formats::JsonWriter;
using profile::Interval;
using profile::MemoryMoment;
using profile::Profile;

constexpr std::size_t kBarCells = 12;
constexpr std::size_t kTrackCells = 6;  // of a part of it

}  // namespace

std::string timeline_text(const Profile& profile, const TimelineOptions& options, const Page& page) {
  const std::vector<MemoryMoment> rows = profile::memory_over_time(profile, options.moments, options.window);
  double most = 0;
  for (const MemoryMoment& row : rows) most = std::max(most, row.alive.bytes);
  const bool has_native = !profile.meta_value("native_memory").empty();
  std::vector<Column> columns = {{"at"}, {"RSS"}, {"alive"}, {"95 % sure", Fit::kRight, 2}, {"", Fit::kLeft, 3}};
  if (has_native) columns.insert(columns.end(), {{"Python's"}, {"", Fit::kLeft, 4}, {"malloc's"}, {"", Fit::kLeft, 4}});
  columns.insert(columns.end(),
                 {{"allocated", Fit::kRight, 1}, {"most of it by", Fit::kCutRight}, {"where", Fit::kCutLeft}});
  Table table(std::move(columns));
  for (const MemoryMoment& row : rows) {
    const Interval interval = row.alive.interval();
    const bool has_function = !row.mostly.is_none();
    const double share = row.alive.bytes > 0 ? 100 * row.mostly_bytes / row.alive.bytes : 0;
    std::vector<Cell> cells = {
        {{format_time(row.at_ns)}},
        {{row.rss_bytes > 0 ? format_bytes(row.rss_bytes) : "·"}},
        {{bytes_text(row.alive.bytes), Style::kStrong}},
        {{profile.is_exact ? "exact" : fmt::format("{} to {}", bytes_text(interval.low), bytes_text(interval.high)),
          Style::kDim}},
        {{bar(most > 0 ? row.alive.bytes / most : 0, kBarCells)}}};
    if (has_native) {
      const double native = row.alive_native.bytes;
      const double pythons = row.alive.bytes - native;
      for (const double bytes : {pythons, native})
        cells.insert(cells.end(), {{{bytes_text(bytes)}}, {{bar(most > 0 ? bytes / most : 0, kTrackCells)}}});
    }
    cells.insert(
        cells.end(),
        {{{bytes_text(row.allocated.bytes)}},
         {{has_function ? fmt::format("{} % {}", format_percent(share), function_name(profile, row.mostly)) : ""}},
         {{has_function ? place_of(profile, row.mostly, 0, page.directory).text : "", Style::kDim}}});
    table.add_row(std::move(cells));
  }
  return table.render(page) + "\n" +
         page.paint(
             Style::kDim,
             what_exact_lacks(profile) +
                 (profile::is_in_sums(profile)
                      ? "each is of the last time before at which sums were taken, 50 ms or more apart; --alloc=events "
                        "knows\ntimes to a millisecond\n"
                      : "") +
                 fmt::format(
                     "alive, allocated (since the row above): of the allocators that were recorded; RSS: of the {}\n",
                     profile.processes.size() > 1
                         ? "processes\nthat there were then; what a process had is gone when it has ended"
                         : "process") +
                 "who: plimsoll show FILE live --at TIME") +
         "\n" +
         (profile.complete || profile.is_exact ? "" : page.paint(Style::kWarning, incomplete_note(profile)) + "\n");
}

std::string timeline_json(const Profile& profile, const TimelineOptions& options) {
  std::string out;
  JsonWriter json(out);
  begin_document(json);
  json.member("distance_bytes", static_cast<std::int64_t>(profile.allocation_distance));
  json.member("confidence", profile.is_exact ? "exact" : "95 %");
  json.member("lost", static_cast<std::int64_t>(profile::lost_allocations(profile)));
  json.key("complete");
  json.boolean(profile.complete);
  json.column("moments", profile::memory_over_time(profile, options.moments, options.window),
              [&](const MemoryMoment& row) {
                json.begin_object();
                json.member("at_ns", row.at_ns);
                if (row.rss_bytes > 0) json.member("rss_bytes", row.rss_bytes);
                put_estimate(json, "alive", row.alive);
                put_estimate(json, "alive_native", row.alive_native);
                put_estimate(json, "allocated", row.allocated);
                if (!row.mostly.is_none()) json.member("mostly", profile.strings[profile.functions[row.mostly].name]);
                json.end_object();
              });
  json.end_object();
  return out + "\n";
}

}  // namespace plimsoll::cli
