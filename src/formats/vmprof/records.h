// formats/vmprof/records.h: the bytes of a vmprof profile -> its records, one after the other.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/mapped_file.h"
#include "base/result.h"
#include "formats/vmprof/format.h"

namespace plimsoll::formats::vmprof {

// How the file's numbers are stored.
struct Layout {
  unsigned word = 8;     // bytes of a word: 8, or 4 for 32-bit programs and for Windows
  unsigned address = 8;  // bytes of an address
  bool operator==(const Layout&) const = default;
};

// Finds the layout in the first bytes of a file; none if they are not those of a vmprof profile. A big-endian profile
// is an error (kUnsupported).
Result<std::optional<Layout>> detect_layout(std::string_view bytes);

// A whole file: its bytes, and where they are mapped, if it is to put aside what has been read.
struct Input {
  std::string_view bytes;
  const MappedFile* file = nullptr;
};

// What the file's header says.
struct Mode {
  int version = 0;
  bool has_memory = false;
  bool has_lines = false;
  bool has_native = false;
  bool is_tagged = false;
  bool is_real_time = false;
  std::string_view interpreter;  // "cpython" or "pypy"
};

// One record. The fields that belong to its marker are set; views point into the file's bytes.
struct Record {
  Marker marker{};
  // kStack, kAllocationStack, kObjects
  std::string_view entries;             // addresses, leaf first
  std::int64_t count = 1;               // of samples that the record stands for
  std::optional<std::int64_t> time_ns;  // the sample's clock, if there is one
  std::int64_t thread = 0;
  std::int64_t memory_kib = 0;
  // kName, kNativeName: the id and its name. kMeta: name and value.
  std::int64_t id = 0;
  std::string_view name;
  std::string_view value;
  // kStartTime, kTrailer: since 1970 in microseconds. In a trailer of version 0 `value` is the rest of the file.
  std::optional<std::int64_t> time_us;
};

// Reads records until the trailer, the end, or bytes that are none. The bytes may be hostile.
class RecordReader {
 public:
  // Why there is no next record.
  enum class Ending : std::uint8_t {
    kNone,     // there was one so far
    kTrailer,  // the profile is complete
    kCut,      // the file ends without a trailer, within a record or after one
    kDamaged,  // the bytes make no sense
  };

  // The layout is one that detect_layout found.
  RecordReader(Input input, Layout layout);

  // The next record; false if there is none.
  bool next(Record& record);

  [[nodiscard]] std::int64_t period_us() const { return period_us_; }
  // Known from the records so far; there is one header, before the first sample.
  [[nodiscard]] const Mode& mode() const { return mode_; }
  [[nodiscard]] Ending ending() const { return ending_; }
  // Whether samples have a count, and so in version 7 a time behind it: CPU time, but for real-time recordings.
  [[nodiscard]] bool has_counts() const { return sample_time_ != SampleTime::kBefore; }
  [[nodiscard]] std::size_t position() const { return position_; }

 private:
  // How samples of version 7 tell their time. The main line of vmprof (0.6) and the fork with allocation sampling have
  // given the same number to two layouts; the first sample shows which: a count is always 1, and no time is.
  enum class SampleTime : std::uint8_t {
    kUnknown,
    kAfter,   // nanoseconds (8 bytes) at the end of the record
    kBefore,  // seconds (a double) in place of the count
  };

  bool read(Record& record);
  bool read_payload(Record& record);
  bool read_header();
  bool read_interpreter();
  bool read_stack(Record& record);
  bool read_stack_start(Record& record);
  bool read_objects(Record& record);
  bool read_entries(Record& record);
  bool read_name(Record& record);
  bool read_time(Record& record);
  bool read_trailer(Record& record);
  void skip_stray_memory();
  [[nodiscard]] bool could_start_record(std::size_t at) const;

  // Each fails by returning false and setting the ending.
  bool number(unsigned size, std::int64_t& value);
  bool word(std::int64_t& value) { return number(layout_.word, value); }
  bool address(std::int64_t& value) { return number(layout_.address, value); }
  bool bytes(std::int64_t size, std::string_view& view);
  bool text(std::string_view& view);
  bool damaged();
  void put_aside();

  std::string_view bytes_;
  const MappedFile* file_ = nullptr;
  std::size_t put_aside_ = 0;  // bytes
  Layout layout_;
  std::size_t position_ = 0;
  std::int64_t period_us_ = 0;
  Mode mode_;
  bool has_header_ = false;
  SampleTime sample_time_ = SampleTime::kUnknown;
  Ending ending_ = Ending::kNone;
};

// The number stored in `size` (4 or 8) bytes at `at`, which must be there; sign-extended.
std::int64_t number_at(std::string_view bytes, std::size_t at, unsigned size);

}  // namespace plimsoll::formats::vmprof
