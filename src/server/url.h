// server/url.h: texts as they stand in addresses.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace plimsoll::server {

// With everything escaped that is not a letter, a digit or one of "-._~".
std::string percent_encoded(std::string_view text);
// None if an escape is damaged.
std::optional<std::string> percent_decoded(std::string_view text);

}  // namespace plimsoll::server
