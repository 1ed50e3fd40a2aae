// formats/firefox/read_tables.cc: columns, row by row.
#include "formats/firefox/read_tables.h"

#include <boost/unordered/unordered_flat_map.hpp>

namespace plimsoll::formats::firefox {

namespace json = boost::json;

namespace {

std::size_t rows_of(const json::array* column) { return column == nullptr ? 0 : column->size(); }

std::int64_t integer_at(const json::value* table, std::string_view column, std::size_t row) {
  return integer_of(element(array_member(table, column), row)).value_or(0);
}

}  // namespace

ReadTables::ReadTables(ForeignProfile& out, const json::value* thread, const json::value* shared) : out_(out) {
  const auto table = [&](std::string_view name) {
    const json::value* own = member(thread, name);
    return own != nullptr ? own : member(shared, name);
  };
  if (const json::value* strings = table("stringArray")) strings_ = strings->if_array();
  source_files_ = array_member(table("sources"), "filename");
  const json::value* frames = table("frameTable");
  const json::value* functions = table("funcTable");
  const std::size_t count = rows_of(array_member(frames, "func"));
  // Only those that stacks have: threads may share a long table.
  boost::unordered_flat_map<std::size_t, FrameId> known;
  read_stacks(table("stackTable"), [&](const json::value* index) {
    const std::optional<std::size_t> row = index_of(index, count);
    if (!row) out_.miss(kMissingFrames);
    if (!row) return FrameId{};
    const auto [position, is_new] = known.try_emplace(*row);
    if (is_new) position->second = frame(frames, functions, *row);
    return position->second;
  });
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
  // That a function is of an interpreter is told; what else it is, its names tell.
  const json::value* is_js = element(array_member(functions, "isJS"), *function);
  const bool is_interpreted = is_js != nullptr && is_js->is_bool() && is_js->get_bool();
  return out_.frame({.name = text(&(*names)[*function]),
                     .file = file_of(functions, *function),
                     .line = integer_at(frames, "line", row),
                     .column = integer_at(frames, "column", row),
                     .first_line = integer_at(functions, "lineNumber", *function),
                     .kind = is_interpreted ? std::optional(profile::FunctionKind::kPython) : std::nullopt});
}

// A parent stands before its children: as a distance (version 66), or as its row.
template <typename FrameAt>
void ReadTables::read_stacks(const json::value* stacks, FrameAt frame_at) {
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
    stacks_.push_back(out_.push(below, frame_at(element(frame_column, row))));
  }
}

StackId ReadTables::stack(const json::value* row) const {
  const std::optional<std::size_t> index = index_of(row, stacks_.size());
  if (!index && row != nullptr && !row->is_null()) out_.miss(kMissingStacks);
  return index ? stacks_[*index] : StackId{};
}

}  // namespace plimsoll::formats::firefox
