// cpython/collector_pages_test.cc: the collector's heaps in drawn segments of both of mimalloc's layouts, whole and
// broken.
#include "cpython/collector_pages.h"

#include <gtest/gtest.h>

#include <vector>

#include "cpython/testing.h"

namespace plimsoll::cpython {
namespace {

constexpr std::uint64_t kFirst = 0x7f00'0000'0000, kCookie = 0x5aa5'1234'5678'0001;
constexpr std::uint64_t kBlock = 96, kObjects = 10;
constexpr std::uint32_t kNotCollected = 1;

// Segments of a free-threaded Python, in which pages are where a test draws them.
class CollectorPagesOf : public ::testing::TestWithParam<PageLayout> {
 public:
  CollectorPagesOf() {
    put_segment(kFirst, kCookie);
    known = put_page(kFirst, 1, collector_heap::kPlain);
  }

  void put_segment(std::uint64_t at, std::uint64_t cookie) {
    memory.put(Address{at + layout().segment.cookie}, at ^ cookie);
    memory.put(Address{at + layout().segment.head_slices}, std::uint64_t{1});
    memory.put(Address{at + layout().segment.slice_count}, page_size::kMostSlices);
  }
  [[nodiscard]] Address entry(std::uint64_t segment, std::uint64_t slice) const {
    return Address{segment + layout().segment.table + slice * layout().page.size};
  }
  // A page of two slices with some objects that are tracked; the first of them.
  Address put_page(std::uint64_t segment, std::uint64_t slice, std::uint32_t heap) {
    const auto& field = layout().page;
    const Address at = entry(segment, slice);
    const Address start{segment + slice * page_size::kSlice + kBlock};
    memory.put(offset_by(at, page_field::kSlices), std::uint32_t{2});
    memory.put(offset_by(at, page_field::kBack), std::uint32_t{0});
    memory.put(offset_by(entry(segment, slice + 1), page_field::kBack), field.size);
    memory.put(offset_by(at, field.heap),
               static_cast<std::uint8_t>((heap << field.heap_shift) | (field.heap_shift != 0 ? 7U : 0U)));
    memory.put(offset_by(at, page_field::kCapacity), std::uint16_t{kObjects});
    if (field.block_size_bytes == 4)
      memory.put(offset_by(at, field.block_size), std::uint32_t{kBlock});
    else
      memory.put(offset_by(at, field.block_size), std::uint64_t{kBlock});
    if (field.start != kNoField) memory.put(offset_by(at, field.start), start);
    const Address object = offset_by(start, heap == collector_heap::kWithPreHeader ? 16 : 0);
    for (std::uint64_t i = 0; i < kObjects; ++i) set_tracked(offset_by(object, i * kBlock), free_head::kTracked);
    return object;
  }
  void set_tracked(Address object, std::uint8_t bits) {
    memory.put(offset_by(object, free_head::kCollectorBits), bits);
  }
  // A list of blocks by their numbers; each begins with the address of the next.
  void put_list(std::uint64_t segment, std::uint64_t slice, std::uint32_t list,
                const std::vector<std::uint64_t>& numbers, std::uint64_t flags = 0, std::uint64_t last = 0) {
    Address at = offset_by(entry(segment, slice), list);
    for (const std::uint64_t number : numbers) {
      const std::uint64_t block = segment + slice * page_size::kSlice + kBlock + number * kBlock;
      memory.put(at, block | std::exchange(flags, 0));
      at = Address{block};
    }
    memory.put(at, last);
  }

  std::vector<Address> visited(std::vector<std::uint64_t> segments = {kFirst}) {
    const Layout python = testing::offsets_3_13t().layout().value();
    const ObjectFields fields = object_fields(python.version).value();
    const ObjectView<memory::FakeMemory> view(memory, python, fields, 1U << 16U);
    const std::vector<Address> all{Address{}, Address{kFirst - 8}, known};
    CollectorPages pages(view, all);
    is_found = pages.is_found();
    is_whole = is_found;
    std::vector<Address> found;
    if (is_found)
      for (const std::uint64_t segment : segments)
        is_whole = pages.each_in(Address{segment}, [&](Address object) { found.push_back(object); }) && is_whole;
    return found;
  }
  static std::vector<Address> objects(Address first, const std::vector<std::uint64_t>& but = {}) {
    std::vector<Address> all;
    for (std::uint64_t i = 0; i < kObjects; ++i)
      if (std::find(but.begin(), but.end(), i) == but.end()) all.push_back(offset_by(first, i * kBlock));
    return all;
  }
  static const PageLayout& layout() { return GetParam(); }

