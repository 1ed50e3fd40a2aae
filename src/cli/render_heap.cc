#include "cli/render_heap.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <numeric>

#include "cli/heap_units.h"
#include "cli/json_document.h"
#include "cli/table.h"
#include "cli/utf8.h"
#include "formats/json.h"

namespace plimsoll::cli {
namespace {

using formats::JsonWriter;
using heap::Node;
using heap::Snapshot;

std::string signed_bytes(std::int64_t bytes) {
  return (bytes > 0 ? "+" : bytes < 0 ? "-" : "") + format_bytes(std::abs(bytes));
}

std::uint64_t total_size(const Snapshot& snapshot) { return snapshot.size.sum(); }

// Of objects; what the roots hold comes after that.
std::uint64_t references(const Snapshot& snapshot) { return snapshot.graph.first[snapshot.object_count]; }

std::string summary(const Snapshot& snapshot) {
  std::string line = fmt::format("{} objects, {}, {} references\n", format_count(snapshot.object_count),
                                 bytes_text(total_size(snapshot)), format_count(references(snapshot)));
  if (!snapshot.complete)
    line += "the snapshot is incomplete: its file ends early, so much may seem to be held by none\n";
  if (snapshot.lost_edges != 0)
    line += fmt::format("{} references led to what is not in the snapshot\n", format_count(snapshot.lost_edges));
  return line + "\n";
}

std::string more_text(std::size_t count, const Page& page) {
  if (count == 0) return {};
  return "\n" + page.paint(Style::kDim, fmt::format("{} more (--limit 0 shows all)", format_count(count))) + "\n";
}

std::vector<heap::TypeRow> sorted_types(const HeapView& view, const HeapOptions& options) {
  std::vector<heap::TypeRow> rows = heap::types(view.snapshot, view.dominance);
  const auto key = [&](const heap::TypeRow& row) {
    if (options.sort == HeapSort::kRetained) return row.retained;
    return options.sort == HeapSort::kCount ? row.count : row.size;
  };
  std::stable_sort(rows.begin(), rows.end(),
                   [&](const heap::TypeRow& a, const heap::TypeRow& b) { return key(a) > key(b); });
  return rows;
}

template <typename Row>
std::size_t cut(std::vector<Row>& rows, std::size_t limit) {
  const std::size_t more = limit != 0 && rows.size() > limit ? rows.size() - limit : 0;
  rows.erase(rows.end() - static_cast<std::ptrdiff_t>(more), rows.end());
  return more;
}

std::string node_text(const Snapshot& snapshot, Node node) { return printable(heap::describe(snapshot, node)); }

// ".cache['a'][3]": how a path leaves its holder.
std::string step_text(const Snapshot& snapshot, const heap::Step& step) {
  return printable(heap::describe_edge(snapshot, step.node, step.edge));
}

void begin(JsonWriter& json, std::string_view view) {
  begin_document(json);
  json.member("view", view);
}

void put_heap(JsonWriter& json, const Snapshot& snapshot) {
  json.key("heap");
  json.begin_object();
  json.key("meta");
  json.begin_object();
  for (const auto& [name, value] : snapshot.meta) {
    json.text_key(name);
    json.text(value);
  }
  json.end_object();
  json.member("objects", static_cast<std::int64_t>(snapshot.object_count));
  json.member("references", static_cast<std::int64_t>(references(snapshot)));
  json.member("bytes", static_cast<std::int64_t>(total_size(snapshot)));
  json.member("lost_references", static_cast<std::int64_t>(snapshot.lost_edges));
  json.key("complete");
  json.boolean(snapshot.complete);
  json.end_object();
}

void put_node(JsonWriter& json, const HeapView& view, Node node) {
  const Snapshot& snapshot = view.snapshot;
  json.member("type", snapshot.type_name(node));
  if (const std::string_view text = snapshot.text(node); !text.empty()) json.member("text", text);
  if (snapshot.is_object(node)) json.member("address", fmt::format("{:#x}", snapshot.address[node]));
  json.member("bytes", static_cast<std::int64_t>(snapshot.size[node]));
  json.member("retained_bytes", static_cast<std::int64_t>(view.dominance.retained[node]));
}

std::string finish(std::string& out, JsonWriter& json) {
  json.end_object();
  return out + "\n";
}

// Where a class is, if that is known.
std::string class_address(const Snapshot& snapshot, std::uint32_t type) {
  const Node node = snapshot.types[type].object;
  return node == heap::kNoNode ? "" : fmt::format("{:#x}", snapshot.address[node]);
}

// Classes of one name, as a function makes one each time that it is called, are told apart by where they are.
class ClassTexts {
 public:
  explicit ClassTexts(const Snapshot& snapshot) : snapshot_(snapshot) {
    for (const heap::Type& type : snapshot.types) ++count_[type.name];
  }
  [[nodiscard]] std::string of(std::uint32_t type) const {
    const std::string& name = snapshot_.types[type].name;
    const std::string at = count_.find(name)->second > 1 ? class_address(snapshot_, type) : "";
    return printable(name) + (at.empty() ? "" : " (class at " + at + ")");
  }

