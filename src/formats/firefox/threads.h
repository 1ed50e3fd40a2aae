// formats/firefox/threads.h: threads with their samples and markers.
#pragma once

#include "formats/firefox/file_layout.h"
#include "formats/firefox/markers.h"
#include "formats/json.h"

namespace plimsoll::formats::firefox {

// Writes the member "threads" of the file, in the order of the layout.
void write_threads(JsonWriter& json, const FileLayout& layout, const MarkerTypes& marker_types, Texts& texts);

}  // namespace plimsoll::formats::firefox
