// cli/render_top.h: what `plimsoll top` shows, as lines of text: for a screen, for a pipe, and as JSON.
#pragma once

#include <vector>

#include "cli/top_body.h"

namespace plimsoll::cli {

// A full screen. The state may ask for rows below the last one: `first_row` is what is shown.
struct TopScreen {
  std::vector<Cell> lines;  // as many as the size has rows, none wider than it
  std::size_t first_row = 0;
};
TopScreen render_top(const TopPicture& picture, const TopState& state, const TopSources& sources, ScreenSize size);

// The rows of a table that a screen of that size has room for.
std::size_t top_page(ScreenSize size);

// The same as plain text with up to `limit` rows (0: all), for a pipe.
std::string top_text(const TopPicture& picture, const TopState& state, const TopSources& sources, const Page& page,
                     std::size_t limit);

// All of it, whatever the state shows, but for the kind of time and the order.
std::string top_json(const TopPicture& picture, const TopState& state);

}  // namespace plimsoll::cli
