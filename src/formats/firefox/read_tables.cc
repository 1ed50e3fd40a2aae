// formats/firefox/read_tables.cc: columns, row by row.
#include "formats/firefox/read_tables.h"

namespace plimsoll::formats::firefox {

namespace json = boost::json;

namespace {

std::size_t rows_of(const json::array* column) { return column == nullptr ? 0 : column->size(); }

std::int64_t integer_at(const json::value* table, std::string_view column, std::size_t row) {
  return integer_of(element(array_member(table, column), row)).value_or(0);
}

}  // namespace

ReadTables::ReadTables(ForeignProfile& out, const json::value* tables)
    : out_(out),
      strings_(array_member(tables, "stringArray")),
      source_files_(array_member(member(tables, "sources"), "filename")) {
  const json::value* frames = member(tables, "frameTable");
  std::vector<FrameId> frame_ids;
  const std::size_t count = rows_of(array_member(frames, "func"));
  frame_ids.reserve(count);
  for (std::size_t row = 0; row < count; ++row) frame_ids.push_back(frame(frames, member(tables, "funcTable"), row));
  read_stacks(member(tables, "stackTable"), frame_ids);
}

std::string_view ReadTables::text(const json::value* index) const {
  const std::optional<std::size_t> row = index_of(index, rows_of(strings_));
  return row ? text_of(&(*strings_)[*row]) : std::string_view{};
}

std::string_view ReadTables::file_of(const json::value* functions, std::size_t function) const {
  // A table of sources from version 57 on; before, the name itself.
  if (const json::value* source = element(array_member(functions, "source"), function); source != nullptr)
    if (const std::optional<std::size_t> row = index_of(source, rows_of(source_files_)))
      return text(&(*source_files_)[*row]);
  return text(element(array_member(functions, "fileName"), function));
}

FrameId ReadTables::frame(const json::value* frames, const json::value* functions, std::size_t row) {
  const json::array* names = array_member(functions, "name");
  const std::optional<std::size_t> function = index_of(element(array_member(frames, "func"), row), rows_of(names));
  if (!function) return {};
  return out_.frame({.name = text(&(*names)[*function]),
                     .file = file_of(functions, *function),
                     .line = integer_at(frames, "line", row),
                     .column = integer_at(frames, "column", row),
                     .first_line = integer_at(functions, "lineNumber", *function)});
}

// A parent stands before its children: as a distance (version 66), or as its row.
void ReadTables::read_stacks(const json::value* stacks, const std::vector<FrameId>& frames) {
  const json::array* frame_column = array_member(stacks, "frame");
  const json::array* offsets = array_member(stacks, "prefixOffset");
  const json::array* prefixes = array_member(stacks, "prefix");
  const std::size_t count = rows_of(frame_column);
  stacks_.reserve(count);
  for (std::size_t row = 0; row < count; ++row) {
    StackId below;
    if (const std::optional<std::size_t> offset = index_of(element(offsets, row), row + 1); offset && *offset > 0)
      below = stacks_[row - *offset];
    if (const std::optional<std::size_t> prefix = index_of(element(prefixes, row), row)) below = stacks_[*prefix];
    const std::optional<std::size_t> frame = index_of(element(frame_column, row), frames.size());
    stacks_.push_back(frame ? out_.push(below, frames[*frame]) : below);
  }
}

StackId ReadTables::stack(const json::value* row) const {
  const std::optional<std::size_t> index = index_of(row, stacks_.size());
  return index ? stacks_[*index] : StackId{};
}

}  // namespace plimsoll::formats::firefox
