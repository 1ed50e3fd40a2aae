#include "cli/memory_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/place.h"
#include "cli/render_tree.h"
#include "cli/table.h"
#include "cli/utf8.h"
#include "formats/json.h"

namespace plimsoll::cli {
namespace {

using formats::JsonWriter;
using profile::Interval;
using profile::MemoryEstimate;
using profile::MemoryReport;
using profile::MemoryView;
using profile::Profile;

std::int64_t rounded(double value) { return std::llround(value); }

std::string bytes_text(double bytes) { return format_bytes(rounded(bytes)); }

std::string interval_text(const MemoryEstimate& estimate) {
  const Interval interval = estimate.interval();
  return fmt::format("{} to {}", bytes_text(interval.low), bytes_text(interval.high));
}

// All bytes that Python's allocators gave out, counted, not estimated; 0 if unknown.
std::int64_t counted_bytes(const Profile& profile) {
  for (const profile::Counter& counter : profile.counters)
    if (counter.name == "allocated" && !counter.value.empty()) return counter.value.back();
  return 0;
}

std::string what_it_is(MemoryView view, const MemoryReport& report) {
  switch (view) {
    case MemoryView::kAllocated: return "allocated";
    case MemoryView::kLive: return "alive at the end";
    case MemoryView::kPeak: return fmt::format("alive at the peak, {} after the start", format_time(report.at_ns));
  }
  return "?";
}

std::string heading(const Profile& profile, MemoryView view, const MemoryReport& report, const Page& page) {
  const std::string distance = format_bytes(static_cast<std::int64_t>(profile.allocation_distance));
  std::string out =
      page.paint(Style::kStrong,
                 fmt::format("{}: {} in {} blocks", what_it_is(view, report), bytes_text(report.all.bytes),
                             format_count(static_cast<std::uint64_t>(std::llround(report.all.blocks))))) +
      "\n";
  out += fmt::format("95 % sure: {}; {} samples, one in {} on average\n", interval_text(report.all),
                     format_count(report.all.samples), distance);
  if (const std::int64_t counted = counted_bytes(profile); view == MemoryView::kAllocated && counted > 0)
    out += fmt::format("counted: {} in all\n", format_bytes(counted));
  return out + "\n";
}

std::string notes(const Profile& profile, const Page& page) {
  std::string out = page.paint(Style::kDim,
                               "of Python's object and memory allocators; not of C libraries that call malloc (NumPy's "
                               "arrays, for one), nor of objects\nthat Python keeps for reuse") +
                    "\n";
  for (const profile::Drop& drop : profile.drops)
    if (drop.reason == "allocation not recorded")
      out += page.paint(Style::kWarning, fmt::format("lost: {} samples of allocations: all is more than it says",
                                                     format_count(drop.count))) +
             "\n";
  return "\n" + out;
}

std::string flat_text(const Profile& profile, const MemoryReport& report, std::size_t limit, const Page& page) {
  Table table({{"self %", Fit::kRight},
               {"self", Fit::kRight},
               {"95 % sure", Fit::kRight},
               {"total", Fit::kRight},
               {"blocks", Fit::kRight},
               {"samples", Fit::kRight},
               {"function", Fit::kCutRight},
               {"where", Fit::kCutLeft}});
  const std::size_t shown = limit == 0 ? report.flat.size() : std::min(limit, report.flat.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const profile::MemoryRow& row = report.flat[i];
    const double percent = report.all.bytes > 0 ? 100 * row.self.bytes / report.all.bytes : 0;
    const ShownPath place = place_of(profile, row.function, 0, page.directory);
    const bool has_self = row.self.samples > 0;
    table.add_row({{{format_percent(percent), heat(percent)}},
                   {{has_self ? bytes_text(row.self.bytes) : "·"}},
                   {{has_self ? interval_text(row.self) : "", Style::kDim}},
                   {{bytes_text(row.total.bytes)}},
                   {{has_self ? format_count(static_cast<std::uint64_t>(std::llround(row.self.blocks))) : "·"}},
                   {{format_count(row.self.samples), Style::kDim}},
                   {{function_name(profile, row.function), place.is_library ? Style::kPlain : Style::kStrong}},
                   {{place.text, Style::kDim}}});
  }
  std::string out = table.render(page);
  if (shown < report.flat.size())
    out += "\n" +
           page.paint(Style::kDim,
                      fmt::format("not shown: {} functions (--limit 0 shows all)", report.flat.size() - shown)) +
           "\n";
  return out;
}

std::string tree_text(Profile& profile, MemoryView view, MemoryOptions& options, const Page& page) {
  // Two trees of the same stacks, so of the same nodes: one of bytes, one of how sure they are.
  profile::put_memory_in_place_of_samples(profile, view, profile::MemoryWeight::kVariance);
  const profile::Tree variances = profile::tree(profile, options.granularity);
  profile::put_memory_in_place_of_samples(profile, view, profile::MemoryWeight::kBytes);
  const profile::Tree tree = profile::tree(profile, options.granularity);
  options.tree.quantity = Quantity::kBytes;
  for (std::size_t i = 0; i < tree.nodes.size(); ++i)
    options.tree.margins.push_back(profile::margin_of(profile, tree.nodes[i].total_ns, variances.nodes[i].total_ns));
  return render_tree(profile, tree, tree_view(profile, tree, options.tree), options.tree, page);
}

void put_estimate(JsonWriter& json, std::string_view name, const MemoryEstimate& estimate) {
  const Interval interval = estimate.interval();
  json.key(name);
  json.begin_object();
  json.member("bytes", rounded(estimate.bytes));
  json.member("low", rounded(interval.low));
  json.member("high", rounded(interval.high));
  json.member("blocks", rounded(estimate.blocks));
  json.member("samples", static_cast<std::int64_t>(estimate.samples));
  json.end_object();
}

void put_flat(JsonWriter& json, const Profile& profile, const MemoryReport& report, std::size_t limit) {
  const std::size_t shown = limit == 0 ? report.flat.size() : std::min(limit, report.flat.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const profile::MemoryRow& row = report.flat[i];
    const profile::Function& function = profile.functions[row.function];
    json.begin_object();
    json.member("function", profile.strings[function.name]);
    if (!function.file.is_none()) json.member("file", profile.strings[function.file]);
    json.member("first_line", std::int64_t{function.first_line});
    put_estimate(json, "self", row.self);
    put_estimate(json, "total", row.total);
    json.end_object();
  }
}

}  // namespace

std::optional<MemoryView> memory_view_named(std::string_view name) {
  if (name == "alloc") return MemoryView::kAllocated;
  if (name == "live") return MemoryView::kLive;
  if (name == "peak") return MemoryView::kPeak;
  return std::nullopt;
}

std::string memory_text(Profile& profile, MemoryView view, MemoryOptions options, const Page& page) {
  const MemoryReport report = profile::memory_report(profile, view);
  const std::string table = options.shape == MemoryOptions::Shape::kFlat
                                ? flat_text(profile, report, options.limit, page)
                                : tree_text(profile, view, options, page);
  return heading(profile, view, report, page) + table + notes(profile, page);
}

std::string memory_json(Profile& profile, MemoryView view, const MemoryOptions& options) {
  const MemoryReport report = profile::memory_report(profile, view);
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  json.member("schema", std::int64_t{1});
  json.member("plimsoll", PLIMSOLL_VERSION);
  json.member("distance_bytes", static_cast<std::int64_t>(profile.allocation_distance));
  json.member("counted_bytes", counted_bytes(profile));
  json.member("at_ns", report.at_ns);
  json.member("confidence", "95 %");
  put_estimate(json, "all", report.all);
  json.key("functions");
  json.begin_array();
  put_flat(json, profile, report, options.limit);
  json.end_array();
  json.end_object();
  return out + "\n";
}

}  // namespace plimsoll::cli
