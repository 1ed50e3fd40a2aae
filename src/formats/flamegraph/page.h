// formats/flamegraph/page.h: the parts of the page, as they stand in the files of these names.
#pragma once

#include <string_view>

namespace plimsoll::formats::flamegraph {

// Made by CMake of page.html, page.css and page.js.
extern const std::string_view kPageHtml;
extern const std::string_view kPageCss;
extern const std::string_view kPageJs;

}  // namespace plimsoll::formats::flamegraph
