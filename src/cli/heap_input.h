// cli/heap_input.h: the snapshot that a command is given, as it is asked to be seen.
#pragma once

#include <span>
#include <string>

#include "base/result.h"
#include "cli/console.h"
#include "heap/snapshot.h"

namespace plimsoll::cli {

// Rules of any kind as people write them: the words themselves, or those of a file, if they name one.
std::string rule_words(const std::string& words);
// Reads a snapshot. A file that is missing or no snapshot is bad input, whatever the system says.
Result<heap::Snapshot> read_heap(const std::string& path);
// The same through views (heap/views.h), each on top of the one before: their words, or a file of them. A view that
// makes no sense is an error before anything is read; of rules for classes that are not there the user is told.
Result<heap::Snapshot> read_heap(Console& console, const std::string& path, std::span<const std::string> views);

// Says so if the file that a snapshot was read from ends early.
void notice_if_incomplete(Console& console, const heap::Snapshot& snapshot, const std::string& path);

}  // namespace plimsoll::cli
