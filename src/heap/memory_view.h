// heap/memory_view.h: a snapshot in which what the process's memory is used for beside objects has nodes, too.
#pragma once

#include "heap/snapshot.h"

namespace plimsoll::heap {

// Adds nodes that are no objects: buffers outside Python, held by the objects that own them, which are smaller by that;
// and held by a node "[memory]": libraries and other mapped files, threads' stacks, memory of native code, and what the
// allocators have free. Every byte belongs to the innermost that it lies in, so that all sizes together are the memory
// that the process had in use (RSS), as far as objects are in memory. The snapshot itself if it knows nothing of that.
// Before objects are folded.
Snapshot with_memory(Snapshot snapshot);

}  // namespace plimsoll::heap
