// cli/render_heap_memory.h: what a heap wastes, and what its process's memory is used for, as text and as JSON.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "cli/render_heap.h"
#include "heap/groups.h"

namespace plimsoll::cli {

std::string render_heap_duplicates(const heap::Snapshot& snapshot, const HeapOptions& options, const Page& page);
std::string render_heap_waste(const heap::Snapshot& snapshot, const HeapOptions& options, const Page& page);
std::string render_heap_arenas(const heap::Snapshot& snapshot, const HeapOptions& options, const Page& page);
std::string render_heap_rss(const heap::Snapshot& snapshot, const Page& page);
// Of the objects that are chosen.
std::string render_heap_groups(const HeapView& view, heap::GroupBy by, const heap::NodeSet& chosen,
                               const HeapOptions& options, const Page& page);

// The same as JSON (docs/json.md): rows of the table of that name (docs/heap.md), at most `limit` of them (0: all).
Result<std::string> heap_table_json(const heap::Snapshot& snapshot, std::string_view view, std::string_view table,
                                    std::size_t limit);
std::string heap_groups_json(const HeapView& view, heap::GroupBy by, const heap::NodeSet& chosen,
                             const HeapOptions& options);

}  // namespace plimsoll::cli
