// formats/vmprof/format.h: the numbers of vmprof's profile format, shared by reader and writer.
//
// A file is a header of five words, then records: a marker byte and a payload. All numbers are little endian but the
// version. There are two sizes of integers: a word (C's long) and an address.
#pragma once

#include <cstddef>
#include <cstdint>

namespace plimsoll::formats::vmprof {

// What a record is: its first byte.
enum class Marker : std::uint8_t {
  kStack = 1,
  kName = 2,  // of a code object
  kTrailer = 3,
  kInterpreter = 4,  // version 0 has it where later ones have kHeader
  kHeader = 5,
  kStartTime = 6,
  kMeta = 7,
  kNativeName = 8,
  kAllocationStack = 9,  // of PyPy's allocation sampling
  kObjects = 10,         // what became of the sampled objects
};

inline constexpr std::int64_t kMicrosecond = 1'000;  // in nanoseconds: times in a file are in these

// What each version adds.
inline constexpr int kVersionThreads = 1;
inline constexpr int kVersionTags = 2;    // PyPy's stacks are tagged; earlier ones show it by their entries
inline constexpr int kVersionMemory = 3;  // samples have the memory in use; in this version only
inline constexpr int kVersionFlags = 4;   // ... from here on if a flag says so
inline constexpr int kVersionEndTime = 5;
inline constexpr int kVersionStartTime = 6;
inline constexpr int kVersionSampleTime = 7;  // in one of two layouts, see Layout::SampleTime
inline constexpr int kNewestVersion = kVersionSampleTime;

inline constexpr std::uint8_t kFlagMemory = 1;
inline constexpr std::uint8_t kFlagLines = 2;
inline constexpr std::uint8_t kFlagNative = 4;
inline constexpr std::uint8_t kFlagTagged = 8;
inline constexpr std::uint8_t kFlagRealTime = 16;

inline constexpr std::int64_t kDeepestStack = 65536;  // entries; writers have far smaller buffers
inline constexpr std::size_t kHeaderWords = 5;
inline constexpr std::size_t kTimeBytes = 24;  // seconds, microseconds, zone: the same for all sizes of words

// Virtual code addresses of version 0: the upper 16 bits.
inline constexpr std::uint64_t kVirtualCPython = 0x7000;
inline constexpr std::uint64_t kVirtualPyPy = 0x7700;

// The kind of an entry in a tagged stack (PyPy).
enum class Tag : std::uint8_t {
  kCode = 1,       // interpreted
  kBlackhole = 2,  // the slow interpreter that runs from a failed guard to the end of its trace
  kJitted = 3,     // as machine code
  kTracing = 4,    // being traced and compiled
  kGc = 5,
  kAssembler = 6,  // the address of the machine code that the following kJitted entries are in
  kNative = 7,
};

}  // namespace plimsoll::formats::vmprof
