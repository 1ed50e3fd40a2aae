// cli/render_heap_patterns.h: all ways to an object (heap/path_patterns.h), as text and as JSON.
#pragma once

#include <string>

#include "cli/render_heap.h"

namespace plimsoll::cli {

std::string render_heap_patterns(const HeapView& view, heap::Node node, const HeapOptions& options, const Page& page);
std::string heap_patterns_json(const HeapView& view, heap::Node node, const HeapOptions& options);

}  // namespace plimsoll::cli
