#include "formats/heap_formats.h"

#include <array>
#include <utility>

#include "formats/heapgraph/writer.h"
#include "formats/heaplines/writer.h"
#include "formats/heapsnapshot/writer.h"

namespace plimsoll::formats {

std::optional<HeapFormat> heap_format_named(std::string_view name) {
  if (name == "heapsnapshot") return HeapFormat::kHeapSnapshot;
  if (name == "perfetto") return HeapFormat::kPerfetto;
  if (name == "ndjson") return HeapFormat::kLines;
  return std::nullopt;
}

std::optional<HeapFormat> heap_format_of(std::string_view path) {
  static constexpr std::array<std::pair<std::string_view, HeapFormat>, 5> kEndings{
      {{".heapsnapshot", HeapFormat::kHeapSnapshot},
       {".pftrace", HeapFormat::kPerfetto},
       {".perfetto-trace", HeapFormat::kPerfetto},
       {".ndjson", HeapFormat::kLines},
       {".jsonl", HeapFormat::kLines}}};
  for (const auto& [ending, format] : kEndings)
    if (path.ends_with(ending)) return format;
  return std::nullopt;
}

std::string write_heap(const heap::Snapshot& snapshot, HeapFormat format) {
  switch (format) {
    case HeapFormat::kHeapSnapshot: return heapsnapshot::write(snapshot);
    case HeapFormat::kPerfetto: return heapgraph::write(snapshot);
    case HeapFormat::kLines: return heaplines::write(snapshot);
  }
  return {};
}

}  // namespace plimsoll::formats
