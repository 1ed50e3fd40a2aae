// formats/heapgraph/writer.h: a heap snapshot for Perfetto's page and trace processor (heap_graph, .pftrace).
#pragma once

#include <string>

#include "heap/snapshot.h"

namespace plimsoll::formats::heapgraph {

// A trace with one heap graph: sizes of 64 bits, names of references, kinds of roots. What only cycles keep alive is
// reached by no root, as Perfetto has it. About 25 bytes a node.
std::string write(const heap::Snapshot& snapshot);

}  // namespace plimsoll::formats::heapgraph
