// formats/firefox/allocations.h: sampled allocations as the page's two tables of memory.
//
// nativeAllocations has each block that was sampled, and a second row with negative bytes where it was freed; both have
// one made-up address, by which the page finds out what was retained. jsAllocations has the types. A row weighs the
// bytes of all the blocks that it stands for. Where a block was freed is not recorded: these rows have no stack.
#pragma once

#include <cstdint>
#include <vector>

#include "formats/firefox/file_layout.h"
#include "formats/json.h"

namespace plimsoll::formats::firefox {

// The rows of the allocation table, by ThreadId.
std::vector<std::vector<std::uint32_t>> allocations_by_thread(const profile::Profile& profile);

// Writes the members "nativeAllocations" and "jsAllocations" of one thread; nothing if it has no rows.
void write_allocations(JsonWriter& json, const FileLayout& layout, const std::vector<std::uint32_t>& rows);

}  // namespace plimsoll::formats::firefox