  memory::FakeMemory memory;
  Address known{};
  bool is_found = false, is_whole = false;
};

TEST_P(CollectorPagesOf, AreThoseOfTwoHeaps) {
  // GIVEN pages of both heaps and of another one, and objects of which one is not tracked
  const Address other = put_page(kFirst, 7, collector_heap::kWithPreHeader);
  put_page(kFirst, 3, kNotCollected);
  set_tracked(offset_by(known, 2 * kBlock), 0xfe);
  // THEN those that are tracked are visited, behind what stands in front of them
  std::vector<Address> expected = objects(known, {2});
  for (const Address object : objects(other)) expected.push_back(object);
  EXPECT_EQ(visited(), expected);
  EXPECT_TRUE(is_whole);
}

TEST_P(CollectorPagesOf, BlocksThatAreFreeAreNoObjects) {
  // GIVEN blocks that still look like objects, on each of a page's lists
  put_list(kFirst, 1, page_field::kFree, {9, 1});
  put_list(kFirst, 1, layout().page.freed_by_owner, {3});
  put_list(kFirst, 1, layout().page.freed_by_others, {4, 8}, 2);
  // THEN the others are visited
  EXPECT_EQ(visited(), objects(known, {1, 3, 4, 8, 9}));
  EXPECT_TRUE(is_whole);
}

TEST_P(CollectorPagesOf, AreInAllSegmentsOfTheAllocator) {
  // GIVEN a segment that nobody has any more, one of another allocator, and memory with neither
  constexpr std::uint64_t kSecond = kFirst + page_size::kSegment, kThird = kSecond + page_size::kSegment;
  put_segment(kSecond, kCookie);
  put_segment(kThird, kCookie + 1);
  const Address second = put_page(kSecond, 509, collector_heap::kPlain);
  put_page(kThird, 1, collector_heap::kPlain);
  // THEN the first's objects are visited
  EXPECT_EQ(visited({kSecond, kThird, kThird + page_size::kSegment, kSecond + 4096}), objects(second));
  EXPECT_TRUE(is_whole);
}

TEST_P(CollectorPagesOf, HaveBlocksWithAHeadIfThatIsDebugged) {
  // GIVEN an allocator that puts two words in front of each block
  for (const Address object : objects(known)) set_tracked(offset_by(object, 16), free_head::kTracked);
  known = offset_by(known, 16);
  const Address other = put_page(kFirst, 3, collector_heap::kWithPreHeader);
  for (const Address object : objects(other)) set_tracked(offset_by(object, 16), free_head::kTracked);
  // THEN objects are behind them
  std::vector<Address> expected = objects(known);
  for (const Address object : objects(offset_by(other, 16))) expected.push_back(object);
  EXPECT_EQ(visited(), expected);
}

TEST_P(CollectorPagesOf, ListsThatAreBrokenEnd) {
  // GIVEN lists that lead round, out of the page, and between two blocks
  put_list(kFirst, 1, page_field::kFree, {1, 2}, 0, raw(known) + kBlock);
  put_list(kFirst, 1, layout().page.freed_by_owner, {3}, 0, kFirst);
  put_list(kFirst, 1, layout().page.freed_by_others, {4}, 0, raw(known) + kBlock / 2);
  // THEN that is told, and the blocks on them are free
  EXPECT_EQ(visited(), objects(known, {1, 2, 3, 4}));
  EXPECT_FALSE(is_whole);
}

TEST_P(CollectorPagesOf, ThatAreJustBeingMadeAreTolerated) {
  // GIVEN a list that has blocks which are not counted yet, and entries of slices that are not a page's yet
  put_list(kFirst, 1, page_field::kFree, {5, kObjects, kObjects + 1});
  const Address next = put_page(kFirst, 6, collector_heap::kPlain);
  // THEN what there is is visited
  std::vector<Address> expected = objects(known, {5});
  for (const Address object : objects(next)) expected.push_back(object);
  EXPECT_EQ(visited(), expected);
  EXPECT_TRUE(is_whole);
}

TEST_P(CollectorPagesOf, WithMoreBlocksThanThereIsRoomForAreNone) {
  const Address next = put_page(kFirst, 3, collector_heap::kPlain);
  memory.put(offset_by(entry(kFirst, 3), page_field::kCapacity), std::uint16_t{0xffff});
  put_page(kFirst, 5, collector_heap::kPlain);
  memory.put(offset_by(entry(kFirst, 5), layout().page.block_size), std::uint32_t{0});
  EXPECT_EQ(visited(), objects(known));
  EXPECT_FALSE(is_null(next));
}

TEST_P(CollectorPagesOf, AreNotFoundWhereNothingFits) {
  // GIVEN a dict that is in no block, in a page of another heap, or behind the last one
  const Address right = known;
  for (const Address wrong :
       {offset_by(right, 8), put_page(kFirst, 3, kNotCollected), offset_by(right, kObjects * kBlock)}) {
    known = wrong;
    EXPECT_TRUE(visited().empty());
    EXPECT_FALSE(is_found);
  }
}

INSTANTIATE_TEST_SUITE_P(EveryLayout, CollectorPagesOf, ::testing::ValuesIn(kPageLayouts),
                         [](const auto& of) { return of.index == 0 ? "Older" : "Newer"; });

}  // namespace
}  // namespace plimsoll::cpython
