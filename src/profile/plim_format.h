// profile/plim_format.h: the numbers of the .plim format, shared by reader and writer. docs/format.md is the
// specification; a number here never changes its meaning.
#pragma once

#include <cstdint>
#include <string_view>

namespace plimsoll::profile::plim {

// The first 8 bytes, after PNG's idea: a byte outside ASCII, the name, and line ends that text transfers would spoil.
inline constexpr std::string_view kMagic{"\x89PLIM\r\n\x1a", 8};
inline constexpr std::uint16_t kMajorVersion = 3;     // another major version cannot be read, but for
inline constexpr std::uint16_t kOldMajorVersion = 2;  // whose rows are columns, and whose chunks need no other
inline constexpr std::uint16_t kMinorVersion = 0;     // newer minor versions add sections that older readers skip
inline constexpr std::size_t kFileHeaderSize = 12;    // magic, major, minor; little endian

inline constexpr int kCompressionLevel = 3;  // measured: higher ones gain under 3 % and cost the drain thread
inline constexpr std::uint32_t kLargestChunk = std::uint32_t{64} << 20U;      // raw bytes
inline constexpr std::uint64_t kMostTags = 64;                                // in one set
inline constexpr std::uint64_t kMostRepeatedBytes = std::uint64_t{1} << 30U;  // of names that are in the file once
// Raw bytes of all chunks, and of what their rows take in memory.
inline constexpr std::uint64_t kLargestProfile = std::uint64_t{8} << 30U;
inline constexpr std::int64_t kMostWeight = std::int64_t{1} << 60U;  // nanoseconds of all samples: 36 years

inline constexpr std::uint64_t kLargestDistance = std::uint64_t{1} << 40U;  // of sampled allocations
// Allocations and frees follow each other faster than samples: their times are in units of at most this.
inline constexpr std::int64_t kAllocationUnit = 100;
inline constexpr std::int64_t kLargestBlock = std::int64_t{1} << 48U;

// A chunk holds sections: varint kind, varint length, payload.
enum class Section : std::uint8_t {
  kSession = 1,  // start times and the unit of all times
  kMeta = 2,     // name/value texts
  kStrings = 3,
  kFunctions = 4,
  kFrames = 5,
  kOldStacks = 6,
  kProcesses = 7,
  kOldThreads = 8,  // whole rows; a later row for the same thread replaces it
  kOldSamples = 9,
  kOldCounter = 10,
  kOldMarkers = 11,
  kDrops = 12,  // totals; a later section replaces an earlier one
  kSource = 13,
  kOldProgress = 14,  // end time and CPU time so far; a later section replaces an earlier one
  kEnd = 15,          // the recording was completed
  kTagSets = 16,
  kTraces = 17,     // the JIT's machine code that frames ran as
  kAddresses = 18,  // of machine code that frames were in
  kModules = 19,    // files that it is of
  kAllocations = 20,
  kReleases = 21,
  kExactAllocations = 22,
  kAttachment = 24,
  kAllocationSites = 25,  // of a log of events
  kAllocationEvents = 26,
  kAllocationTypes = 27,  // of what is alive at its end
  kThreadNames = 28,      // patterns
  kMarkerShapes = 29,
  kMarkerTexts = 30,
  kCounterNames = 31,
  kMoves = 33,  // which of the releases were by realloc
  kRows = 32,   // of stacks, threads, samples, markers, counters and progress, which are behind the sections
};

}  // namespace plimsoll::profile::plim
