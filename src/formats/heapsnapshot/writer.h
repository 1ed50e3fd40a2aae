// formats/heapsnapshot/writer.h: a heap snapshot for Chrome's DevTools (.heapsnapshot).
#pragma once

#include <string>

#include "heap/snapshot.h"

namespace plimsoll::formats::heapsnapshot {

// The file's bytes: one JSON object, about 50 bytes a node. DevTools shows classes with retained sizes, retainers with
// the names of edges, and compares two snapshots of one process, as an object's id follows from its address.
std::string write(const heap::Snapshot& snapshot);

}  // namespace plimsoll::formats::heapsnapshot
