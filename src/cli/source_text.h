// cli/source_text.h: the source lines of a profiled file.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "profile/profile.h"

namespace plimsoll::cli {

// Where the lines come from; the report says so, because a file on disk may not be what ran.
enum class SourceOrigin { kNone, kProfile, kDisk, kDiskChanged };

// The lines of one file, with where they were found.
struct SourceText {
  SourceOrigin origin = SourceOrigin::kNone;
  std::vector<std::string> lines;  // printable, tabs expanded; lines[0] is line 1

  // The text of a line; empty where there is none.
  [[nodiscard]] std::string_view line(std::uint32_t number) const {
    return number >= 1 && number <= lines.size() ? std::string_view(lines[number - 1]) : std::string_view();
  }
};

// No larger file is read.
inline constexpr std::size_t kLargestSource = 32'000'000;

// The text that the profile holds; else the regular file of that name, if it can be read; else nothing.
SourceText source_of(const profile::Profile& profile, std::string_view file);

// Takes the texts of the profile's files along, as a recording does that is made in the program: those that have not
// changed since it began. Names without a directory are in `directory`. For profiles of our own making only: the names
// in others may be those of anybody's secrets.
void embed_sources(profile::Profile& profile, const std::string& directory);

// Lines as Python counts them: ended by \n, \r\n or \r.
std::vector<std::string> split_lines(std::string_view text);

// A line without the blanks that it begins with.
inline std::string_view without_indent(std::string_view line) {
  return line.substr(std::min(line.find_first_not_of(' '), line.size()));
}

}  // namespace plimsoll::cli
