// debuginfo/split_unit.h: what a unit has elsewhere, in a .dwo file.
#pragma once

#include <elfutils/libdw.h>

#include <string>

namespace plimsoll::debuginfo {

// The entry of the split unit that a skeleton names; its `addr` is null if there is none. `directory` is that of the
// file with the skeleton. libdw opens whatever has the name, and waits for ever if that is a FIFO: so only what is a
// regular file is left to it.
Dwarf_Die split_part_of(Dwarf_CU* unit, Dwarf_Die& skeleton, const std::string& directory);

}  // namespace plimsoll::debuginfo
