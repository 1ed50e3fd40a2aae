// formats/vmprof/records.cc: markers and payloads.
#include "formats/vmprof/records.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace plimsoll::formats::vmprof {
namespace {

constexpr unsigned kShort = 4;
constexpr unsigned kLong = 8;
constexpr std::int64_t kLatestNs = 4'100'000'000'000'000'000;  // the year 2099: sums of two times fit into 64 bits

constexpr std::string_view kPyPy = "pypy";

bool is_marker(unsigned char byte) {
  return byte >= static_cast<unsigned char>(Marker::kStack) && byte <= static_cast<unsigned char>(Marker::kObjects);
}

// Nanoseconds of a time in seconds; none if that is no time.
std::optional<std::int64_t> nanoseconds(double seconds) {
  if (!(seconds >= 0 && seconds * 1e9 <= static_cast<double>(kLatestNs))) return std::nullopt;
  return std::llround(seconds * 1e9);
}

// Whether every other entry is a tag. Addresses are larger than those.
bool looks_tagged(std::string_view entries, unsigned address) {
  const std::size_t pair = std::size_t{2} * address;
  if (entries.size() % pair != 0) return false;
  for (std::size_t at = 0; at < entries.size(); at += pair) {
    const std::int64_t tag = number_at(entries, at, address);
    if (tag < static_cast<std::int64_t>(Tag::kCode) || tag > static_cast<std::int64_t>(Tag::kNative)) return false;
  }
  return true;
}

}  // namespace

