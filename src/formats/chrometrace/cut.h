// formats/chrometrace/cut.h: what is whole of a trace that ends early.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace plimsoll::formats::chrometrace {

// JSON text up to the last whole event.
struct WholeEvents {
  std::string text;           // with its brackets closed
  bool is_all_there = false;  // nothing but the end of an array is missing, which writers may leave out
};

// None if there is no whole event. A text that is JSON but for a comma before its end is mended likewise.
std::optional<WholeEvents> whole_events(std::string_view text);

}  // namespace plimsoll::formats::chrometrace
