// formats/firefox/shared_tables.h: the tables that all threads of the file refer to.
#pragma once

#include "formats/firefox/file_layout.h"
#include "formats/json.h"

namespace plimsoll::formats::firefox {

// Writes the member "shared": stackTable, frameTable, funcTable, resourceTable, nativeSymbols, sources,
// sourceLocationTable, stringArray. Rows of stacks, frames and functions are those of the profile, one more at the end
// for the empty stack. To be called last, since it ends with all texts that any part of the file has asked for.
void write_shared(JsonWriter& json, const FileLayout& layout, Texts& texts);

}  // namespace plimsoll::formats::firefox
