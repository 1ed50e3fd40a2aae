// cpython/collector_pages.h: all objects that the garbage collector of a free-threaded Python knows, from outside.
//
// There are no lists of them (collector_lists.h): the collector asks the allocator for all blocks of two heaps of each
// thread. Here the allocator's segments are looked through for the pages of these heaps, whoever has them: a thread,
// nobody since one has ended, or nobody for the moment in which it is passed on.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "cpython/object_view.h"
#include "cpython/page_layout.h"

namespace plimsoll::cpython {

// The pages of all interpreters of a process, which share an allocator.
template <memory::Reader M>
class CollectorPages {
 public:
  // `known`: dicts in these heaps, of which one is enough to show how the allocator keeps them.
  CollectorPages(const ObjectView<M>& view, std::span<const Address> known) : view_(view) {
    for (const Address dict : known)
      for (const PageLayout& layout : kPageLayouts)
        if (layout_ == nullptr && !is_null(dict)) learn(layout, dict);
  }
  // Whether one did.
  [[nodiscard]] bool is_found() const { return layout_ != nullptr; }

  // visit(object) for each object of the segment at an address, if there is one there; is_found() holds. False if a
  // list of free blocks leads elsewhere: then some that are visited may be none.
  template <typename Visit>
  bool each_in(Address segment, Visit visit) {
    if (!is_segment(segment)) return true;
    bool is_whole = true;
    const std::uint64_t count = std::min(view_.word(segment, layout_->segment.slice_count), page_size::kMostSlices);
    for (std::uint64_t slice = view_.word(segment, layout_->segment.head_slices); slice < count && view_.spend(8);) {
      const std::optional<Page> page = page_at(*layout_, segment, slice);
      if (page && is_collected(page->heap) && !visit_page(*page, visit)) is_whole = false;
      // What is no page is free, or is being made into one.
      slice += page ? page->slices : 1;
    }
    return is_whole;
  }

 private:
  static constexpr std::uint64_t kMostBlocks = 0xffff;  // of a page, whose count has 16 bits

  // Blocks of one size.
  struct Page {
    Address entry{}, start{};
    std::uint64_t slices = 0, block_size = 0;
    std::uint64_t capacity = 0;  // blocks that have been made
    std::uint64_t room = 0;      // and that there can be
    std::uint32_t heap = 0;
  };

  static bool is_collected(std::uint32_t heap) {
    return heap == collector_heap::kPlain || heap == collector_heap::kWithPreHeader;
  }
  [[nodiscard]] std::uint64_t cookie_of(const PageLayout& layout, Address segment) const {
    return view_.word(segment, layout.segment.cookie) ^ raw(segment);
  }
  [[nodiscard]] bool is_segment(Address at) const {
    return raw(at) % page_size::kSegment == 0 && cookie_of(*layout_, at) == cookie_;
  }

  // The page whose entry is that of a slice; nothing if there is none.
  [[nodiscard]] std::optional<Page> page_at(const PageLayout& layout, Address segment, std::uint64_t slice) const {
    const auto& field = layout.page;
    Page page;
    page.entry = offset_by(segment, layout.segment.table + slice * field.size);
    page.slices = view_.template number<std::uint32_t>(page.entry, page_field::kSlices);
    page.block_size = field.block_size_bytes == 4 ? view_.template number<std::uint32_t>(page.entry, field.block_size)
                                                  : view_.word(page.entry, field.block_size);
    page.capacity = view_.template number<std::uint16_t>(page.entry, page_field::kCapacity);
    page.heap = (view_.template number<std::uint8_t>(page.entry, field.heap) >> field.heap_shift) & 15U;
    const Address first = offset_by(segment, slice * page_size::kSlice);
    page.start = field.start != kNoField ? view_.pointer(page.entry, field.start)
                                         : offset_by(first, gap_before_blocks(page.block_size));
    // An entry of a free slice says 0 or 1 byte.
    if (page.slices == 0 || page.block_size < sizeof(Address) || page.block_size % sizeof(Address) != 0) return {};
    const std::uint64_t gap = raw(page.start) - raw(first), bytes = page.slices * page_size::kSlice;
    if (gap >= bytes) return {};
    // A block that is larger than can be said is alone in its page.
    page.room = std::clamp((bytes - gap) / page.block_size, std::uint64_t{1}, kMostBlocks);
    if (page.capacity > page.room) return {};
    return page;
  }
  // Pages begin at different places, so that their first blocks do not fall together in a processor's cache.
  static std::uint64_t gap_before_blocks(std::uint64_t block_size) {
    return block_size <= 64 ? 3 * block_size : block_size <= 512 ? block_size : 0;
  }