 private:
  const Snapshot& snapshot_;
  std::map<std::string_view, std::size_t> count_;
};

std::string types_table(const HeapView& view, std::vector<heap::TypeRow> rows, const HeapOptions& options,
                        const Page& page) {
  const std::uint64_t total = total_size(view.snapshot);
  const std::size_t more = cut(rows, options.limit);
  const ClassTexts texts(view.snapshot);
  Table table({{"count"}, {"size"}, {"%"}, {"retained"}, {"%"}, {"class", Fit::kCutRight}});
  for (const heap::TypeRow& row : rows)
    table.add_row({{{format_count(row.count)}},
                   {{bytes_text(row.size)}},
                   {{format_percent(share(row.size, total)), heat(share(row.size, total))}},
                   {{bytes_text(row.retained)}},
                   {{format_percent(share(row.retained, total)), heat(share(row.retained, total))}},
                   {{texts.of(row.type), Style::kStrong}}});
  return table.render(page) + more_text(more, page);
}

// With what is no object: in a view of memory that is the buffers, which have a row of their own.
heap::NodeSet freed_with(const HeapView& view, const heap::NodeSet& chosen) {
  return heap::retained_by(view.snapshot, heap::among_all_nodes(view.snapshot, chosen));
}

std::size_t object_count(const Snapshot& snapshot, const heap::NodeSet& set) {
  std::size_t count = 0;
  set.for_each([&](Node node) { count += snapshot.is_object(node) ? 1 : 0; });
  return count;
}

void put_types(JsonWriter& json, const HeapView& view, std::vector<heap::TypeRow> rows, const HeapOptions& options) {
  const std::size_t more = cut(rows, options.limit);
  json.column("types", rows, [&](const heap::TypeRow& row) {
    json.begin_object();
    json.member("type", view.snapshot.types[row.type].name);
    if (const std::string at = class_address(view.snapshot, row.type); !at.empty()) json.member("class_address", at);
    json.member("count", static_cast<std::int64_t>(row.count));
    json.member("bytes", static_cast<std::int64_t>(row.size));
    json.member("retained_bytes", static_cast<std::int64_t>(row.retained));
    json.end_object();
  });
  put_more(json, more > 0);
}

}  // namespace

std::string render_heap_types(const HeapView& view, const HeapOptions& options, const Page& page) {
  return summary(view.snapshot) + types_table(view, sorted_types(view, options), options, page);
}

std::string render_heap_retained(const HeapView& view, const heap::NodeSet& chosen, std::string_view name,
                                 const HeapOptions& options, const Page& page) {
  const auto words = [&](const heap::NodeSet& set) {
    const std::size_t count = object_count(view.snapshot, set);
    return fmt::format("{} object{}, {}", format_count(count), count == 1 ? "" : "s",
                       bytes_text(heap::size_of(view.snapshot, set)));
  };
  const heap::NodeSet freed = freed_with(view, chosen);
  return fmt::format("{}: {}; with all of them {} would be freed\n\n", printable(name), words(chosen), words(freed)) +
         types_table(view, heap::types(view.snapshot, view.dominance, freed), options, page);
}

std::string render_heap_survivors(const HeapView& view, const std::vector<heap::TypeRow>& rows,
                                  const HeapOptions& options, const Page& page) {
  if (rows.empty()) return "nothing that came between the first two snapshots is there in the third\n";
  std::uint64_t count = 0;
  std::uint64_t size = 0;
  for (const heap::TypeRow& row : rows) {
    count += row.count;
    size += row.size;
  }
  return fmt::format(
             "{} object{}, {}, came between the first two snapshots and {} there in the third, or another of the "
             "class in {} place\n\n",
             format_count(count), count == 1 ? "" : "s", bytes_text(size), count == 1 ? "is" : "are",
             count == 1 ? "its" : "their") +
         types_table(view, rows, options, page);
}

std::string render_heap_tree(const HeapView& view, Node top, const HeapOptions& options, const Page& page) {
  const std::uint64_t total = total_size(view.snapshot);
  Table table({{"retained"}, {"%"}, {"size"}, {"object", Fit::kCutRight}, {"address", Fit::kLeft}});
  std::vector<heap::DominatorRow> rows = heap::dominator_rows(view.dominance, top, options.tree);
  const std::size_t more = cut(rows, options.limit);
  for (const heap::DominatorRow& row : rows) {
    const double percent = share(row.retained, total);
    const bool is_object = view.snapshot.is_object(row.node);
    const Node parent = view.dominance.tree.parent[row.node];
    const std::string hold = parent == heap::kNoNode ? "" : heap::describe_hold(view.snapshot, parent, row.node);
    table.add_row({{{bytes_text(row.retained)}},
                   {{format_percent(percent), heat(percent)}},
                   {{bytes_text(view.snapshot.size[row.node])}},
                   {{std::string(2 * std::min<std::size_t>(row.depth, 40), ' ')},
                    {node_text(view.snapshot, row.node), Style::kStrong},
                    {hold.empty() ? "" : "  " + printable(hold), Style::kMild}},
                   {{is_object ? fmt::format("{:#x}", view.snapshot.address[row.node]) : "", Style::kDim}}});
  }
  return summary(view.snapshot) + table.render(page) + more_text(more, page);
}

std::string render_heap_paths(const HeapView& view, Node node, const HeapOptions& options, const Page& page) {
  const Snapshot& snapshot = view.snapshot;
  std::string out =
      fmt::format("{} at {:#x}: {}, retains {}\n", page.paint(Style::kStrong, node_text(snapshot, node)),
                  snapshot.address[node], bytes_text(snapshot.size[node]), bytes_text(view.dominance.retained[node]));
  const auto paths =
      heap::paths_to(snapshot.graph, snapshot.root(), node, options.limit == 0 ? SIZE_MAX : options.limit);
  for (const auto& path : paths) {
    out += "\n";
    std::string indent;
    const auto add_line = [&](const std::string& line) {
      out += indent + line + "\n";
      indent += "  ";
    };
    heap::each_shown_step(
        path.size(),
        [&](std::size_t i) {
          // A root's own edges say nothing; what it holds does.
          if (i == 0) return;
          add_line(node_text(snapshot, path[i].node) + page.paint(Style::kMild, step_text(snapshot, path[i])));
        },
        [&](std::size_t count) {
          add_line(page.paint(Style::kDim, fmt::format("... {} steps ...", format_count(count))));
        });
    out += indent + page.paint(Style::kStrong, node_text(snapshot, node)) + "\n";
  }
  return out;
}

std::string render_heap_suspects(const HeapView& view, const std::vector<heap::Suspect>& suspects, const Page& page) {
  const Snapshot& snapshot = view.snapshot;
  const std::uint64_t total = total_size(snapshot);
  std::string out = summary(snapshot);
  if (suspects.empty()) return out + "no object and no class retains a tenth of the memory\n";
  for (const heap::Suspect& suspect : suspects) {
    const double percent = share(suspect.retained, total);
    const std::string who =
        suspect.node == heap::kNoNode
            ? fmt::format("{} objects of {}", format_count(suspect.count), printable(snapshot.types[suspect.type].name))
            : fmt::format("{} at {:#x}", node_text(snapshot, suspect.node), snapshot.address[suspect.node]);
    out += fmt::format("{} ({} %) retained by {}\n", page.paint(heat(percent), bytes_text(suspect.retained)),
                       format_percent(percent), page.paint(Style::kStrong, who));
    std::string chain;
    for (std::size_t i = 0; i + 1 < suspect.holders.size(); ++i)
      chain += node_text(snapshot, suspect.holders[i]) +
               printable(heap::describe_hold(snapshot, suspect.holders[i], suspect.holders[i + 1])) + " -> ";
    if (!chain.empty() || suspect.repeats)
      out += "  " + chain + node_text(snapshot, suspect.node) + (suspect.repeats ? " (repeated)" : "") + "\n";
    if (suspect.piled_count > 0)
      out += fmt::format("  of it {} by {} {}\n", bytes_text(suspect.piled_retained), format_count(suspect.piled_count),
                         printable(snapshot.types[suspect.piled_type].name));
  }
  return out;
}

std::string render_heap_changes(const Snapshot& before, const Snapshot& after, const HeapOptions& options,
                                const Page& page) {
  std::vector<heap::TypeChange> rows = heap::changes(before, after);
  std::erase_if(rows, [](const heap::TypeChange& row) {
    return row.count_before == row.count_after && row.size_before == row.size_after && row.born == 0;
  });
  const bool is_one_process = heap::are_of_one_process(before, after);
  const std::size_t more = cut(rows, options.limit);
  std::vector<Column> columns{{"size change"}, {"count change"}, {"size"}, {"count"}};
  if (is_one_process) columns.push_back({"new"});
  columns.push_back({"class", Fit::kCutRight});
  Table table(std::move(columns));
  for (const heap::TypeChange& row : rows) {
    const std::int64_t grown = row.size_after - row.size_before;
    const Style style = grown > 0 ? Style::kHot : grown < 0 ? Style::kCool : Style::kPlain;
    std::vector<Cell> cells{{{signed_bytes(grown), style}},
                            {{fmt::format("{:+}", row.count_after - row.count_before), style}},
                            {{format_bytes(row.size_after)}},
                            {{format_count(static_cast<std::uint64_t>(row.count_after))}}};
    if (is_one_process) cells.push_back({{format_count(row.born)}});
    cells.push_back({{printable(row.type), Style::kStrong}});
    table.add_row(std::move(cells));
  }
  const auto grown = static_cast<std::int64_t>(total_size(after)) - static_cast<std::int64_t>(total_size(before));
  const auto more_objects =
      static_cast<std::int64_t>(after.object_count) - static_cast<std::int64_t>(before.object_count);
  std::string out = fmt::format("before {}, after {} ({}); objects {:+}\n", bytes_text(total_size(before)),
                                bytes_text(total_size(after)), signed_bytes(grown), more_objects);
  if (!is_one_process)
    out += fmt::format("{}: objects cannot be told apart, only counted\n", heap::why_not_of_one_process(before, after));
  return out + "\n" + (table.empty() ? "nothing has changed\n" : table.render(page)) + more_text(more, page);
}

std::string heap_types_json(const HeapView& view, const HeapOptions& options) {
  std::string out;
  JsonWriter json(out);
  begin(json, "types");
  put_heap(json, view.snapshot);
  put_types(json, view, sorted_types(view, options), options);
  return finish(out, json);
}

std::string heap_retained_json(const HeapView& view, const heap::NodeSet& chosen, std::string_view name,
                               const HeapOptions& options) {
  std::string out;
  JsonWriter json(out);
  const heap::NodeSet freed = freed_with(view, chosen);
  begin(json, "retained");
  put_heap(json, view.snapshot);
  json.member("of", name);
  json.member("count", static_cast<std::int64_t>(chosen.count()));
  json.member("bytes", static_cast<std::int64_t>(heap::size_of(view.snapshot, chosen)));
  json.member("retained_count", static_cast<std::int64_t>(object_count(view.snapshot, freed)));
  json.member("retained_bytes", static_cast<std::int64_t>(heap::size_of(view.snapshot, freed)));
  put_types(json, view, heap::types(view.snapshot, view.dominance, freed), options);
  return finish(out, json);
}

std::string heap_survivors_json(const HeapView& view, const std::vector<heap::TypeRow>& rows,
                                const HeapOptions& options) {
  std::string out;
  JsonWriter json(out);
  begin(json, "survivors");
  put_heap(json, view.snapshot);
  put_types(json, view, rows, options);
  return finish(out, json);
}

std::string heap_tree_json(const HeapView& view, Node top, const HeapOptions& options) {
  std::string out;
  JsonWriter json(out);
  begin(json, "tree");
  put_heap(json, view.snapshot);
  std::vector<heap::DominatorRow> rows = heap::dominator_rows(view.dominance, top, options.tree);
  const std::size_t more = cut(rows, options.limit);
  json.column("tree", rows, [&](const heap::DominatorRow& row) {
    json.begin_object();
    json.member("depth", std::int64_t{row.depth});
    put_node(json, view, row.node);
    json.member("left_out", static_cast<std::int64_t>(row.left_out));
    json.end_object();
  });
  put_more(json, more > 0);
  return finish(out, json);
}

std::string heap_paths_json(const HeapView& view, Node node, const HeapOptions& options) {
  std::string out;
  JsonWriter json(out);
  begin(json, "paths");
  put_heap(json, view.snapshot);
  json.key("object");
  json.begin_object();
  put_node(json, view, node);
  json.end_object();
  const auto paths =
      heap::paths_to(view.snapshot.graph, view.snapshot.root(), node, options.limit == 0 ? SIZE_MAX : options.limit);
  json.column("paths", paths, [&](const std::vector<heap::Step>& path) {
    json.begin_array();
    heap::each_shown_step(
        path.size(),
        [&](std::size_t i) {
          json.begin_object();
          put_node(json, view, path[i].node);
          json.member("edge", heap::describe_edge(view.snapshot, path[i].node, path[i].edge));
          json.end_object();
        },
        [&](std::size_t count) {
          json.begin_object();
          json.member("left_out", static_cast<std::int64_t>(count));
          json.end_object();
        });
    json.end_array();
  });
  return finish(out, json);
}

std::string heap_suspects_json(const HeapView& view, const std::vector<heap::Suspect>& suspects) {
  std::string out;
  JsonWriter json(out);
  begin(json, "suspects");
  put_heap(json, view.snapshot);
  json.column("suspects", suspects, [&](const heap::Suspect& suspect) {
    json.begin_object();
    json.member("type", view.snapshot.types[suspect.type].name);
    json.member("count", static_cast<std::int64_t>(suspect.count));
    json.member("retained_bytes", static_cast<std::int64_t>(suspect.retained));
    json.column("holders", suspect.holders, [&](Node holder) {
      json.begin_object();
      put_node(json, view, holder);
      json.end_object();
    });
    json.key("repeats");
    json.boolean(suspect.repeats);
    json.key("piled");
    json.begin_object();
    json.member("type", view.snapshot.types[suspect.piled_type].name);
    json.member("count", static_cast<std::int64_t>(suspect.piled_count));
    json.member("retained_bytes", static_cast<std::int64_t>(suspect.piled_retained));
    json.end_object();
    json.end_object();
  });
  return finish(out, json);
}

std::string heap_changes_json(const Snapshot& before, const Snapshot& after, const HeapOptions& options) {
  std::string out;
  JsonWriter json(out);
  begin(json, "diff");
  json.key("one_process");
  json.boolean(heap::are_of_one_process(before, after));
  std::vector<heap::TypeChange> rows = heap::changes(before, after);
  const std::size_t more = cut(rows, options.limit);
  json.column("types", rows, [&](const heap::TypeChange& row) {
    json.begin_object();
    json.member("type", row.type);
    json.member("count_before", row.count_before);
    json.member("count_after", row.count_after);
    json.member("bytes_before", row.size_before);
    json.member("bytes_after", row.size_after);
    json.member("new", static_cast<std::int64_t>(row.born));
    json.end_object();
  });
  put_more(json, more > 0);
  return finish(out, json);
}

}  // namespace plimsoll::cli
