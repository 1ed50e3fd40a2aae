// heap/words.h: rules as people write them: pieces between separators.
#pragma once

#include <algorithm>
#include <string_view>

namespace plimsoll::heap {

inline std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) + 1 - first);
}

// Calls take(piece) for what stands between any of the separators, without blanks around it; false ends it.
template <typename Take>
bool split(std::string_view text, std::string_view separators, Take take) {
  for (;;) {
    const std::size_t end = std::min(text.find_first_of(separators), text.size());
    const std::string_view piece = trimmed(text.substr(0, end));
    if (!piece.empty() && !take(piece)) return false;
    if (end == text.size()) return true;
    text.remove_prefix(end + 1);
  }
}

}  // namespace plimsoll::heap