  void learn(const PageLayout& layout, Address dict) {
    constexpr std::uint64_t kDebugHead = 16;  // PYTHONMALLOC=debug
    const Address segment{raw(dict) / page_size::kSegment * page_size::kSegment};
    const std::uint64_t slice = (raw(dict) - raw(segment)) / page_size::kSlice;
    const Address entry = offset_by(segment, layout.segment.table + slice * layout.page.size);
    const std::uint64_t back = view_.template number<std::uint32_t>(entry, page_field::kBack);
    if (back % layout.page.size != 0 || back / layout.page.size > slice) return;
    const std::optional<Page> page = page_at(layout, segment, slice - back / layout.page.size);
    if (!page || page->heap != collector_heap::kPlain || raw(dict) < raw(page->start)) return;
    const std::uint64_t inside = (raw(dict) - raw(page->start)) % page->block_size;
    if ((raw(dict) - raw(page->start)) / page->block_size >= page->capacity) return;
    if (inside != 0 && inside != kDebugHead) return;
    layout_ = &layout;
    cookie_ = cookie_of(layout, segment);
    before_object_ = inside;
  }

  template <typename Visit>
  bool visit_page(const Page& page, Visit& visit) {
    constexpr std::uint64_t kPreHeader = 16;
    if (!view_.spend(page.capacity)) return false;
    is_free_.assign(page.room, false);
    bool is_whole = true;
    for (const std::uint32_t list : {page_field::kFree, layout_->page.freed_by_owner, layout_->page.freed_by_others})
      is_whole = mark_free(page, list) && is_whole;
    const std::uint64_t before =
        before_object_ + (page.heap == collector_heap::kWithPreHeader ? kPreHeader : std::uint64_t{0});
    for (std::uint64_t i = 0; i < page.capacity; ++i) {
      if (is_free_[i]) continue;
      const Address object = offset_by(page.start, i * page.block_size + before);
      const auto bits = view_.template number<std::uint8_t>(object, free_head::kCollectorBits);
      if ((bits & free_head::kTracked) != 0) visit(object);
    }
    return is_whole;
  }

  // The blocks of a list, each of which begins with the address of the next. False if it leads out of the page, or
  // nowhere.
  bool mark_free(const Page& page, std::uint32_t list) {
    constexpr std::uint64_t kFlags = 3;  // of the list that others append to
    std::uint64_t block = view_.word(page.entry, list) & ~kFlags;
    for (std::uint64_t met = 0; block != 0; ++met, block = view_.word(Address{block}, 0)) {
      const std::uint64_t inside = block - raw(page.start), number = inside / page.block_size;
      if (met == page.room || inside % page.block_size != 0 || number >= page.room || !view_.spend(1)) return false;
      is_free_[number] = true;
    }
    return true;
  }

  const ObjectView<M>& view_;
  const PageLayout* layout_ = nullptr;
  std::uint64_t cookie_ = 0;
  std::uint64_t before_object_ = 0;  // bytes of its block
  std::vector<bool> is_free_;        // by block, of the page at hand
};

}  // namespace plimsoll::cpython
