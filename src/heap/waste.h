// heap/waste.h: containers that are empty, or have room for more than they hold.
#pragma once

#include <cstdint>
#include <vector>

#include "heap/places.h"

namespace plimsoll::heap {

// What is wasted.
enum class WasteKind : std::uint8_t {
  kEmpty,     // all of a container in which there is nothing
  kTooLarge,  // the room of a list, dict or set beyond the least that would hold what is in it
};

// Containers of one class that are held at the same place.
struct Waste {
  WasteKind kind{};
  std::uint32_t type = 0;
  std::uint32_t place = 0;  // see Places
  std::uint64_t count = 0;
  std::uint64_t size = 0;   // bytes of all
  std::uint64_t waste = 0;  // thereof
};

// All that there are, the most waste first.
std::vector<Waste> waste(const Snapshot& snapshot, const Places& places);

// Bytes of the least table of a dict that has so many entries, by the rules of CPython.
std::uint64_t least_dict_table(std::uint64_t entries, bool has_text_keys_only, unsigned minor_version);
// Of the table that a set has beside itself.
std::uint64_t least_set_table(std::uint64_t entries);

}  // namespace plimsoll::heap
