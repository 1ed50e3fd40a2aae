// debuginfo/unpacked.h: how much what is in a file becomes when libdw reads it, before it does.
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <map>

namespace plimsoll::debuginfo {

// That is enough for any compiler's files; without compression they are not unpacked, but read where they are.
inline constexpr std::uint64_t kMostUnpacked = std::uint64_t{2} << 30U;

// How many bytes the compressed sections of an open ELF file say that they become: libdw unpacks those of debug
// information all at once, each up to a thousand times of what it takes in the file.
std::uint64_t unpacked_bytes(int descriptor);

// Which tables of lines are read. A byte of one is a line, and a line takes a hundred bytes.
class LineTables {
 public:
  // Whether the table of this unit may be read: it, and all that were allowed before, are no longer than any
  // compiler's.
  bool allow(Dwarf_Die& unit);

 private:
  static constexpr std::uint64_t kLargest = std::uint64_t{16} << 20U, kLargestSum = std::uint64_t{128} << 20U;
  std::map<const void*, bool> known_;  // by the unit
  std::uint64_t sum_ = 0;
};

}  // namespace plimsoll::debuginfo
