// cli/tag_report.cc: samples by tag -> rows -> table.
#include "cli/tag_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>

#include "cli/activity_columns.h"
#include "cli/table.h"
#include "cli/units.h"
#include "cli/utf8.h"

namespace plimsoll::cli {
namespace {

void add_sample(TagRow& row, const profile::SampleTable& samples, std::size_t i) {
  row.sampled_ns += samples.weight_ns[i];
  row.by_activity[static_cast<std::size_t>(samples.activity[i])] += samples.weight_ns[i];
  ++row.samples;
}

void add_row(TagRow& to, const TagRow& from) {
  to.sampled_ns += from.sampled_ns;
  for (std::size_t i = 0; i < kActivityCount; ++i) to.by_activity[i] += from.by_activity[i];
  to.samples += from.samples;
}

// By tag set; and in the end those without tags.
std::vector<TagRow> by_tag_set(const profile::Profile& profile) {
  std::vector<TagRow> rows(profile.tag_sets.size() + 1);
  const profile::SampleTable& samples = profile.samples;
  for (std::size_t i = 0; i < samples.size(); ++i)
    add_sample(samples.tags[i].is_none() ? rows.back() : rows[samples.tags[i].index()], samples, i);
  return rows;
}

}  // namespace

std::vector<TagRow> tag_report(const profile::Profile& profile) {
  std::vector<TagRow> rows;
  boost::unordered_flat_map<profile::Tag, std::size_t, boost::hash<profile::Tag>> index;
  boost::unordered_flat_map<std::uint32_t, std::int64_t> time_of_name;
  const std::vector<TagRow> sets = by_tag_set(profile);
  for (std::size_t i = 0; i + 1 < sets.size(); ++i) {
    if (sets[i].samples == 0) continue;
    for (const profile::Tag& tag : profile.tag_sets[TagSetId{i}]) {
      const auto [position, inserted] = index.try_emplace(tag, rows.size());
      if (inserted) rows.push_back({.tag = tag});
      add_row(rows[position->second], sets[i]);
      time_of_name[tag.name.index()] += sets[i].sampled_ns;
    }
  }
  std::stable_sort(rows.begin(), rows.end(), [&](const TagRow& a, const TagRow& b) {
    const StringId a_name = a.tag.name;
    const StringId b_name = b.tag.name;
    if (a_name == b_name) return a.sampled_ns > b.sampled_ns;
    const std::int64_t a_time = time_of_name[a_name.index()];
    const std::int64_t b_time = time_of_name[b_name.index()];
    return a_time != b_time ? a_time > b_time : a_name < b_name;
  });
  if (sets.back().samples > 0) rows.push_back(sets.back());
  return rows;
}

std::string render_tags(const profile::Profile& profile, const std::vector<TagRow>& rows, std::size_t limit,
                        const Page& page) {
  const std::int64_t all_ns = profile.sampled_ns();
  const TimeScale scale(all_ns);
  const std::vector<Activity> activities = activities_in(rows);
  const std::string_view what = activities.empty() ? "CPU" : "time";
  std::vector<Column> columns = {{fmt::format("{} %", what), Fit::kRight},
                                 {fmt::format("{} {}", what, scale.unit()), Fit::kRight}};
  for (const Activity activity : activities)
    columns.push_back({fmt::format("{} %", text(activity)), Fit::kRight, activity == Activity::kRunning ? 0 : 1});
  columns.insert(columns.end(), {{"samples", Fit::kRight, 2}, {"tag", Fit::kCutRight}, {"value", Fit::kCutRight}});
  Table table(std::move(columns));
  const std::size_t shown = limit == 0 ? rows.size() : std::min(limit, rows.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const TagRow& row = rows[i];
    const double percent = percent_of(row.sampled_ns, all_ns);
    const bool is_tagged = !row.tag.name.is_none();
    std::vector<Cell> cells = {{{format_percent(percent), heat(percent)}}, {{scale.format(row.sampled_ns)}}};
    for (const Activity activity : activities) cells.push_back({{share_of(row, activity)}});
    cells.insert(cells.end(), {{{format_count(row.samples), Style::kDim}},
                               {{is_tagged ? printable(profile.strings[row.tag.name]) : "[no tags]",
                                 is_tagged ? Style::kStrong : Style::kDim}},
                               {{is_tagged ? printable(profile.strings[row.tag.value]) : ""}}});
    table.add_row(std::move(cells));
  }
  std::string out = table.render(page);
  if (shown < rows.size()) out += fmt::format("... and {} more; --limit 0 shows all\n", rows.size() - shown);
  return out;
}

}  // namespace plimsoll::cli
