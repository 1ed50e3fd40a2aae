// formats/firefox/counters.h: counters as tracks of the timeline.
#pragma once

#include "formats/firefox/file_layout.h"
#include "formats/json.h"

namespace plimsoll::formats::firefox {

// Writes the member "counters" of the file.
void write_counters(JsonWriter& json, const FileLayout& layout);

}  // namespace plimsoll::formats::firefox
