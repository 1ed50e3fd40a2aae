// formats/memray/records.h: memray's files, cut into their header and records. Versions 12 and 13, of memray 1.19 and
// 1.20: numbers are varints, mostly differences to the last one of their kind; a record's first byte tells its kind and
// holds what else fits into it.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "base/varint.h"

namespace plimsoll::formats::memray {

// What was called; by the numbers in the file.
enum class Allocator : std::uint8_t {
  kPymallocFree = 1,
  kPymallocMalloc = 2,
  kPymallocCalloc = 3,
  kPymallocRealloc = 4,
  kFree = 5,
  kMalloc = 6,
  kRealloc = 7,
  kCalloc = 8,
  kPosixMemalign = 9,
  kAlignedAlloc = 10,
  kMemalign = 11,
  kValloc = 12,
  kPvalloc = 13,
  kMmap = 14,
  kMunmap = 15,
};
constexpr bool is_free(Allocator allocator) {
  return allocator == Allocator::kPymallocFree || allocator == Allocator::kFree;
}

// The latest time that is taken for one: the year 2096, in milliseconds since 1970.
inline constexpr std::int64_t kLatestMs = 4'000'000'000'000;

// The session. Times are milliseconds since 1970; 0 for what cannot be one.
struct Header {
  std::uint32_t python = 0;  // as PY_VERSION_HEX
  bool has_native = false;
  bool is_aggregated = false;  // no events: what was alive at the peak and at the end
  bool traces_python = false;  // Python's allocators, too, and not only whom they call
  std::int64_t start_ms = 0;
  std::int64_t end_ms = 0;
  std::string_view command_line;
  std::int32_t pid = 0;
  std::uint64_t main_thread = 0;
  std::uint64_t skipped_frames = 0;  // memray's own, outermost on the main thread
};

// What a record tells, in which fields of it.
enum class RecordKind : std::uint8_t {
  kEnd,         // of a file that was finished
  kCut,         // there is no more, or it makes no sense
  kIgnored,     // of native frames, objects, mappings
  kMemory,      // time_ms, size: RSS; aggregated: count: bytes that are alive
  kThreadName,  // text: of the current thread
  kThread,      // id: is the current one from here on
  kCode,        // id, text, file, line, table
  kPush,        // id of the code, offset of its instruction: a frame of the current thread
  kPop,         // count
  kAllocation,  // allocator, address, size
  kFrame,       // aggregated: the next frame; id of the code, offset
  kTrace,       // aggregated: the next stack; id of the frame, size: the stack it is called from, from 1 on, or 0
  kLeft,        // aggregated: what a stack left, peak_ and size, count: alive at the end; id: the stack, thread
};

// One record; which fields are set its kind says. Texts are parts of the file.
struct Record {
  RecordKind kind = RecordKind::kCut;
  Allocator allocator{};
  std::uint64_t id = 0, thread = 0, address = 0, size = 0, count = 0, peak_size = 0, peak_count = 0;
  std::int64_t offset = 0, time_ms = 0, line = 0;
  std::string_view text{}, file{}, table{};
};

bool has_magic(std::string_view bytes);

// Reads bytes that may be anything, from the front. Every record takes at least one of them.
class Records {
 public:
  // kBadInput if the header is cut; kUnsupported for other versions.
  static Result<Records> open(std::string_view bytes);

  [[nodiscard]] const Header& header() const { return header_; }
  Record next();

 private:
  explicit Records(std::string_view bytes) : in_(bytes) {}

  Status read_header();
  Record event(std::uint8_t first);
  Record common(std::uint8_t kind);
  Record aggregated(std::uint8_t kind);
  Record code();
  Record left();
  Record allocation(unsigned flags);
  void object(unsigned flags);
  std::uint64_t address(unsigned cached);
  // The last number of a kind, moved by what the file says.
  std::uint64_t moved(std::uint64_t& last) { return last += static_cast<std::uint64_t>(in_.signed_varint()); }
  std::uint64_t fixed(std::size_t size);
  std::int64_t time_ms();

  VarintCursor in_;
  Header header_;
  std::uint64_t last_address_ = 0, last_native_ = 0, last_line_ = 0, ignored_ = 0;
  std::array<std::uint64_t, 15> recent_{};
};

}  // namespace plimsoll::formats::memray
