// formats/heaplines/writer.h: a heap snapshot as lines of JSON (NDJSON), for jq and for databases.
#pragma once

#include <string>

#include "heap/snapshot.h"

namespace plimsoll::formats::heaplines {

// The first line has the facts of the snapshot, each other an object or root with what it holds. docs/json.md tells
// what the members are.
std::string write(const heap::Snapshot& snapshot);

}  // namespace plimsoll::formats::heaplines
