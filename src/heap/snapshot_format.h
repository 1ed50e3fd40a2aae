// heap/snapshot_format.h: the numbers of the snapshot file, shared by reader and writer.
// docs/heap-format.md is the specification; a number here never changes its meaning.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace plimsoll::heap::file {

// After that of .plim: a byte outside ASCII, the name, and line ends that text transfers would spoil.
inline constexpr std::string_view kMagic{"\x89PHEAP\r\n", 8};
inline constexpr std::uint16_t kMajorVersion = 2;   // a newer major version cannot be read; version 1 can
inline constexpr std::uint16_t kMinorVersion = 0;   // newer minor versions add sections that older readers skip
inline constexpr std::size_t kFileHeaderSize = 12;  // magic, major, minor; little endian

// Measured on 5 million objects: with the shortest match below, level 1 makes a fresh heap's file 2 % smaller than
// level 3 without, in two thirds of the time, and an old one's likewise.
inline constexpr int kCompressionLevel = 1;
inline constexpr int kShortestMatch = 4;  // most numbers are of 1 to 3 bytes; 2 to 6 % smaller than as the level has it
inline constexpr std::uint32_t kLargestChunk = std::uint32_t{1} << 30U;  // raw bytes: an object with 150 million edges
// A file may unpack to so many times its size, and 64 MiB more: real ones stay below 20, bombs reach thousands.
inline constexpr std::uint64_t kLargestRatio = 100;
inline constexpr std::uint64_t kRatioFree = std::uint64_t{64} << 20U;

// A row of more edges is no pattern for those after it.
inline constexpr std::size_t kLongestPattern = 64;
// Details of a row: 1 and a generation, and this if it has a hash. 0: as the row before of its type.
inline constexpr std::uint8_t kHasHash = 6;
inline constexpr std::uint8_t kNoDetails = 6;  // a generation that is not known, and no hash

inline constexpr std::uint64_t kPoolUnit = 4096;  // pools begin at multiples of it

// A chunk holds sections: varint kind, varint length, payload.
enum class Section : std::uint8_t {
  kMeta = 1,          // name/value texts
  kTypes = 2,         // names of types, numbered on
  kNames = 3,         // names of edges, numbered on
  kObjects = 4,       // version 1: rows of objects, by address
  kNodes = 5,         // version 1: rows of what is no object: the number of the first, then as objects
  kClasses = 6,       // (type, object) for types whose class is in the snapshot
  kEnd = 7,           // objects, nodes, lost edges: the snapshot is complete
  kDetails = 8,       // version 1: more of the rows of a block: generations, hashes of contents
  kPools = 9,         // the small-object allocator's
  kRegions = 10,      // what the process has mapped
  kAllocations = 11,  // of the rows of a block: on which stack
  kStacks = 12,       // those stacks
  kBuffers = 13,      // memory outside Python that objects own
  kSaid = 14,         // what functions of the program said of objects, after the end
  kObjectRows = 15,   // rows of objects, by address
  kNodeRows = 16,     // rows of what is no object: the number of the first, then as objects
};

}  // namespace plimsoll::heap::file
