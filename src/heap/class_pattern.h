// heap/class_pattern.h: classes by name or pattern, with what is derived from them.
#pragma once

#include <string>
#include <vector>

#include "heap/snapshot.h"

namespace plimsoll::heap {

// Whether a name is what a pattern of the shell's says: "app.*".
bool matches_pattern(const std::string& name, const std::string& pattern);

// By type of the snapshot: the names of its bases, by what the class holds as its __mro__; of a view as its first
// snapshot had them, as a class in a view holds what its attributes are by the same edges.
std::vector<std::vector<std::string>> base_names(const Snapshot& snapshot);

// Which class is derived from which, as far as the snapshot knows.
class ClassTree {
 public:
  explicit ClassTree(const Snapshot& snapshot);
  // Whether the class of this type, or one of its bases, has such a name.
  [[nodiscard]] bool matches(std::uint32_t type, const std::string& pattern) const;

 private:
  const Snapshot& snapshot_;
  std::vector<std::vector<std::string>> bases_;  // by type: names
};

}  // namespace plimsoll::heap
