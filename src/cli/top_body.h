// cli/top_body.h: the middle of the screen of `plimsoll top`: a table, or a flame graph.
#pragma once

#include <functional>
#include <vector>

#include "cli/screen_line.h"
#include "cli/source_text.h"
#include "cli/top_picture.h"

namespace plimsoll::cli {

// The text of a file of the process.
using TopSources = std::function<const SourceText&(std::string_view file)>;

// Rows below a title; a row is drawn only when it is seen. Holds on to the picture that it was made of.
struct TopBody {
  Cell title;
  std::size_t rows = 0;
  std::function<Cell(std::size_t row)> draw;
};

// Each of a picture whose samples have been selected for the state.
TopBody functions_body(const TopPicture& picture, const TopState& state, std::size_t width);
TopBody lines_body(const TopPicture& picture, const TopState& state, const TopSources& sources, std::size_t width);
TopBody threads_body(const TopPicture& picture, const TopState& state, std::size_t width);
TopBody flame_body(const TopPicture& picture, std::size_t width);

}  // namespace plimsoll::cli
