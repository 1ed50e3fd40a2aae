// cli/render_jitlog.cc: tables of traces, listings of operations.
#include "cli/render_jitlog.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "cli/json_document.h"
#include "cli/place.h"
#include "cli/table.h"
#include "cli/units.h"
#include "cli/utf8.h"
#include "formats/json.h"
#include "jitlog/listing.h"

namespace plimsoll::cli {
namespace {

using formats::JsonWriter;
using jitlog::Forest;
using jitlog::MergePoint;
using jitlog::Operation;
using jitlog::Stage;
using jitlog::StageKind;
using jitlog::Trace;

std::string_view kind_text(const Trace& trace) { return trace.kind == Trace::Kind::kLoop ? "loop" : "bridge"; }

std::string path_of(const MergePoint& place, const Page& page) {
  if (place.file.empty()) return "";
  const std::string path = printable(shown_path(place.file, page.directory).text);
  return place.line == 0 ? path : fmt::format("{}:{}", path, place.line);
}

// The last stage that has operations: what is left of the trace.
std::size_t operations_at_the_end(const Trace& trace) {
  for (std::size_t i = jitlog::kStageCount; i > 0; --i)
    if (!trace.stages[i - 1].operations.empty()) return trace.stages[i - 1].operations.size();
  return 0;
}

std::string notes_on(const Forest& forest, const Trace& trace) {
  if (trace.is_aborted) return "aborted";
  if (trace.parent) return fmt::format("from trace {}", forest.traces[*trace.parent].id);
  return trace.code_start == 0 ? "not assembled" : "";
}

std::string_view source_line(const Forest& forest, const MergePoint& place) {
  const auto found = forest.sources.find({std::string_view(place.file), place.line});
  return found == forest.sources.end() ? std::string_view{} : found->second;
}

std::string place_line(const Forest& forest, const MergePoint& place, const Page& page) {
  std::string line = fmt::format("{}  {}  {} {}", printable(place.function), path_of(place, page), place.position,
                                 printable(place.opcode));
  if (const std::string_view text = source_line(forest, place); !text.empty())
    line += "  " + page.paint(Style::kMild, printable(text));
  return line;
}

std::string operation_line(const Forest& forest, const Operation& operation, const Page& page) {
  const std::string name = printable(forest.name_of(operation));
  std::string line = "    ";
  if (operation.result != "?" && !operation.result.empty()) line += printable(operation.result) + " = ";
  line += page.paint(name.starts_with("guard") ? Style::kWarm : Style::kPlain, name);
  line += "(" + printable(operation.arguments) + ")";
  if (!operation.descriptor.empty()) line += "  " + page.paint(Style::kDim, printable(operation.descriptor));
  if (const auto bridge = forest.bridge_of(operation.descriptor_id); operation.descriptor_id != 0 && bridge) {
    const Trace& target = forest.traces[*bridge];
    line += page.paint(Style::kCool, fmt::format("  -> bridge {}, {} times", target.id, format_count(target.runs())));
  } else if (const auto count = forest.counts.find(operation.descriptor_id); count != forest.counts.end()) {
    line += page.paint(Style::kCool, fmt::format("  {} times", format_count(count->second)));
  }
  return line;
}

// The machine code of an operation, by addresses. Operations of other stages than the last have none.
class Instructions {
 public:
  Instructions(const Forest& forest, const Trace& trace) : start_(trace.code_start) {
    auto opened = jitlog::Disassembler::open(forest.machine, forest.is_32bit);
    if (opened.ok()) disassembler_ = opened.take();
  }
  [[nodiscard]] std::string lines(std::uint64_t offset, std::string_view code, const Page& page) const {
    std::string out;
    if (!disassembler_ || code.empty()) return out;
    const std::uint64_t at = start_ + offset;
    for (const jitlog::Instruction& one : disassembler_->instructions(code, at))
      out += page.paint(Style::kDim, fmt::format("        {:#x}  {}", at + one.offset, one.text)) + "\n";
    return out;
  }

