// cli/render_jitlog.h: a forest of traces, and one trace, as text and as JSON.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/terminal.h"
#include "jitlog/forest.h"

namespace plimsoll::cli {

// Traces that a report is about, in the order of the report.
using TraceList = std::vector<jitlog::TraceIndex>;

// A line per trace, at most `limit` of them (0 = all), and how many there are.
std::string render_traces(const jitlog::Forest& forest, const TraceList& traces, std::size_t limit, const Page& page);

// The operations of a trace's stages between the lines of the program that they come from.
std::string render_trace(const jitlog::Forest& forest, const jitlog::Trace& trace,
                         const std::vector<jitlog::StageKind>& stages, const Page& page);

// Whether the operations themselves are wanted, or their numbers.
enum class TraceDetail : std::uint8_t { kNumbers, kOperations };
std::string jitlog_json(const jitlog::Forest& forest, const TraceList& traces, TraceDetail detail);

}  // namespace plimsoll::cli
