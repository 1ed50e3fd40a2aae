// cli/suggest.h: what somebody may have meant.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace plimsoll::cli {

// The candidate that differs least from the word, if it is near enough to be a slip of the fingers; else empty.
std::string_view nearest(std::string_view word, const std::vector<std::string_view>& candidates);

// `; did you mean "show"?`, or nothing.
std::string did_you_mean(std::string_view word, const std::vector<std::string_view>& candidates);

// An error's words: `there is no view "tre" (did you mean "tree"?); there are tree, flat, lines`.
std::string no_such(std::string_view kind, std::string_view word, const std::vector<std::string_view>& candidates);

// "tree, flat, lines".
std::string comma_list(const std::vector<std::string_view>& words);

}  // namespace plimsoll::cli
