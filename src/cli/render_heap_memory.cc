#include "cli/render_heap_memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/heap_units.h"
#include "cli/json_document.h"
#include "cli/table.h"
#include "cli/utf8.h"
#include "formats/json.h"
#include "heap/arenas.h"
#include "heap/duplicates.h"
#include "heap/resident.h"
#include "heap/waste.h"
#include "sql/query.h"

namespace plimsoll::cli {
namespace {

using formats::JsonWriter;
using heap::Snapshot;

std::string more_text(std::size_t rows, std::size_t limit, const Page& page) {
  if (limit == 0 || rows <= limit) return {};
  return "\n" + page.paint(Style::kDim, fmt::format("{} more (--limit 0 shows all)", format_count(rows - limit))) +
         "\n";
}

std::size_t shown(std::size_t rows, std::size_t limit) { return limit == 0 ? rows : std::min(rows, limit); }

template <typename Rows>
std::uint64_t total_waste(const Rows& rows) {
  std::uint64_t sum = 0;
  for (const auto& row : rows) sum += row.waste;
  return sum;
}

constexpr double kNearlyEmpty = 0.25;

std::vector<heap::GroupRow> sorted_groups(const HeapView& view, heap::GroupBy by, const heap::NodeSet& chosen,
                                          HeapSort sort) {
  std::vector<heap::GroupRow> rows = heap::groups(view.snapshot, view.dominance, by, chosen);
  if (sort != HeapSort::kSize)
    std::stable_sort(rows.begin(), rows.end(), [&](const heap::GroupRow& a, const heap::GroupRow& b) {
      return sort == HeapSort::kCount ? a.count > b.count : a.retained > b.retained;
    });
  return rows;
}

}  // namespace

std::string render_heap_duplicates(const Snapshot& snapshot, const HeapOptions& options, const Page& page) {
  if (snapshot.hashed.empty())
    return "the snapshot does not tell equal strs apart: it was written by an older version of Plimsoll\n";
  const heap::Places places = heap::places(snapshot);
  const std::vector<heap::Duplicate> rows = heap::duplicates(snapshot, places);
  std::string out =
      fmt::format("{} str and bytes, {} contents that are there more than once; {} could be saved\n",
                  format_count(snapshot.hashed.size()), format_count(rows.size()), bytes_text(total_waste(rows)));
  if (rows.empty()) return out;
  Table table(
      {{"count"}, {"waste"}, {"class", Fit::kLeft}, {"content", Fit::kCutRight}, {"most are held at", Fit::kCutRight}});
  for (std::size_t i = 0; i < shown(rows.size(), options.limit); ++i) {
    const heap::Duplicate& row = rows[i];
    const std::string text(snapshot.text(row.first));
    table.add_row(
        {{{format_count(row.count)}},
         {{bytes_text(row.waste)}},
         {{printable(snapshot.types[row.type].name)}},
         {{text.empty() ? fmt::format("(at {:#x})", snapshot.address[row.first]) : printable(text),
           text.empty() ? Style::kDim : Style::kPlain}},
         {{printable(places.names[row.place]), Style::kStrong},
          {row.held_there < row.count ? "  " + format_count(row.held_there) + " of them" : "", Style::kMild}}});
  }
  return out + "\n" + table.render(page) + more_text(rows.size(), options.limit, page);
}

std::string render_heap_waste(const Snapshot& snapshot, const HeapOptions& options, const Page& page) {
  const heap::Places places = heap::places(snapshot);
  const std::vector<heap::Waste> rows = heap::waste(snapshot, places);
  std::uint64_t empty = 0;
  for (const heap::Waste& row : rows) empty += row.kind == heap::WasteKind::kEmpty ? row.waste : 0;
  std::string out = fmt::format("{} in empty containers, {} of room that containers do not need\n", bytes_text(empty),
                                bytes_text(total_waste(rows) - empty));
  if (rows.empty()) return out;
  Table table(
      {{"waste"}, {"count"}, {"size"}, {"what", Fit::kLeft}, {"class", Fit::kLeft}, {"held at", Fit::kCutRight}});
  for (std::size_t i = 0; i < shown(rows.size(), options.limit); ++i) {
    const heap::Waste& row = rows[i];
    table.add_row({{{bytes_text(row.waste)}},
                   {{format_count(row.count)}},
                   {{bytes_text(row.size)}},
                   {{row.kind == heap::WasteKind::kEmpty ? "empty" : "too large"}},
                   {{printable(snapshot.types[row.type].name)}},
                   {{printable(places.names[row.place]), Style::kStrong}}});
  }
  return out + "\n" + table.render(page) + more_text(rows.size(), options.limit, page);
}

std::string render_heap_arenas(const Snapshot& snapshot, const HeapOptions& options, const Page& page) {
  const std::vector<heap::Arena> arenas = heap::arenas(snapshot);
  if (arenas.empty())
    return "the snapshot knows of no arenas: a free-threaded build, PYTHONMALLOC=malloc, a core file, or a snapshot of "
           "an older version of Plimsoll\n";
  std::uint64_t bytes = 0, used = 0;
  std::array<std::uint64_t, 10> by_fill{};
  for (const heap::Arena& arena : arenas) {
    bytes += arena.bytes;
    used += arena.used;
    ++by_fill[std::min<std::size_t>(9, static_cast<std::size_t>(arena.fill() * 10))];
  }
  std::string out =
      fmt::format("{} arenas, {} in pools, of which {} ({} %) are in blocks in use\n\n", format_count(arenas.size()),
                  bytes_text(bytes), bytes_text(used), format_percent(share(used, bytes)));
  Table fill({{"filled"}, {"arenas"}});
  for (std::size_t i = 0; i < by_fill.size(); ++i)
    fill.add_row({{{fmt::format("{:>2} to {:>3} %", i * 10, i * 10 + 10)}}, {{format_count(by_fill[i])}}});
  out += fill.render(page);
  const std::vector<heap::Pinning> rows = heap::pinning(snapshot, arenas, kNearlyEmpty);
  if (rows.empty()) return out;
  out += "\nin arenas that are filled to at most a quarter, which these objects keep from being given back:\n\n";
  Table table({{"arenas"}, {"alone in"}, {"objects"}, {"size"}, {"class", Fit::kCutRight}});
  for (std::size_t i = 0; i < shown(rows.size(), options.limit); ++i)
    table.add_row({{{format_count(rows[i].arenas)}},
                   {{format_count(rows[i].alone)}},
                   {{format_count(rows[i].objects)}},
                   {{bytes_text(rows[i].size)}},
                   {{printable(snapshot.types[rows[i].type].name), Style::kStrong}}});
  return out + table.render(page) + more_text(rows.size(), options.limit, page);
}

std::string render_heap_rss(const Snapshot& snapshot, const Page& page) {
  const heap::Resident resident = heap::resident(snapshot);
  if (resident.total == 0)
    return "the snapshot does not know what the process had mapped: a core file, or a snapshot of an older version of "
           "Plimsoll\n";
  std::string out = fmt::format("{} resident (RSS)\n\n", bytes_text(resident.total));
  Table table({{"size"}, {"%"}, {"what", Fit::kCutRight}});
  for (const heap::ResidentPart& part : resident.parts)
    table.add_row({{{bytes_text(part.bytes)}},
                   {{format_percent(share(part.bytes, resident.total)), heat(share(part.bytes, resident.total))}},
                   {{part.what}}});
  out += table.render(page);
  if (resident.small_used > 0)
    out += fmt::format("\n{} % of the bytes in small blocks are objects' of this snapshot\n",
                       format_percent(share(resident.small_explained, resident.small_used)));
  return out;
}

std::string render_heap_groups(const HeapView& view, heap::GroupBy by, const heap::NodeSet& chosen,
                               const HeapOptions& options, const Page& page) {
  const std::vector<heap::GroupRow> rows = sorted_groups(view, by, chosen, options.sort);
  Table table({{"count"}, {"size"}, {"retained"}, {"", Fit::kCutRight}});
  for (std::size_t i = 0; i < shown(rows.size(), options.limit); ++i)
    table.add_row({{{format_count(rows[i].count)}},
                   {{bytes_text(rows[i].size)}},
                   {{bytes_text(rows[i].retained)}},
                   {{printable(rows[i].name), Style::kStrong}}});
  return table.render(page) + more_text(rows.size(), options.limit, page);
}

Result<std::string> heap_table_json(const Snapshot& snapshot, std::string_view view, std::string_view table,
                                    std::size_t limit) {
  const auto database = sql::HeapDatabase::open(snapshot);
  if (!database.ok()) return database.error();
  const Result<sql::Answer> answer =
      database.value()->ask("select * from " + std::string(table), limit == 0 ? SIZE_MAX : limit);
  if (!answer.ok()) return answer.error();
  std::string out;
  JsonWriter json(out);
  begin_document(json);
  json.member("view", view);
  json.column("rows", answer.value().rows, [&](const std::vector<sql::Value>& row) {
    json.begin_object();
    for (std::size_t i = 0; i < row.size(); ++i) {
      json.key(answer.value().columns[i]);
      if (const auto* whole = std::get_if<std::int64_t>(&row[i]))
        json.integer(*whole);
      else if (const auto* text = std::get_if<std::string>(&row[i]))
        json.text(*text);
      else
        json.null();
    }
    json.end_object();
  });
  put_more(json, answer.value().is_cut);
  json.end_object();
  return out + "\n";
}

std::string heap_groups_json(const HeapView& view, heap::GroupBy by, const heap::NodeSet& chosen,
                             const HeapOptions& options) {
  std::string out;
  JsonWriter json(out);
  begin_document(json);
  json.member("view", "groups");
  std::vector<heap::GroupRow> rows = sorted_groups(view, by, chosen, options.sort);
  const bool has_more = shown(rows.size(), options.limit) < rows.size();
  rows.resize(shown(rows.size(), options.limit));
  json.column("groups", rows, [&](const heap::GroupRow& row) {
    json.begin_object();
    json.member("name", row.name);
    json.member("count", static_cast<std::int64_t>(row.count));
    json.member("bytes", static_cast<std::int64_t>(row.size));
    json.member("retained_bytes", static_cast<std::int64_t>(row.retained));
    json.end_object();
  });
  put_more(json, has_more);
  json.end_object();
  return out + "\n";
}

}  // namespace plimsoll::cli
