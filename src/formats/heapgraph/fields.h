// formats/heapgraph/fields.h: the field numbers of Perfetto's trace packets and heap_graph.proto that the writer uses.
#pragma once

#include <protozero/types.hpp>

namespace plimsoll::formats::heapgraph {

// A whole file.
enum class TraceField : protozero::pbf_tag_type { kPacket = 1 };

// A packet of a trace.
enum class PacketField : protozero::pbf_tag_type {
  kProcessTree = 2,  // ProcessTree
  kTimestamp = 8,    // uint64, nanoseconds
  kSequenceId = 10,  // uint32: who wrote it
  kHeapGraph = 56    // HeapGraph
};

// Processes.
enum class ProcessTreeField : protozero::pbf_tag_type { kProcess = 1 };
// A process.
enum class ProcessField : protozero::pbf_tag_type { kPid = 1, kParent = 2, kCommandLine = 3 };

// A part of a heap; parts of one heap follow each other.
enum class GraphField : protozero::pbf_tag_type {
  kPid = 1,        // int32
  kObject = 2,     // Object, repeated
  kFieldName = 4,  // Interned, repeated
  kContinued = 5,  // bool: there is another part
  kIndex = 6,      // uint64: number of the part
  kRoot = 7,       // Root, repeated
  kType = 9        // Type, repeated
};

// An object. References are two columns of one length.
enum class ObjectField : protozero::pbf_tag_type {
  kId = 1,        // uint64, not 0
  kTypeId = 2,    // uint64
  kSelfSize = 3,  // uint64, bytes
  kFieldIds = 4,  // uint64, packed: by which field each is held
  kObjectIds = 5  // uint64, packed
};

// A name, and its number.
enum class InternedField : protozero::pbf_tag_type { kId = 1, kText = 2 };

// A class.
enum class TypeField : protozero::pbf_tag_type { kId = 1, kName = 3 };

// Objects that are alive in themselves, and of what kind of root they are.
enum class RootField : protozero::pbf_tag_type { kObjectIds = 1, kKind = 2 };
// The kinds that are used; their names there are Java's.
enum RootKind : int { kUnknownRoot = 0, kNativeRoot = 1, kModuleRoot = 5, kThreadRoot = 8, kInterpreterRoot = 13 };

}  // namespace plimsoll::formats::heapgraph
