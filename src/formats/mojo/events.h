// formats/mojo/events.h: the bytes of a MOJO file -> its events, one after the other.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace plimsoll::formats::mojo {

inline constexpr std::string_view kMagic = "MOJ";
inline constexpr std::int64_t kVersionColumns = 2;       // from here on a frame has more than its line
inline constexpr std::int64_t kVersionInterpreters = 3;  // from here on a stack has an interpreter
inline constexpr std::int64_t kNewestVersion = 4;

// The events, by the numbers in the file.
enum class Event : std::uint8_t {
  kMetadata = 1,        // texts: name and value
  kStack = 2,           // numbers: process, interpreter (from version 3 on); text: thread
  kFrame = 3,           // numbers: key, file, function, line, and from version 2 on last line, column, last column
  kInvalidFrame = 4,    //
  kFrameReference = 5,  // number: key
  kKernelFrame = 6,     // text: function
  kGarbageCollection = 7,
  kIdle = 8,
  kTime = 9,     // number: microseconds
  kMemory = 10,  // number: bytes, more or less than before
  kString = 11,  // number: key; text
  kStringReference = 12,
  kStackRepeat = 13,  // the thread's stack before, below the frames of this one
  kTaskStack = 14,    // numbers: task, name; its frames and a time follow
  kTaskWaiter = 15,   // numbers: task, who waits for it
};

// An event with what belongs to it, in the order of the file.
struct Record {
  Event event{};
  std::array<std::int64_t, 7> numbers{};
  std::string_view name;  // the first text
  std::string_view value;
};

// Reads events until the end, or bytes that are none. The bytes may be hostile.
class EventReader {
 public:
  // `bytes` begin with kMagic.
  explicit EventReader(std::string_view bytes);

  [[nodiscard]] std::int64_t version() const { return version_; }
  // The next event; false if there is none.
  bool next(Record& record);
  // Where the event begins that was not read.
  [[nodiscard]] std::size_t position() const { return start_; }
  // Whether the bytes there are a part of an event, or make no sense.
  [[nodiscard]] bool is_cut() const { return is_cut_; }
  [[nodiscard]] bool is_damaged() const { return is_damaged_; }

 private:
  bool read(Record& record);
  bool numbers(Record& record, std::size_t count);
  // Numbers have 6 bits and a sign in their first byte, and 7 in each that follows.
  bool number(std::int64_t& value);
  bool text(std::string_view& value);
  bool cut() {
    is_cut_ = true;
    return false;
  }
  bool damaged() {
    is_damaged_ = true;
    return false;
  }

  std::string_view bytes_;
  std::size_t position_ = kMagic.size();
  std::size_t start_ = 0;
  std::int64_t version_ = 0;
  bool is_cut_ = false;
  bool is_damaged_ = false;
};

}  // namespace plimsoll::formats::mojo
