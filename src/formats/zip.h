// formats/zip.h: an archive (.zip) in memory, written by minizip.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace plimsoll::formats {

// Takes files one after the other. Movable.
class ZipWriter {
 public:
  // `realtime_ns`, since 1970 UTC, is the time of day of all files; before 1980 there are none.
  explicit ZipWriter(std::int64_t realtime_ns);
  ZipWriter(ZipWriter&&) noexcept;
  ZipWriter& operator=(ZipWriter&&) noexcept;
  ~ZipWriter();

  // Adds a file, compressed. `name` is as safe_zip_name makes it, and no name comes twice.
  Status add(const std::string& name, std::string_view bytes);
  // The archive's bytes. The last call.
  Result<std::string> finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// A name for the file `path` below a folder of an archive: unpacked anywhere, it stays there. No "..", no drive, none
// of the characters that some systems refuse.
std::string safe_zip_name(std::string_view path);

}  // namespace plimsoll::formats
