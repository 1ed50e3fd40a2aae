#include "cli/memory_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "cli/json_document.h"
#include "cli/memory_estimate.h"
#include "cli/place.h"
#include "cli/render_tree.h"
#include "cli/summary.h"
#include "cli/table.h"
#include "cli/utf8.h"
#include "formats/json.h"

namespace plimsoll::cli {
namespace {

using formats::JsonWriter;
using profile::Interval;
using profile::MemoryEstimate;
using profile::MemoryQuestion;
using profile::MemoryReport;
using profile::MemoryView;
using profile::Profile;

std::int64_t rounded(double value) { return std::llround(value); }

std::string blocks_text(const MemoryEstimate& estimate) {
  return format_count(static_cast<std::uint64_t>(std::llround(estimate.blocks)));
}

std::string interval_text(const MemoryEstimate& estimate) {
  const Interval interval = estimate.interval();
  return fmt::format("{} to {}", bytes_text(interval.low), bytes_text(interval.high));
}

// All bytes that Python's allocators gave out, counted, not estimated; 0 if unknown, as that of a part, or of a process
// that was killed at once. Of small blocks with what their sizes are rounded up by, as lists of blocks are counted, and
// not each allocation.
std::int64_t counted_bytes(const Profile& profile, const MemoryOptions& options) {
  if (options.is_of_part) return 0;
  std::int64_t sum = 0;  // of all processes
  std::vector<bool> is_counted(profile.processes.size());
  for (const profile::Counter& counter : profile.counters) {
    if (counter.name != "allocated" || counter.value.empty()) continue;
    sum += counter.value.back();
    if (!counter.process.is_none()) is_counted[counter.process.index()] = true;
  }
  const bool is_whole =
      std::all_of(profile.allocations.begin(), profile.allocations.end(), [&](const profile::AllocationRow& row) {
        const ProcessId process = row.thread.is_none() ? ProcessId{} : profile.threads[row.thread.index()].process;
        return process.is_none() || is_counted[process.index()];
      });
  return is_whole ? sum : 0;
}

bool is_at_end(const MemoryQuestion& question) { return question.at_ns == MemoryQuestion::kEnd; }

// Of several processes each has its own end: what one had is gone when others are still there.
std::string point_text(const MemoryQuestion& question, const Profile& profile) {
  if (!is_at_end(question)) return format_time(question.at_ns);
  return profile.processes.size() > 1 ? "the end of its process" : "the end";
}

// memray's --aggregate keeps nothing else.
bool has_sums_only(const Profile& profile) { return !profile.meta_value("aggregated").empty(); }

std::string what_it_is(const MemoryQuestion& question, const MemoryReport& report, const Profile& profile) {
  switch (question.view) {
    case MemoryView::kAllocated: return has_sums_only(profile) ? "alive at the end" : "allocated";
    case MemoryView::kLive:
      return is_at_end(question) ? "alive at " + point_text(question, profile)
                                 : fmt::format("alive {} after the start", format_time(question.at_ns));
    case MemoryView::kPeak: return fmt::format("alive at the peak, {} after the start", format_time(report.at_ns));
    case MemoryView::kLeaks:
      return fmt::format("allocated from {} on and alive at {}",
                         question.from_ns > 0 ? format_time(question.from_ns) : "the start",
                         point_text(question, profile));
    case MemoryView::kTemporary:
      if (profile.is_exact && !profile.has_events) return "freed before the same stack allocated another such block";
      return fmt::format("freed within {}", format_time(question.within_ns));
  }
  return "?";
}

// Who gave it out, if there is more than one.
std::string domains_text(const Profile& profile, const MemoryQuestion& question) {
  const std::vector<profile::DomainRow> rows = profile::memory_by_domain(profile, question);
  if (rows.size() < 2) return {};
  std::string out = "by allocator:";
  for (const profile::DomainRow& row : rows)
    out += fmt::format("{} {} {}", &row == rows.data() ? "" : " ·", profile::domain_name(row.domain),
                       bytes_text(row.all.bytes));
  return out + "\n";
}

bool is_of_a_time(const MemoryQuestion& question) {
  if (question.view == MemoryView::kLeaks) return question.from_ns > 0 || !is_at_end(question);
  return question.view == MemoryView::kLive && !is_at_end(question);
}

// Of what times a view really is, where these are known roughly.
std::string times_of_sums(const Profile& profile, const MemoryOptions& options) {
  const MemoryQuestion& question = options.question;
  if (!profile::is_in_sums(profile) || (!is_of_a_time(question) && !options.sums_of)) return {};
  const auto from_to = [](std::int64_t from_ns, std::int64_t to_ns) {
    return fmt::format("from {} to {}", format_time(from_ns), format_time(to_ns));
  };
  const auto taken_ns = [&](std::int64_t ns) { return profile::sums_taken_ns(profile, ns); };
  std::string times;
  if (options.sums_of) times = "allocated " + from_to(options.sums_of->from_ns, options.sums_of->to_ns);
  if (is_of_a_time(question)) {
    if (!times.empty()) times += ", and ";
    const bool has_begin = question.view == MemoryView::kLeaks && question.from_ns > 0;
    times += has_begin ? from_to(taken_ns(question.from_ns - 1), taken_ns(question.at_ns))
                       : "of " + format_time(taken_ns(question.at_ns));
  }
  return times + ", when sums were taken; --alloc=events knows times to a millisecond\n";
}

std::string heading(const Profile& profile, const MemoryOptions& options, const MemoryReport& report,
                    const Page& page) {
  const MemoryQuestion& question = options.question;
  const std::string distance = format_bytes(static_cast<std::int64_t>(profile.allocation_distance));
  std::string out =
      page.paint(Style::kStrong,
                 fmt::format("{}: {} in {}", what_it_is(question, report, profile), bytes_text(report.all.bytes),
                             plural(static_cast<std::uint64_t>(std::llround(report.all.blocks)), "block"))) +
      "\n";
  if (const std::string lacks = what_exact_lacks(profile); profile.is_exact)
    out += lacks.empty() ? "exact: every allocation was recorded\n" : lacks;
  else
    out += fmt::format("95 % sure: {}; {}, one in {} on average\n", interval_text(report.all),
                       plural(report.all.samples, "sample"), distance);
  out += times_of_sums(profile, options);
  if (report.all.looks > 1)
    out += fmt::format("the highest of {} estimates, and so rather too high\n", format_count(report.all.looks));
  if (const std::int64_t bytes = counted_bytes(profile, options); question.view == MemoryView::kAllocated && bytes > 0)
    out += fmt::format("counted: {} in blocks of Python's object and memory allocators, which round sizes up\n",
                       format_bytes(bytes));
  return out + domains_text(profile, question) + "\n";
}

// Whose allocations were recorded.
std::string recorded_allocators(const Profile& profile) {
  if (const std::string_view told = profile.meta_value("allocators"); !told.empty())
    return fmt::format("of {}, whoever calls them{}, as {} records them", told,
                       told.find("Python") == std::string_view::npos ? ": Python's small objects by their arenas" : "",
                       profile.meta_value("engine"));
  return profile.meta_value("native_memory").empty()
             ? "of Python's allocators; not of C libraries that call malloc (SQLite; NumPy before 2.5: plimsoll run\n"
               "--native-memory), nor of objects that Python keeps for reuse"
             : "of Python's allocators, and of malloc as other libraries call it; not of objects that Python keeps for "
               "reuse";
}

std::string notes(const Profile& profile, const Page& page) {
  std::string out = page.paint(Style::kDim, recorded_allocators(profile)) + "\n";
  if (const std::uint64_t lost = profile::lost_allocations(profile); lost > 0)
    out += page.paint(Style::kWarning, fmt::format("lost: {} allocations or samples of them: all is more than it says",
                                                   format_count(lost))) +
           "\n";
  if (const std::string early = incomplete_note(profile); !early.empty() && !profile.is_exact)
    out += page.paint(Style::kWarning, early) + "\n";
  for (const profile::Drop& drop : profile.drops) {
    if (drop.reason == "allocation hooks removed by another tool")
      out +=
          page.paint(Style::kWarning,
                     "cut short: another tool, there before the recording, took out the hooks with its own; what was "
                     "allocated after that is not seen") +
          "\n";
  }
  return "\n" + out;
}

// Eight levels of the row's most, "·" for nothing.
std::string sparkline(const std::vector<double>& values) {
  constexpr std::array<std::string_view, 8> kLevels = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  const double most = *std::max_element(values.begin(), values.end());
  std::string out;
  for (const double value : values)
    out += value <= 0 ? "·" : kLevels[static_cast<std::size_t>(std::clamp(std::ceil(value / most * 8), 1.0, 8.0)) - 1];
  return out;
}

constexpr std::size_t kHistoryMoments = 16;

bool has_history(const MemoryQuestion& question) {
  return question.view != MemoryView::kAllocated && question.view != MemoryView::kTemporary;
}

Table flat_table(const Profile& profile, const MemoryQuestion& question, const MemoryReport& report, std::size_t shown,
                 const Page& page) {
  std::vector<Column> columns = {{"self %"}, {"self"}, {"total"}, {"blocks", Fit::kRight, 1}};
  const bool with_intervals = !profile.is_exact;
  if (with_intervals) columns.insert(columns.end(), {{"95 % sure", Fit::kRight, 3}, {"samples", Fit::kRight, 4}});
  const bool with_history = has_history(question);
  if (with_history) columns.push_back({"alive over time", Fit::kLeft, 2});
  columns.insert(columns.end(), {{"function", Fit::kCutRight}, {"where", Fit::kCutLeft}});
  Table table(std::move(columns));
  const auto history =
      with_history ? profile::alive_over_time(profile, kHistoryMoments) : std::vector<std::vector<double>>{};
  for (std::size_t i = 0; i < shown; ++i) {
    const profile::MemoryRow& row = report.flat[i];
    const double percent = report.all.bytes > 0 ? 100 * row.self.bytes / report.all.bytes : 0;
    const ShownPath place = place_of(profile, row.function, 0, page.directory);
    const bool has_self = row.self.samples > 0;
    std::vector<Cell> cells = {{{format_percent(percent), heat(percent)}},
                               {{has_self ? bytes_text(row.self.bytes) : "·"}},
                               {{bytes_text(row.total.bytes)}},
                               {{has_self ? blocks_text(row.self) : "·"}}};
    if (with_intervals)
      cells.insert(cells.end(), {{{has_self ? interval_text(row.self) : "", Style::kDim}},
                                 {{format_count(row.self.samples), Style::kDim}}});
    if (with_history) cells.push_back({{has_self ? sparkline(history[row.function.index()]) : ""}});
    cells.push_back({{function_name(profile, row.function), place.is_library ? Style::kPlain : Style::kStrong}});
    cells.push_back({{place.text, Style::kDim}});
    table.add_row(std::move(cells));
  }
  return table;
}

std::string not_shown(std::size_t count, std::string_view of_what, const Page& page) {
  if (count == 0) return {};
  return "\n" + page.paint(Style::kDim, fmt::format("not shown: {} (--limit 0 shows all)", plural(count, of_what))) +
         "\n";
}

std::string flat_text(const Profile& profile, const MemoryQuestion& question, const MemoryReport& report,
                      std::size_t limit, const Page& page) {
  const std::size_t shown = limit == 0 ? report.flat.size() : std::min(limit, report.flat.size());
  return flat_table(profile, question, report, shown, page).render(page) +
         not_shown(report.flat.size() - shown, "function", page);
}

std::string type_name(const Profile& profile, const profile::TypeRow& row) {
  if (!row.type.is_none()) return printable(profile.strings[row.type]);
  if (row.is_object) return "[type not known, or no object]";
  constexpr std::uint8_t kMemory = 1;
  return row.domain == kMemory ? "[memory that objects own]" : fmt::format("[{}]", profile::domain_name(row.domain));
}

std::string types_text(const Profile& profile, const MemoryQuestion& question, std::size_t limit, const Page& page) {
  const std::vector<profile::TypeRow> rows = profile::memory_by_type(profile, question);
  MemoryEstimate all;
  for (const profile::TypeRow& row : rows) all.add(row.all);
  std::vector<Column> columns = {{"%"}, {"bytes"}, {"blocks", Fit::kRight, 1}};
  if (!profile.is_exact) columns.insert(columns.end(), {{"95 % sure", Fit::kRight, 2}, {"samples", Fit::kRight, 3}});
  columns.insert(columns.end(), {{"type", Fit::kCutRight}, {"mostly by", Fit::kCutRight}, {"where", Fit::kCutLeft}});
  Table table(std::move(columns));
  const std::size_t shown = limit == 0 ? rows.size() : std::min(limit, rows.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const profile::TypeRow& row = rows[i];
    const double percent = all.bytes > 0 ? 100 * row.all.bytes / all.bytes : 0;
    const bool has_function = !row.mostly.is_none();
    std::vector<Cell> cells = {
        {{format_percent(percent), heat(percent)}}, {{bytes_text(row.all.bytes)}}, {{blocks_text(row.all)}}};
    if (!profile.is_exact)
      cells.insert(cells.end(),
                   {{{interval_text(row.all), Style::kDim}}, {{format_count(row.all.samples), Style::kDim}}});
    cells.insert(cells.end(),
                 {{{type_name(profile, row), row.type.is_none() ? Style::kDim : Style::kStrong}},
                  {{has_function ? function_name(profile, row.mostly) : ""}},
                  {{has_function ? place_of(profile, row.mostly, 0, page.directory).text : "", Style::kDim}}});
    table.add_row(std::move(cells));
  }
  return table.render(page) + not_shown(rows.size() - shown, "type", page);
}

const char* end_of_long_life(const profile::LifetimeRow& row) {
  if (row.is_moved) return "moved by realloc";
  return row.up_to_ns == profile::AllocationRow::kAlive ? "never" : "later";
}

std::string lifetimes_text(const Profile& profile, const Page& page) {
  std::string out;
  const std::vector<profile::LifetimeRow> rows = profile::lifetimes(profile);
  double all = 0;
  for (const profile::LifetimeRow& row : rows) all += row.all.bytes;
  double sum = 0;  // "within" a time is all that was freed so soon
  for (const profile::LifetimeRow& row : rows) {
    if (row.all.samples == 0) continue;
    const bool is_within = row.up_to_ns != MemoryQuestion::kEnd && row.up_to_ns != profile::AllocationRow::kAlive;
    const std::string label = is_within ? "within " + format_time(row.up_to_ns) : end_of_long_life(row);
    if (is_within) sum += row.all.bytes;
    const double share = all > 0 ? 100 * (is_within ? sum : row.all.bytes) / all : 0;
    out += fmt::format("{}{} %  {}", out.empty() ? "freed: " : " · ", format_percent(share), label);
  }
  return out.empty() ? out : page.paint(Style::kDim, out) + "\n\n";
}

std::string tree_text(Profile& profile, MemoryOptions& options, std::uint64_t looks, const Page& page) {
  // Two trees of the same stacks, so of the same nodes: one of bytes, one of how sure they are.
  profile::put_memory_in_place_of_samples(profile, options.question, profile::MemoryWeight::kVariance);
  const profile::Tree variances = profile::tree(profile, options.granularity);
  profile::put_memory_in_place_of_samples(profile, options.question, profile::MemoryWeight::kBytes);
  const profile::Tree tree = profile::tree(profile, options.granularity);
  options.tree.quantity = Quantity::kBytes;
  for (std::size_t i = 0; i < tree.nodes.size() && !profile.is_exact; ++i)
    options.tree.margins.push_back(
        profile::margin_of(profile, tree.nodes[i].total_ns, variances.nodes[i].total_ns, looks));
  return render_tree(profile, tree, tree_view(profile, tree, options.tree), options.tree, page);
}

void put_where_defined(JsonWriter& json, const Profile& profile, FunctionId id) {
  const profile::Function& function = profile.functions[id];
  json.member("function", profile.strings[function.name]);
  if (!function.file.is_none()) json.member("file", profile.strings[function.file]);
  json.member("first_line", std::int64_t{function.first_line});
}

void put_flat(JsonWriter& json, const Profile& profile, const MemoryQuestion& question, const MemoryReport& report,
              std::size_t limit) {
  const auto history =
      has_history(question) ? profile::alive_over_time(profile, kHistoryMoments) : std::vector<std::vector<double>>{};
  const std::size_t shown = limit == 0 ? report.flat.size() : std::min(limit, report.flat.size());
  json.key("functions");
  json.begin_array();
  for (std::size_t i = 0; i < shown; ++i) {
    const profile::MemoryRow& row = report.flat[i];
    json.begin_object();
    put_where_defined(json, profile, row.function);
    put_estimate(json, "self", row.self);
    put_estimate(json, "total", row.total);
    if (!history.empty())
      json.column("alive_over_time", history[row.function.index()],
                  [&](double bytes) { json.integer(rounded(bytes)); });
    json.end_object();
  }
  json.end_array();
}

void put_types(JsonWriter& json, const Profile& profile, const MemoryQuestion& question, std::size_t limit) {
  const std::vector<profile::TypeRow> rows = profile::memory_by_type(profile, question);
  json.key("types");
  json.begin_array();
  for (std::size_t i = 0; i < (limit == 0 ? rows.size() : std::min(limit, rows.size())); ++i) {
    const profile::TypeRow& row = rows[i];
    json.begin_object();
    if (!row.type.is_none()) json.member("type", profile.strings[row.type]);
    json.key("is_object");
    json.boolean(row.is_object);
    json.member("allocator", profile::domain_name(row.domain));
    put_estimate(json, "all", row.all);
    if (!row.mostly.is_none()) {
      json.key("mostly");
      json.begin_object();
      put_where_defined(json, profile, row.mostly);
      json.member("bytes", rounded(row.mostly_bytes));
      json.end_object();
    }
    json.end_object();
  }
  json.end_array();
}

void put_lifetimes(JsonWriter& json, const Profile& profile) {
  json.key("lifetimes");
  json.begin_array();
  for (const profile::LifetimeRow& row : profile::lifetimes(profile)) {
    json.begin_object();
    const bool is_freed = row.up_to_ns != profile::AllocationRow::kAlive && !row.is_moved;
    json.key("is_freed");
    json.boolean(is_freed);
    if (row.is_moved) {
      json.key("is_moved");
      json.boolean(true);
    }
    if (is_freed && row.up_to_ns != MemoryQuestion::kEnd) json.member("within_ns", row.up_to_ns);
    put_estimate(json, "all", row.all);
    json.end_object();
  }
  json.end_array();
}

}  // namespace

std::optional<MemoryView> memory_view_named(std::string_view name) {
  if (name == "alloc") return MemoryView::kAllocated;
  if (name == "live") return MemoryView::kLive;
  if (name == "peak") return MemoryView::kPeak;
  if (name == "leaks") return MemoryView::kLeaks;
  if (name == "temporary") return MemoryView::kTemporary;
  return std::nullopt;
}

std::string what_exact_lacks(const Profile& profile) {
  if (!profile.is_exact) return {};
  if (has_sums_only(profile))
    return "exact, but only of what was alive at the peak and at the end: memray kept no more\n";
  if (!profile.complete) return "exact, but for its last moments: the recording was cut short, or goes on\n";
  const std::uint64_t lost = profile::lost_allocations(profile);
  return lost == 0 ? "" : fmt::format("exact, but for {} allocations that were lost\n", format_count(lost));
}

std::string memory_text(Profile& profile, MemoryOptions options, const Page& page) {
  const MemoryQuestion& question = options.question;
  const MemoryReport report = profile::memory_report(profile, question);
  std::string out = heading(profile, options, report, page);
  if (question.view == MemoryView::kTemporary) out += lifetimes_text(profile, page);
  switch (options.shape) {
    case MemoryOptions::Shape::kTree: out += tree_text(profile, options, report.all.looks, page); break;
    case MemoryOptions::Shape::kFlat: out += flat_text(profile, question, report, options.limit, page); break;
    case MemoryOptions::Shape::kTypes: out += types_text(profile, question, options.limit, page); break;
  }
  return out + notes(profile, page);
}

std::string memory_json(const Profile& profile, const MemoryOptions& options) {
  const MemoryReport report = profile::memory_report(profile, options.question);
  std::string out;
  JsonWriter json(out);
  begin_document(json);
  json.member("distance_bytes", static_cast<std::int64_t>(profile.allocation_distance));
  json.member("counted_bytes", counted_bytes(profile, options));
  json.member("at_ns", report.at_ns);
  if (profile::is_in_sums(profile) && is_of_a_time(options.question))
    json.member("sums_taken_ns", profile::sums_taken_ns(profile, options.question.at_ns));
  if (options.sums_of) {
    json.member("sums_from_ns", options.sums_of->from_ns);
    json.member("sums_to_ns", options.sums_of->to_ns);
  }
  json.member("confidence", profile.is_exact ? "exact" : "95 %");
  json.member("lost", static_cast<std::int64_t>(profile::lost_allocations(profile)));
  json.key("complete");
  json.boolean(profile.complete);
  put_estimate(json, "all", report.all);
  json.column("allocators", profile::memory_by_domain(profile, options.question), [&](const profile::DomainRow& row) {
    json.begin_object();
    json.member("allocator", profile::domain_name(row.domain));
    put_estimate(json, "all", row.all);
    json.end_object();
  });
  if (options.question.view == MemoryView::kTemporary) put_lifetimes(json, profile);
  if (options.shape == MemoryOptions::Shape::kTypes)
    put_types(json, profile, options.question, options.limit);
  else
    put_flat(json, profile, options.question, report, options.limit);
  json.end_object();
  return out + "\n";
}

}  // namespace plimsoll::cli
