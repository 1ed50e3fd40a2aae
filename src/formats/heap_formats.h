// formats/heap_formats.h: the foreign formats of heap snapshots.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "heap/snapshot.h"

namespace plimsoll::formats {

// Which one.
enum class HeapFormat : std::uint8_t {
  kHeapSnapshot,  // Chrome's DevTools
  kPerfetto,      // heap_graph of a Perfetto trace
  kLines,         // NDJSON
};
// By its name: "heapsnapshot", "perfetto" or "ndjson".
std::optional<HeapFormat> heap_format_named(std::string_view name);
// By how a file's name ends: .heapsnapshot, .pftrace or .perfetto-trace, .ndjson or .jsonl.
std::optional<HeapFormat> heap_format_of(std::string_view path);

// The file's bytes.
std::string write_heap(const heap::Snapshot& snapshot, HeapFormat format);

}  // namespace plimsoll::formats
