// cli/heap_take.h: a heap snapshot of a process from outside, or of one that has ended, from its core file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/console.h"
#include "heap/image_capture.h"

namespace plimsoll::cli {

// What is to be taken, and where it goes.
struct HeapTake {
  std::int32_t pid = 0;
  std::string core;     // or a core file
  std::string program;  // the file of its interpreter, if it is not where it was
  std::string output;
  heap::ImageValues values = heap::ImageValues::kRedacted;
  std::vector<heap::TypeRule> rules;
  std::uint64_t most_megabytes = 0;  // to copy; 0: as much as this machine has available
};

// Takes it, and says what it took. The exit code.
Result<int> take_heap(Console& console, const HeapTake& take);

}  // namespace plimsoll::cli