std::int64_t number_at(std::string_view bytes, std::size_t at, unsigned size) {
  static_assert(std::endian::native == std::endian::little);
  if (size == kShort) {
    std::int32_t value = 0;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    return value;
  }
  std::int64_t value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

Result<std::optional<Layout>> detect_layout(std::string_view bytes) {
  // The second word of the header is 3: where its byte is tells the size of a word and the order of bytes.
  const auto is_three = [&](std::size_t at) { return bytes.size() > at && bytes[at] == 3; };
  const auto is_zero = [&](std::size_t from, std::size_t to) {
    return bytes.size() >= to && bytes.substr(from, to - from).find_first_not_of('\0') == std::string_view::npos;
  };
  const auto big_endian = [](std::string_view bits) {
    return Error{ErrorKind::kUnsupported, "a vmprof profile of a big-endian " + std::string(bits) +
                                              "-bit machine: only little-endian ones can be read"};
  };
  if (!is_zero(0, kShort)) return std::optional<Layout>();
  if (is_three(4) && is_zero(5, 8)) {
    if (!is_zero(8, 12)) return std::optional<Layout>();
    const bool is_windows64 =
        bytes.size() >= kHeaderWords * kShort && number_at(bytes, std::size_t{4} * kShort, kShort) == 1;
    return std::optional(Layout{kShort, is_windows64 ? kLong : kShort});
  }
  if (is_three(7) && is_zero(4, 7)) return big_endian("32");
  if (!is_zero(4, kLong)) return std::optional<Layout>();
  if (is_three(8) && is_zero(9, 24)) return std::optional(Layout{kLong, kLong});
  if (is_three(15) && is_zero(8, 15)) return big_endian("64");
  return std::optional<Layout>();
}

RecordReader::RecordReader(Input input, Layout layout) : bytes_(input.bytes), file_(input.file), layout_(layout) {
  const std::string_view bytes = bytes_;
  const std::size_t header = kHeaderWords * layout.word;
  if (bytes.size() < header) {
    ending_ = Ending::kCut;
    return;
  }
  period_us_ = number_at(bytes, std::size_t{3} * layout.word, layout.word);
  position_ = header;
}

bool RecordReader::next(Record& record) {
  constexpr std::size_t kHeld = std::size_t{8} << 20U;
  if (file_ != nullptr && position_ - put_aside_ > kHeld) put_aside();
  if (ending_ != Ending::kNone) return false;
  return read(record);
}

void RecordReader::put_aside() {
  file_->put_aside(put_aside_, position_);
  put_aside_ = position_;
}

bool RecordReader::damaged() {
  ending_ = Ending::kDamaged;
  return false;
}

bool RecordReader::number(unsigned size, std::int64_t& value) {
  if (bytes_.size() - position_ < size) {
    ending_ = Ending::kCut;
    return false;
  }
  value = number_at(bytes_, position_, size);
  position_ += size;
  return true;
}

bool RecordReader::bytes(std::int64_t size, std::string_view& view) {
  if (size < 0) return damaged();
  if (static_cast<std::uint64_t>(size) > bytes_.size() - position_) {
    ending_ = Ending::kCut;
    return false;
  }
  view = bytes_.substr(position_, static_cast<std::size_t>(size));
  position_ += view.size();
  return true;
}

bool RecordReader::text(std::string_view& view) {
  std::int64_t size = 0;
  return word(size) && bytes(size, view);
}

bool RecordReader::read(Record& record) {
  if (position_ == bytes_.size()) {
    ending_ = Ending::kCut;
    return false;
  }
  const auto marker = static_cast<unsigned char>(bytes_[position_]);
  if (!is_marker(marker)) return damaged();
  ++position_;
  record = Record{};
  record.marker = static_cast<Marker>(marker);
  return read_payload(record);
}

bool RecordReader::read_payload(Record& record) {
  switch (record.marker) {
    case Marker::kStack:
    case Marker::kAllocationStack: return read_stack(record);
    case Marker::kObjects: return read_objects(record);
    case Marker::kName:
    case Marker::kNativeName: return read_name(record);
    case Marker::kMeta: return text(record.name) && text(record.value);
    case Marker::kStartTime: return read_time(record);
    case Marker::kTrailer: return read_trailer(record);
    case Marker::kHeader: return read_header();
    case Marker::kInterpreter: return read_interpreter();
  }
  return damaged();
}

bool RecordReader::read_header() {
  std::string_view version;
  std::string_view size;
  if (has_header_) return damaged();
  if (!bytes(2, version)) return false;
  mode_.version =
      static_cast<std::int16_t>(static_cast<unsigned char>(version[0]) << 8U | static_cast<unsigned char>(version[1]));
  if (mode_.version < 0 || mode_.version > kNewestVersion) return damaged();
  unsigned flags = mode_.version == kVersionMemory ? kFlagMemory : 0;
  if (mode_.version >= kVersionFlags) {
    std::string_view byte;
    if (!bytes(1, byte)) return false;
    flags = static_cast<unsigned char>(byte[0]);
  }
  if (!bytes(1, size) || !bytes(static_cast<unsigned char>(size[0]), mode_.interpreter)) return false;
  mode_.has_memory = (flags & kFlagMemory) != 0;
  mode_.has_native = (flags & kFlagNative) != 0;
  mode_.is_real_time = (flags & kFlagRealTime) != 0;
  // PyPy tags its stacks also where the flag is missing; and tagged stacks have no lines.
  mode_.is_tagged = (flags & kFlagTagged) != 0 || mode_.interpreter == kPyPy;
  mode_.has_lines = (flags & kFlagLines) != 0 && !mode_.is_tagged;
  has_header_ = true;
  return true;
}

bool RecordReader::read_interpreter() {
  std::string_view size;
  if (has_header_) return damaged();
  has_header_ = true;
  return bytes(1, size) && bytes(static_cast<unsigned char>(size[0]), mode_.interpreter);
}

// The count and, in one of the layouts of version 7, the time that stands in its place.
bool RecordReader::read_stack_start(Record& record) {
  if (mode_.version >= kVersionSampleTime && sample_time_ == SampleTime::kUnknown) {
    if (bytes_.size() - position_ < kLong) {
      ending_ = Ending::kCut;
      return false;
    }
    sample_time_ = number_at(bytes_, position_, layout_.word) == 1 ? SampleTime::kAfter : SampleTime::kBefore;
  }
  if (sample_time_ != SampleTime::kBefore) {
    if (!word(record.count)) return false;
    constexpr std::int64_t kMost = 1'000'000'000;
    return (record.count >= 1 && record.count <= kMost) || damaged();
  }
  std::int64_t bits = 0;
  if (!number(kLong, bits)) return false;
  record.time_ns = nanoseconds(std::bit_cast<double>(bits));
  return record.time_ns.has_value() || damaged();
}

bool RecordReader::read_entries(Record& record) {
  std::int64_t depth = 0;
  if (!word(depth)) return false;
  if (depth < 0 || depth > kDeepestStack) return damaged();
  return bytes(depth * layout_.address, record.entries);
}

bool RecordReader::read_stack(Record& record) {
  if (!read_stack_start(record) || !read_entries(record)) return false;
  if (mode_.version < kVersionTags && mode_.interpreter == kPyPy && !record.entries.empty())
    mode_.is_tagged = looks_tagged(record.entries, layout_.address);
  if (mode_.version >= kVersionThreads && !address(record.thread)) return false;
  if (mode_.has_memory && !address(record.memory_kib)) return false;
  if (sample_time_ == SampleTime::kAfter) {
    std::int64_t time_ns = 0;
    if (!number(kLong, time_ns)) return false;
    record.time_ns = std::clamp(time_ns, std::int64_t{0}, kLatestNs);
  }
  if (!mode_.has_memory) skip_stray_memory();
  return true;
}

bool RecordReader::read_objects(Record& record) { return read_stack_start(record) && read_entries(record); }

// Writers on macOS add a memory word that they did not announce. It is one if what follows here cannot be a record, and
// what follows after it can.
void RecordReader::skip_stray_memory() {
  if (!could_start_record(position_) && could_start_record(position_ + layout_.address)) position_ += layout_.address;
}

// Whether a record may begin there: the end of the file counts as one, since anything may have followed.
bool RecordReader::could_start_record(std::size_t at) const {
  if (at >= bytes_.size()) return at == bytes_.size();
  const auto marker = static_cast<unsigned char>(bytes_[at++]);
  if (!is_marker(marker)) return false;
  const std::size_t left = bytes_.size() - at;
  const auto has_size_at = [&](std::size_t distance) {
    if (left < distance + layout_.word) return true;  // cut: it may be one
    const std::int64_t size = number_at(bytes_, at + distance, layout_.word);
    return size >= 0 && static_cast<std::uint64_t>(size) <= left;
  };
  switch (static_cast<Marker>(marker)) {
    case Marker::kStack:
    case Marker::kAllocationStack:
    case Marker::kObjects:
      if (sample_time_ == SampleTime::kBefore) return has_size_at(kLong);
      return left < layout_.word || number_at(bytes_, at, layout_.word) == 1;
    case Marker::kName:
    case Marker::kNativeName: return has_size_at(layout_.address);
    case Marker::kMeta: return has_size_at(0);
    case Marker::kTrailer: return mode_.version < kVersionEndTime || left <= kTimeBytes;
    case Marker::kStartTime: return true;
    case Marker::kHeader:
    case Marker::kInterpreter: return !has_header_;
  }
  return false;
}

bool RecordReader::read_name(Record& record) { return address(record.id) && text(record.name); }

bool RecordReader::read_time(Record& record) {
  if (bytes_.size() - position_ < kTimeBytes) {
    ending_ = Ending::kCut;
    return false;
  }
  const std::int64_t seconds = number_at(bytes_, position_, kLong);
  const std::int64_t micros = number_at(bytes_, position_ + kLong, kLong);
  position_ += kTimeBytes;
  if (seconds >= 0 && seconds <= kLatestNs / 1'000'000'000 && micros >= 0 && micros < 1'000'000)
    record.time_us = seconds * 1'000'000 + micros;
  return true;
}

bool RecordReader::read_trailer(Record& record) {
  if (mode_.version >= kVersionEndTime && !read_time(record)) return false;
  if (mode_.version == 0) record.value = bytes_.substr(position_);
  ending_ = Ending::kTrailer;
  return true;
}

}  // namespace plimsoll::formats::vmprof
