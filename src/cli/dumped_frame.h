// cli/dumped_frame.h: a Python frame of a process, as reports of its threads and of its tasks have it.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "cli/place.h"
#include "cli/render_dump.h"
#include "cli/source_text.h"
#include "cpython/line_table.h"
#include "formats/json.h"

namespace plimsoll::cli {

// "db/pool.py:40"; without a line where that is not known.
inline std::string frame_place(const std::string& file, const cpython::Location& at, std::string_view directory) {
  const std::string path = shown_path(file, directory).text;
  return at.line == 0 ? path : fmt::format("{}:{}", path, at.line);
}

// The members of a frame (docs/json.md), between the braces.
inline void put_python_frame(formats::JsonWriter& json, const std::string& function, const std::string& file,
                             const cpython::Location& at, const SourceLookup& source) {
  json.member("function", function);
  json.member("file", file);
  if (at.line != 0) json.member("line", std::int64_t{at.line});
  if (at.column != 0) json.member("column", std::int64_t{at.column});
  const std::string_view text = without_indent(source(file).line(at.line));
  if (!text.empty()) json.member("source", text);
}

}  // namespace plimsoll::cli
