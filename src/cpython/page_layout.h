// cpython/page_layout.h: where mimalloc, the allocator of free-threaded builds, keeps what the collector asks it for.
//
// CPython has a copy of it inside, and has exchanged that for a newer one; which one a build has is told by what fits
// (collector_pages.h), not by its version. Offsets and sizes are those of builds without assertions, by their headers.
#pragma once

#include <array>
#include <cstdint>

#include "cpython/layout.h"

namespace plimsoll::cpython {

// mimalloc takes memory in segments, which begin at multiples of kSegment; one that is larger has a single block. At
// its beginning is a table of its slices. A page is some slices side by side, of which the first one's entry tells of
// the page: it has blocks of one size, for one heap.
namespace page_size {
inline constexpr std::uint64_t kSegment = 32U << 20U, kSlice = 64U << 10U, kMostSlices = kSegment / kSlice;
}

// What is at the same place in the entries of all versions: how many slices, how far behind the page's the entry is
// (in bytes), how many blocks have been made, and the first that is free.
namespace page_field {
inline constexpr std::uint32_t kSlices = 0, kBack = 4, kCapacity = 10, kFree = 16;
}

// The rest.
struct PageLayout {
  struct {
    std::uint32_t cookie;       // its address, mixed with a number that all segments share
    std::uint32_t head_slices;  // of the table
    std::uint32_t slice_count, table;
  } segment{};
  struct {
    std::uint32_t size;                             // of an entry
    std::uint32_t heap, heap_shift;                 // which heap: four bits of a byte
    std::uint32_t freed_by_owner, freed_by_others;  // lists of blocks that are not among the free ones yet
    std::uint32_t block_size, block_size_bytes;
    std::uint32_t start;  // where the blocks begin; kNoField: by their size
  } page{};
};

inline constexpr std::array<PageLayout, 2> kPageLayouts{
    PageLayout{// mimalloc 2.1, of 3.13
               .segment = {.cookie = 216, .head_slices = 232, .slice_count = 248, .table = 264},
               .page = {.size = 96,
                        .heap = 8,
                        .heap_shift = 3,
                        .freed_by_owner = 32,
                        .freed_by_others = 40,
                        .block_size = 28,
                        .block_size_bytes = 4,
                        .start = kNoField}},
    PageLayout{// mimalloc 2.2
               .segment = {.cookie = 224, .head_slices = 256, .slice_count = 272, .table = 288},
               .page = {.size = 112,
                        .heap = 35,
                        .heap_shift = 0,
                        .freed_by_owner = 24,
                        .freed_by_others = 56,
                        .block_size = 40,
                        .block_size_bytes = 8,
                        .start = 48}}};

// The heaps of each thread in which objects are that the collector knows.
namespace collector_heap {
inline constexpr std::uint32_t kPlain = 2, kWithPreHeader = 3;
}

// What the head of a free-threaded build's object has.
namespace free_head {
inline constexpr std::uint32_t kCollectorBits = 11;
inline constexpr std::uint8_t kTracked = 1;
}  // namespace free_head

}  // namespace plimsoll::cpython
