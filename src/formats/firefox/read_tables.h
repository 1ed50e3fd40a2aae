// formats/firefox/read_tables.h: the tables of a processed profile -> stacks.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "formats/foreign.h"
#include "formats/json_values.h"

namespace plimsoll::formats::firefox {

// The stacks of one set of tables. Which of them threads have, and which all share, differs between versions.
class ReadTables {
 public:
  // stackTable, frameTable, funcTable, stringArray and sources are each in `thread` or in `shared`, either of which may
  // be null, and anything.
  ReadTables(ForeignProfile& out, const boost::json::value* thread, const boost::json::value* shared);

  // The stack of a row of stackTable; the empty one for what is no row.
  [[nodiscard]] StackId stack(const boost::json::value* row) const;
  [[nodiscard]] std::string_view text(const boost::json::value* index) const;

 private:
  FrameId frame(const boost::json::value* frames, const boost::json::value* functions, std::size_t row);
  template <typename FrameAt>
  void read_stacks(const boost::json::value* stacks, FrameAt frame_at);
  [[nodiscard]] std::string_view file_of(const boost::json::value* functions, std::size_t function) const;

  ForeignProfile& out_;
  const boost::json::array* strings_ = nullptr;
  const boost::json::array* source_files_ = nullptr;
  std::vector<StackId> stacks_;
};

}  // namespace plimsoll::formats::firefox
