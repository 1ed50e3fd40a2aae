// server/list_page.h: the page that lists profiles.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/profile_store.h"

namespace plimsoll::server {

// Needs no JavaScript, but for the addresses that vmprof's clients print ("/#/ID").
std::string list_page(const std::vector<StoredProfile>& profiles);

// A text as it stands in a page.
std::string html_escaped(std::string_view text);

}  // namespace plimsoll::server
