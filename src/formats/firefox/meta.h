// formats/firefox/meta.h: what the file says about itself and the session.
#pragma once

#include "formats/firefox/file_layout.h"
#include "formats/firefox/markers.h"
#include "formats/json.h"

namespace plimsoll::formats::firefox {

// Writes the member "meta" of the file.
void write_meta(JsonWriter& json, const FileLayout& layout, const MarkerTypes& marker_types);

}  // namespace plimsoll::formats::firefox
