// cli/render_heap.h: heap snapshots as text and as JSON.
#pragma once

#include <string>
#include <vector>

#include "cli/terminal.h"
#include "heap/analysis.h"
#include "heap/paths.h"
#include "heap/snapshot.h"
#include "heap/suspects.h"

namespace plimsoll::cli {

// The order of `heap show types` and `groups`.
enum class HeapSort { kSize, kRetained, kCount };

// What is shown of a snapshot's views.
struct HeapOptions {
  HeapSort sort = HeapSort::kSize;
  std::size_t limit = 30;  // rows; 0 = all
  heap::TreeLimits tree;
};

// A snapshot with what was computed of it.
struct HeapView {
  const heap::Snapshot& snapshot;
  const heap::Dominance& dominance;
};

std::string render_heap_types(const HeapView& view, const HeapOptions& options, const Page& page);
std::string render_heap_tree(const HeapView& view, heap::Node top, const HeapOptions& options, const Page& page);
std::string render_heap_paths(const HeapView& view, heap::Node node, const HeapOptions& options, const Page& page);
std::string render_heap_suspects(const HeapView& view, const std::vector<heap::Suspect>& suspects, const Page& page);
std::string render_heap_changes(const heap::Snapshot& before, const heap::Snapshot& after, const HeapOptions& options,
                                const Page& page);
// What would be freed with all of `chosen`, which are called `name`, by class.
std::string render_heap_retained(const HeapView& view, const heap::NodeSet& chosen, std::string_view name,
                                 const HeapOptions& options, const Page& page);
// `rows` are of survivors (heap/survivors.h), and `view` of the third snapshot.
std::string render_heap_survivors(const HeapView& view, const std::vector<heap::TypeRow>& rows,
                                  const HeapOptions& options, const Page& page);

// The same as JSON (docs/json.md).
std::string heap_types_json(const HeapView& view, const HeapOptions& options);
std::string heap_tree_json(const HeapView& view, heap::Node top, const HeapOptions& options);
std::string heap_paths_json(const HeapView& view, heap::Node node, const HeapOptions& options);
std::string heap_suspects_json(const HeapView& view, const std::vector<heap::Suspect>& suspects);
std::string heap_changes_json(const heap::Snapshot& before, const heap::Snapshot& after, const HeapOptions& options);
std::string heap_retained_json(const HeapView& view, const heap::NodeSet& chosen, std::string_view name,
                               const HeapOptions& options);
std::string heap_survivors_json(const HeapView& view, const std::vector<heap::TypeRow>& rows,
                                const HeapOptions& options);

}  // namespace plimsoll::cli
