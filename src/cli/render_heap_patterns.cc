#include "cli/render_heap_patterns.h"

#include <fmt/format.h>

#include "cli/json_document.h"
#include "cli/units.h"
#include "cli/utf8.h"
#include "formats/json.h"
#include "heap/path_patterns.h"

namespace plimsoll::cli {
namespace {

heap::PathPatterns patterns_of(const HeapView& view, heap::Node node, const HeapOptions& options) {
  return heap::path_patterns(view.snapshot, node, options.limit == 0 ? SIZE_MAX : options.limit);
}

}  // namespace

std::string render_heap_patterns(const HeapView& view, heap::Node node, const HeapOptions& options, const Page& page) {
  const heap::Snapshot& snapshot = view.snapshot;
  const std::string end = page.paint(Style::kStrong, printable(heap::describe(snapshot, node)));
  std::string out = fmt::format("{} at {:#x}: {}, retains {}\n", end, snapshot.address[node],
                                format_bytes(static_cast<std::int64_t>(snapshot.size[node])),
                                format_bytes(static_cast<std::int64_t>(view.dominance.retained[node])));
  const heap::PathPatterns found = patterns_of(view, node, options);
  for (const heap::PathPattern& pattern : found.patterns) {
    out += "\n";
    std::string indent;
    const auto add_line = [&](const std::string& line) {
      out += indent + line + "\n";
      indent += "  ";
    };
    heap::each_shown_step(
        pattern.size(),
        [&](std::size_t i) {
          // A root's own edges say nothing; what it holds does.
          if (i == 0) return;
          add_line(printable(heap::describe_holders(snapshot, pattern[i])) +
                   page.paint(Style::kMild, printable(heap::describe_hold(snapshot, pattern[i]))) +
                   (pattern[i].repeats ? page.paint(Style::kDim, " (repeated)") : ""));
        },
        [&](std::size_t count) { add_line(page.paint(Style::kDim, fmt::format("... {} steps ...", count))); });
    out += indent + end + "\n";
  }
  if (found.is_cut) out += "\n" + page.paint(Style::kDim, "there are more ways, or may be (--limit N)") + "\n";
  return out;
}

std::string heap_patterns_json(const HeapView& view, heap::Node node, const HeapOptions& options) {
  std::string out;
  formats::JsonWriter json(out);
  begin_document(json);
  json.member("view", "path patterns");
  json.member("object", heap::describe(view.snapshot, node));
  const heap::PathPatterns found = patterns_of(view, node, options);
  json.key("complete");
  json.boolean(!found.is_cut);
  json.column("patterns", found.patterns, [&](const heap::PathPattern& pattern) {
    json.begin_array();
    for (const heap::PatternStep& step : pattern) {
      json.begin_object();
      json.member("type", view.snapshot.type_name(step.holder));
      json.member("holders", static_cast<std::int64_t>(step.holders));
      json.member("text", heap::describe_holders(view.snapshot, step));
      json.member("edge", heap::describe_hold(view.snapshot, step));
      json.key("repeats");
      json.boolean(step.repeats);
      json.end_object();
    }
    json.end_array();
  });
  json.end_object();
  return out + "\n";
}

}  // namespace plimsoll::cli
