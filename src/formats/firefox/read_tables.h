// formats/firefox/read_tables.h: the tables of a processed profile -> stacks.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "formats/foreign.h"
#include "formats/json_values.h"

namespace plimsoll::formats::firefox {

// The stacks of one set of tables: of a thread, or shared by all.
class ReadTables {
 public:
  // `tables` holds stackTable, frameTable, funcTable and stringArray. It may be anything.
  ReadTables(ForeignProfile& out, const boost::json::value* tables);

  // The stack of a row of stackTable; the empty one for what is no row.
  [[nodiscard]] StackId stack(const boost::json::value* row) const;
  [[nodiscard]] std::string_view text(const boost::json::value* index) const;

 private:
  FrameId frame(const boost::json::value* frames, const boost::json::value* functions, std::size_t row);
  void read_stacks(const boost::json::value* stacks, const std::vector<FrameId>& frames);
  [[nodiscard]] std::string_view file_of(const boost::json::value* functions, std::size_t function) const;

  ForeignProfile& out_;
  const boost::json::array* strings_;
  const boost::json::array* source_files_;
  std::vector<StackId> stacks_;
};

}  // namespace plimsoll::formats::firefox
