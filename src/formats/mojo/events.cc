// formats/mojo/events.cc: what follows each event's number.
#include "formats/mojo/events.h"

namespace plimsoll::formats::mojo {

EventReader::EventReader(std::string_view bytes) : bytes_(bytes) {
  if (!number(version_)) version_ = 0;
}

bool EventReader::next(Record& record) {
  start_ = position_;
  if (is_cut_ || is_damaged_ || position_ >= bytes_.size()) return false;
  record.event = static_cast<Event>(bytes_[position_++]);
  return read(record);
}

bool EventReader::read(Record& record) {
  switch (record.event) {
    case Event::kMetadata: return text(record.name) && text(record.value);
    case Event::kStack: return numbers(record, version_ >= kVersionInterpreters ? 2 : 1) && text(record.name);
    case Event::kFrame: return numbers(record, version_ >= kVersionColumns ? 7 : 4);
    case Event::kKernelFrame: return text(record.name);
    case Event::kString: return numbers(record, 1) && text(record.name);
    case Event::kFrameReference:
    case Event::kTime:
    case Event::kMemory:
    case Event::kStringReference: return numbers(record, 1);
    case Event::kTaskStack:
    case Event::kTaskWaiter: return numbers(record, 2);
    case Event::kInvalidFrame:
    case Event::kGarbageCollection:
    case Event::kIdle:
    case Event::kStackRepeat: return true;
  }
  return damaged();
}

bool EventReader::numbers(Record& record, std::size_t count) {
  record.numbers.fill(0);
  for (std::size_t i = 0; i < count; ++i)
    if (!number(record.numbers[i])) return false;
  return true;
}

bool EventReader::number(std::int64_t& value) {
  constexpr unsigned kLastShift = 62;  // 6 bits, then 7 in each of eight bytes; a ninth has what is left of 64
  std::uint64_t magnitude = 0;
  unsigned shift = 0;
  bool is_negative = false;
  for (bool goes_on = true; goes_on;) {
    if (position_ >= bytes_.size()) return cut();
    const auto byte = static_cast<unsigned char>(bytes_[position_++]);
    const bool is_first = shift == 0;
    if (is_first) is_negative = (byte & 0x40U) != 0;
    magnitude |= static_cast<std::uint64_t>(byte & (is_first ? 0x3fU : 0x7fU)) << shift;
    goes_on = (byte & 0x80U) != 0;
    shift += is_first ? 6 : 7;
    if (goes_on && shift > kLastShift) return damaged();
  }
  value = static_cast<std::int64_t>(is_negative ? 0 - magnitude : magnitude);
  return true;
}

bool EventReader::text(std::string_view& value) {
  const std::size_t end = bytes_.find('\0', position_);
  if (end == std::string_view::npos) return cut();
  value = bytes_.substr(position_, end - position_);
  position_ = end + 1;
  return true;
}

}  // namespace plimsoll::formats::mojo