 private:
  std::uint64_t start_;
  std::optional<jitlog::Disassembler> disassembler_;
};

std::vector<jitlog::PlacedPoint> places_of(const Forest& forest, const Trace& trace, StageKind kind) {
  if (kind == StageKind::kAssembled) return jitlog::assembled_places(forest, trace);
  std::vector<jitlog::PlacedPoint> places;
  for (const MergePoint& place : trace.stage(kind).merge_points) places.push_back({place.before, &place});
  return places;
}

std::string render_stage(const Forest& forest, const Trace& trace, StageKind kind, const Page& page) {
  const std::vector<Operation>& operations = trace.stage(kind).operations;
  const std::vector<jitlog::PlacedPoint> places = places_of(forest, trace, kind);
  const Instructions instructions(forest, trace);
  std::string out;
  if (kind == StageKind::kAssembled) out += instructions.lines(trace.entry_offset, trace.entry_code, page);
  auto place = places.begin();
  for (std::size_t i = 0; i <= operations.size(); ++i) {
    for (; place != places.end() && place->before == i; ++place)
      out += page.paint(Style::kDim, place_line(forest, *place->place, page)) + "\n";
    if (i == operations.size()) break;
    out += operation_line(forest, operations[i], page) + "\n";
    out += instructions.lines(operations[i].code_offset, operations[i].code, page);
  }
  return out;
}

std::string problem_line(const Forest& forest) {
  return forest.problem.empty() ? "" : fmt::format("\nincomplete: {}\n", forest.problem);
}

std::int64_t as_integer(std::uint64_t value) { return static_cast<std::int64_t>(value); }

void put_hex(JsonWriter& json, std::string_view name, std::uint64_t value) {
  json.member(name, fmt::format("{:#x}", value));
}

void put_place(JsonWriter& json, const MergePoint& place) {
  json.member("file", place.file);
  json.member("line", as_integer(place.line));
  json.member("function", place.function);
  json.member("position", as_integer(place.position));
  json.member("opcode", place.opcode);
}

void put_operation(JsonWriter& json, const Forest& forest, const Operation& operation) {
  json.begin_object();
  json.member("name", forest.name_of(operation));
  if (operation.result != "?") json.member("result", operation.result);
  json.member("arguments", operation.arguments);
  if (!operation.descriptor.empty()) json.member("descriptor", operation.descriptor);
  if (operation.descriptor_id != 0) put_hex(json, "descriptor_id", operation.descriptor_id);
  if (!operation.fail_arguments.empty()) json.member("fail_arguments", operation.fail_arguments);
  if (const auto bridge = forest.bridge_of(operation.descriptor_id); operation.descriptor_id != 0 && bridge)
    json.member("bridge", as_integer(forest.traces[*bridge].id));
  if (!operation.code.empty()) {
    std::string code;
    for (const char byte : operation.code) code += fmt::format("{:02x}", static_cast<unsigned char>(byte));
    json.member("code_offset", as_integer(operation.code_offset));
    json.member("code", code);
  }
  json.end_object();
}

void put_stage(JsonWriter& json, const Forest& forest, const Stage& stage, TraceDetail detail) {
  json.begin_object();
  json.member("arguments", stage.arguments);
  if (detail == TraceDetail::kNumbers) {
    json.member("operations", as_integer(stage.operations.size()));
    json.member("merge_points", as_integer(stage.merge_points.size()));
  } else {
    json.column("operations", stage.operations, [&](const Operation& one) { put_operation(json, forest, one); });
    json.column("merge_points", stage.merge_points, [&](const MergePoint& place) {
      json.begin_object();
      json.member("before", as_integer(place.before));
      put_place(json, place);
      json.end_object();
    });
  }
  json.end_object();
}

void put_trace(JsonWriter& json, const Forest& forest, const Trace& trace, TraceDetail detail) {
  json.begin_object();
  json.member("id", as_integer(trace.id));
  json.member("kind", kind_text(trace));
  json.member("driver", trace.driver);
  json.member("runs", as_integer(trace.runs()));
  json.member("entries", as_integer(trace.entries));
  json.key("aborted");
  json.boolean(trace.is_aborted);
  if (trace.code_start != 0) {
    put_hex(json, "code_start", trace.code_start);
    put_hex(json, "code_end", trace.code_end);
  }
  if (trace.kind == Trace::Kind::kBridge) put_hex(json, "guard", trace.guard);
  if (trace.parent) json.member("parent", as_integer(forest.traces[*trace.parent].id));
  if (const MergePoint* place = trace.first_place(); place != nullptr) {
    json.key("place");
    json.begin_object();
    put_place(json, *place);
    json.end_object();
  }
  json.key("stages");
  json.begin_object();
  for (std::size_t i = 0; i < jitlog::kStageCount; ++i) {
    json.key(jitlog::kStageNames[i]);
    put_stage(json, forest, trace.stages[i], detail);
  }
  json.end_object();
  json.end_object();
}

}  // namespace

std::string render_traces(const Forest& forest, const TraceList& traces, std::size_t limit, const Page& page) {
  Table table({{"trace", Fit::kRight},
               {"kind", Fit::kLeft},
               {"runs", Fit::kRight},
               {"ops", Fit::kRight},
               {"function", Fit::kCutRight},
               {"where", Fit::kCutLeft},
               {"driver", Fit::kLeft},
               {"", Fit::kLeft}});
  const std::size_t shown = limit == 0 ? traces.size() : std::min(limit, traces.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const Trace& trace = forest.traces[traces[i]];
    const MergePoint* place = trace.first_place();
    table.add_row({{{fmt::format("{}", trace.id), Style::kPlain}},
                   {{std::string(kind_text(trace)), Style::kPlain}},
                   {{trace.runs() == 0 ? "·" : format_count(trace.runs()), Style::kPlain}},
                   {{format_count(operations_at_the_end(trace)), Style::kPlain}},
                   {{place == nullptr ? "" : printable(place->function), Style::kStrong}},
                   {{place == nullptr ? "" : path_of(*place, page), Style::kDim}},
                   {{printable(trace.driver), Style::kDim}},
                   {{notes_on(forest, trace), Style::kDim}}});
  }
  const auto loops =
      static_cast<std::size_t>(std::count_if(traces.begin(), traces.end(), [&](jitlog::TraceIndex index) {
        return forest.traces[index].kind == Trace::Kind::kLoop;
      }));
  std::string out = fmt::format("{} and {} · jitlog version {} · {}\n\n", plural(loops, "loop"),
                                plural(traces.size() - loops, "bridge"), forest.version, printable(forest.machine));
  if (!table.empty()) out += table.render(page);
  if (shown < traces.size())
    out += fmt::format("\nnot shown: {} traces (--limit 0 shows all)\n", traces.size() - shown);
  return out + problem_line(forest);
}

std::string render_trace(const Forest& forest, const Trace& trace, const std::vector<StageKind>& stages,
                         const Page& page) {
  std::string out = page.paint(Style::kStrong, fmt::format("{} {}", kind_text(trace), trace.id));
  if (!trace.driver.empty()) out += " · " + printable(trace.driver);
  if (trace.runs() != 0) out += fmt::format(" · {} times", format_count(trace.runs()));
  if (trace.code_start != 0) out += fmt::format(" · machine code {:#x} to {:#x}", trace.code_start, trace.code_end);
  if (const std::string note = notes_on(forest, trace); !note.empty()) out += " · " + note;
  out += "\n";
  for (const StageKind kind : stages) {
    const Stage& stage = trace.stage(kind);
    out += fmt::format("\n{}: {} operations on {}\n", jitlog::kStageNames[static_cast<std::size_t>(kind)],
                       format_count(stage.operations.size()),
                       stage.arguments.empty() ? "nothing" : printable(stage.arguments));
    out += render_stage(forest, trace, kind, page);
  }
  return out + problem_line(forest);
}

std::string jitlog_json(const Forest& forest, const TraceList& traces, TraceDetail detail) {
  std::string out;
  JsonWriter json(out);
  begin_document(json);
  json.member("version", forest.version);
  json.member("bits", forest.is_32bit ? 32 : 64);
  json.member("machine", forest.machine);
  if (!forest.problem.empty()) json.member("problem", forest.problem);
  json.column("traces", traces,
              [&](jitlog::TraceIndex index) { put_trace(json, forest, forest.traces[index], detail); });
  json.column("stitches", forest.stitches, [&](const jitlog::Stitch& stitch) {
    json.begin_object();
    put_hex(json, "guard", stitch.guard);
    put_hex(json, "target", stitch.target);
    json.end_object();
  });
  json.column("redirects", forest.redirects, [&](const jitlog::Redirect& redirect) {
    json.begin_object();
    put_hex(json, "from", redirect.from);
    put_hex(json, "to", redirect.to);
    put_hex(json, "target", redirect.target);
    json.end_object();
  });
  json.end_object();
  return out + "\n";
}

}  // namespace plimsoll::cli
