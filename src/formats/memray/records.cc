#include "formats/memray/records.h"

#include <algorithm>
#include <string>

namespace plimsoll::formats::memray {
namespace {

constexpr std::string_view kMagic("memray\0", 7);
constexpr std::uint64_t kOldest = 12, kNewest = 13;

// First bytes of records: the highest bit that is set tells the kind, and the lower ones are flags.
constexpr unsigned kAllocationBit = 128, kPushBit = 64, kObjectBit = 32, kPopBit = 16;
enum EventKind : std::uint8_t { kFiller = 0, kTrailer = 1, kMemoryRecord = 2 };
// Of both sorts of files.
enum CommonKind : std::uint8_t {
  kNativeFrame = 5,
  kMapStart = 6,
  kSegmentHeader = 7,
  kSegment = 8,
  kThreadRecord = 10,
  kContextSwitch = 12,
  kCodeObject = 14,
};
enum AggregatedKind : std::uint8_t {
  kSnapshot = 1,
  kAggregatedAllocation = 2,
  kTraceIndex = 3,
  kFrameIndex = 4,
  kSurvivor = 13,
  kAggregatedTrailer = 15,
};

}  // namespace

bool has_magic(std::string_view bytes) { return bytes.starts_with(kMagic); }

Result<Records> Records::open(std::string_view bytes) {
  Records records(bytes);
  PLIMSOLL_TRY(records.read_header());
  return records;
}

std::uint64_t Records::fixed(std::size_t size) {
  std::uint64_t value = 0;
  const std::string_view bytes = in_.take(size);
  for (std::size_t i = bytes.size(); i > 0; --i) value = value << 8U | static_cast<unsigned char>(bytes[i - 1]);
  return value;
}

std::int64_t Records::time_ms() {
  const std::uint64_t time = fixed(8);
  return time <= static_cast<std::uint64_t>(kLatestMs) ? static_cast<std::int64_t>(time) : 0;
}

Status Records::read_header() {
  in_.take(kMagic.size());
  const std::uint64_t version = fixed(4);
  if (!in_.failed() && (version < kOldest || version > kNewest))
    return Error{ErrorKind::kUnsupported, "a file of memray, in version " + std::to_string(version) +
                                              " of its format: 12 and 13 can be read (memray 1.19 and 1.20); memray's "
                                              "own commands read the others (memray table, memray flamegraph)"};
  header_.python = static_cast<std::uint32_t>(fixed(4));
  header_.has_native = fixed(1) != 0;
  header_.is_aggregated = fixed(1) == 1;
  fixed(8);  // the number of allocations
  fixed(8);  // the number of frames
  header_.start_ms = time_ms();
  header_.end_ms = time_ms();
  header_.command_line = in_.zero_terminated();
  header_.pid = static_cast<std::int32_t>(fixed(4));
  header_.main_thread = fixed(8);
  header_.skipped_frames = fixed(8);
  fixed(1);  // what allocator Python has
  header_.traces_python = fixed(1) != 0;
  fixed(1);  // whether the lives of objects were traced
  if (version >= 13) {
    in_.zero_terminated();  // where the standard library is, site-packages, sys.path
    for (int list = 0; list < 2; ++list)
      while (!in_.zero_terminated().empty()) {
      }
  }
  if (in_.failed()) return Error{ErrorKind::kBadInput, "a file of memray that is cut within its header"};
  return Ok{};
}

Record Records::next() {
  if (in_.at_end()) return {};
  const auto first = static_cast<std::uint8_t>(fixed(1));
  Record record = header_.is_aggregated ? aggregated(first) : event(first);
  if (in_.failed()) return {};
  return record;
}

Record Records::event(std::uint8_t first) {
  if ((first & kAllocationBit) != 0) return allocation(first & (kAllocationBit - 1));
  if ((first & kPushBit) != 0) {
    Record record{.kind = RecordKind::kPush, .id = in_.varint()};
    record.offset = in_.signed_varint();
    return record;
  }
  if ((first & kObjectBit) != 0) {
    object(first & (kObjectBit - 1));
    return {.kind = RecordKind::kIgnored};
  }
  if ((first & kPopBit) != 0) return {.kind = RecordKind::kPop, .count = (first & (kPopBit - 1)) + std::uint64_t{1}};
  switch (first) {
    case kFiller: return {.kind = RecordKind::kIgnored};
    case kTrailer: return {.kind = RecordKind::kEnd};
    case kMemoryRecord: {
      Record record{.kind = RecordKind::kMemory, .size = in_.varint()};
      record.time_ms = static_cast<std::int64_t>(in_.bounded(INT64_MAX));
      return record;
    }
    default: return common(first);
  }
}

Record Records::common(std::uint8_t kind) {
  switch (kind) {
    case kNativeFrame:
      moved(ignored_);
      moved(ignored_);
      return {.kind = RecordKind::kIgnored};
    case kMapStart: return {.kind = RecordKind::kIgnored};
    case kSegmentHeader:
      in_.zero_terminated();
      in_.varint();
      fixed(8);
      return {.kind = RecordKind::kIgnored};
    case kSegment:
      fixed(8);
      in_.varint();
      return {.kind = RecordKind::kIgnored};
    case kThreadRecord: return {.kind = RecordKind::kThreadName, .text = in_.zero_terminated()};
    case kContextSwitch: return {.kind = RecordKind::kThread, .id = fixed(8)};
    case kCodeObject: return code();
    default: return {};
  }
}

Record Records::code() {
  Record record{.kind = RecordKind::kCode, .id = in_.varint()};
  record.text = in_.zero_terminated();
  record.file = in_.zero_terminated();
  record.line = static_cast<std::int64_t>(moved(last_line_));
  record.table = in_.bytes();
  return record;
}

// Addresses are told in units of 8 bytes; the last ones by their places in a list.
std::uint64_t Records::address(unsigned cached) {
  if (cached < recent_.size()) return recent_[cached];
  std::shift_right(recent_.begin(), recent_.end(), 1);
  return recent_[0] = moved(last_address_) << 3U;
}

Record Records::allocation(unsigned flags) {
  Record record{.kind = RecordKind::kAllocation};
  record.address = address(flags >> 3U & 15U);
  const std::uint64_t allocator = (flags & 7U) != 0 ? flags & 7U : fixed(1);
  if (allocator == 0 || allocator > static_cast<std::uint8_t>(Allocator::kMunmap)) return {};
  record.allocator = static_cast<Allocator>(allocator);
  if (is_free(record.allocator)) return record;
  if (header_.has_native) moved(last_native_);
  record.size = in_.varint();
  return record;
}

void Records::object(unsigned flags) {
  address(flags >> 1U & 15U);
  if (header_.has_native && (flags & 1U) != 0) moved(last_native_);
}

Record Records::aggregated(std::uint8_t kind) {
  Record record;
  switch (kind) {
    case kSnapshot:
      record = {.kind = RecordKind::kMemory};
      record.time_ms = time_ms() - header_.start_ms;
      record.size = fixed(8);
      record.count = fixed(8);
      return record;
    case kAggregatedAllocation: return left();
    case kTraceIndex:
      record = {.kind = RecordKind::kTrace, .id = in_.varint()};
      record.size = in_.varint();
      return record;
    case kFrameIndex:
      in_.varint();  // its number: they come in order
      record = {.kind = RecordKind::kFrame, .id = in_.varint()};
      record.offset = in_.signed_varint();
      fixed(1);
      return record;
    case kSurvivor:
      in_.varint();
      if (header_.has_native) in_.varint();
      return {.kind = RecordKind::kIgnored};
    case kAggregatedTrailer: return {.kind = RecordKind::kEnd};
    default: return common(kind);
  }
}

// A struct as it was in memory.
Record Records::left() {
  Record record{.kind = RecordKind::kLeft};
  record.thread = fixed(8);
  record.allocator = static_cast<Allocator>(std::clamp<std::uint64_t>(fixed(8) & 255U, 1, 15));
  fixed(8);  // the native stack
  record.id = fixed(8);
  fixed(8);  // the mappings that the native stack is of
  record.peak_count = fixed(8);
  record.count = fixed(8);
  record.peak_size = fixed(8);
  record.size = fixed(8);
  return record;
}

}  // namespace plimsoll::formats::memray
