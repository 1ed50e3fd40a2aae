// cli/json_document.h: how every document of --json begins, and how its tables end.
#pragma once

#include "formats/json.h"

namespace plimsoll::cli {

// {"schema": 1, "plimsoll": the version of this program, ...
inline void begin_document(formats::JsonWriter& json) {
  constexpr std::int64_t kSchema = 1;  // counts up when a member changes its meaning or goes away
  json.begin_object();
  json.member("schema", kSchema);
  json.member("plimsoll", PLIMSOLL_VERSION);
}

// "more": whether --limit left some rows out.
inline void put_more(formats::JsonWriter& json, bool has_more) {
  json.key("more");
  json.boolean(has_more);
}

}  // namespace plimsoll::cli
