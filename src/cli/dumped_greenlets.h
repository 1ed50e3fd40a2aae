// cli/dumped_greenlets.h: greenlets in words, those that are suspended at the same place as one.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "remote/dump.h"

namespace plimsoll::cli {

// Greenlets of one thread and parent with the same frames: numbers in GreenletDump::greenlets.
struct GreenletGroup {
  std::vector<std::size_t> members;
};

// In the order of the first of each. A greenlet with variables stands alone.
std::vector<GreenletGroup> groups_of(const remote::GreenletDump& dump);

// "greenlet Worker 0x7f12 "fetch": suspended, of thread 42, child of Hub 0x7f00"; "3 greenlets: suspended, ..."
std::string heading_of(const GreenletGroup& group, const remote::GreenletDump& dump);
// "Worker 0x7f12 "fetch", Worker 0x7f34, ... and 93 more"
std::string names_of(const GreenletGroup& group, const remote::GreenletDump& dump);

// In JSON: "running", "suspended", "new".
std::string_view text(remote::DumpedGreenlet::State state);

}  // namespace plimsoll::cli
