// heap/image_capture.h: a snapshot of a heap from a copy of its process's memory. Nothing runs in the process; what the
// copy says is not trusted.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "heap/image_roots.h"
#include "heap/snapshot_writer.h"
#include "heap/type_rules.h"

namespace plimsoll::heap {

// What is recorded beside types, sizes, references and the names in the program.
enum class ImageValues : std::uint8_t {
  kRedacted,
  kShown,  // the beginning of each str and bytes, and numbers
};

// What a snapshot took.
struct ImageStatistics {
  std::uint64_t objects = 0, edges = 0, lost_edges = 0;
  std::uint64_t guessed = 0;  // objects whose fields are taken for references by how they look
  bool is_cut = false;        // what the collector knows was not found whole: what nothing else leads to is missing
};

// What is known of the process beside its memory; all may be empty.
struct ImageFacts {
  std::vector<Region> regions;
  std::vector<TypeRule> rules;  // beside the built-in ones
};

// Writes all objects of all interpreters, and the end of the file. kUnsupported if objects are laid out otherwise than
// in releases of this version, kBadInput if there is no heap, or one whose references are more than its words.
Result<ImageStatistics> capture_image(const ImageView& view, const ImageRuntime& runtime, ImageValues values,
                                      const ImageFacts& facts, SnapshotWriter& writer);

}  // namespace plimsoll::heap
