// heap/groups.h: objects put together by other things than their class.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "heap/analysis.h"
#include "heap/places.h"

namespace plimsoll::heap {

// What objects are put together by.
enum class GroupBy : std::uint8_t {
  kPlace,            // where they are held: heap/places.h
  kReferrers,        // the classes of what holds them
  kModule,           // that of their class
  kGeneration,       // of the garbage collector
  kSize,             // between powers of two
  kAllocationSite,   // the line that allocated them
  kAllocationStack,  // likewise, with all who called it
};
// By its name, one of group_names().
std::optional<GroupBy> group_by(std::string_view name);
std::vector<std::string_view> group_names();

// A group. At least `retained` would be freed with all of it; as TypeRow.
struct GroupRow {
  std::string name;
  std::uint64_t count = 0, size = 0, retained = 0;
};
// The groups of the objects that are chosen, the largest `size` first.
std::vector<GroupRow> groups(const Snapshot& snapshot, const Dominance& dominance, GroupBy by, const NodeSet& chosen);

std::string_view generation_name(Generation generation);

}  // namespace plimsoll::heap
