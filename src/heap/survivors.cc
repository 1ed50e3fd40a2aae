#include "heap/survivors.h"

namespace plimsoll::heap {
namespace {

// Whether a snapshot has an object; asked for in the order of addresses.
class Finder {
 public:
  explicit Finder(const Snapshot& snapshot) : snapshot_(snapshot) {}

  bool has(const Snapshot& other, Node object) {
    while (at_ < snapshot_.object_count && snapshot_.address[at_] < other.address[object]) ++at_;
    return at_ < snapshot_.object_count && snapshot_.address[at_] == other.address[object] &&
           snapshot_.type_name(at_) == other.type_name(object);
  }

 private:
  const Snapshot& snapshot_;
  Node at_ = 0;
};

}  // namespace

std::vector<bool> survivors(const Snapshot& first, const Snapshot& second, const Snapshot& third) {
  std::vector<bool> result(third.type.size(), false);
  Finder in_first(first);
  Finder in_second(second);
  for (Node object = 0; object < third.object_count; ++object)
    result[object] = !in_first.has(third, object) && in_second.has(third, object);
  return result;
}

}  // namespace plimsoll::heap
