// formats/tachyon/layout.h: where in the file is what.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace plimsoll::formats::tachyon {

// Reads numbers of fixed size, in the file's byte order.
struct ByteOrder {
  bool is_big_endian = false;
  // `bytes` has at least `size` bytes from `at` on.
  [[nodiscard]] std::uint64_t number(std::string_view bytes, std::size_t at, std::size_t size) const;
};

// What was measured, for the session as a whole.
struct Statistics {
  double duration_s = 0;
  double rate_hz = 0;
  double failed_percent = 0;  // of the looks
  double missed_percent = 0;
};

// The file's parts, each within its bytes.
struct Layout {
  ByteOrder order;
  std::string python;  // "3.15.2"
  std::uint64_t start_us = 0;
  std::uint64_t interval_us = 0;
  std::uint64_t samples = 0;
  bool is_compressed = false;
  unsigned mode = 0;  // one more than CPython's number; 0 = not told
  std::string_view sample_data, string_table, frame_table;
  bool is_whole = false;      // else the tables end where the file is cut
  std::uint64_t strings = 0;  // of a whole file
  std::uint64_t frames = 0;   // likewise
  std::optional<Statistics> statistics;
};

inline constexpr std::size_t kHeaderBytes = 64;

bool has_magic(std::string_view bytes);

// The layout of bytes with the magic. Errors as those of read (reader.h).
Result<Layout> find_layout(std::string_view bytes);

// The samples, unpacked if they are compressed, as far as that goes, into `storage`.
std::string_view unpacked_samples(const Layout& layout, std::string& storage);

}  // namespace plimsoll::formats::tachyon
