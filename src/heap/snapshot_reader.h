// heap/snapshot_reader.h: snapshot bytes -> Snapshot. The format is specified in docs/heap-format.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "heap/snapshot.h"

namespace plimsoll::heap {

// Whether a second thread reads: of a long file, on a machine with more than one processor.
enum class ReadBeside : std::uint8_t { kIfWorthIt, kAlways, kNever };

// Reads the bytes of a snapshot file, which may be hostile: sizes are checked before anything is allocated, and every
// number that points somewhere is checked. A file that is cut or damaged gives what is before that, with complete ==
// false. Bytes that are no snapshot, or one of a newer major version, are an error (kBadInput).
Result<Snapshot> read_snapshot(std::string_view bytes, ReadBeside beside = ReadBeside::kIfWorthIt);

// Opens and reads a file. Errors name the path.
Result<Snapshot> read_snapshot_file(const std::string& path);

// Adds the last nodes: "[native code]", which holds what no root reaches but somebody holds a reference to;
// "[garbage]", which holds what only cycles keep alive; and the root of all. read_snapshot has done it.
void add_roots(Snapshot& snapshot);

}  // namespace plimsoll::heap
