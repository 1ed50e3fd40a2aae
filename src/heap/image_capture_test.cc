#include "heap/image_capture.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cpython/debug_offsets_testing.h"
#include "cpython/page_layout.h"
#include "heap/snapshot_reader.h"

namespace plimsoll::heap {
namespace {

namespace array = cpython::numpy_field;
namespace type_field = cpython::type_field;
namespace type_flag = cpython::type_flag;

constexpr std::uint64_t kStart = 0x10000, kZeros = std::uint64_t{1} << 40U;
constexpr std::uint64_t kRuntime = kStart, kInterpreter = 0x11000, kThread = 0x12000, kTypeType = 0x20000,
                        kListType = 0x21000, kFirst = 0x30000, kSecond = 0x30100, kItems = 0x31000;

// Memory of a Python, 3.12 if not said otherwise, in which there is a thread that holds a list, and whatever a test
// draws.
struct ImageCapture : ::testing::Test {
  explicit ImageCapture(cpython::Layout drawn_layout = cpython::layout_from_table({3, 12, 1}).take())
      : layout(std::move(drawn_layout)), fields(cpython::object_fields(layout.version).take()), bytes(0x40000) {
    put(kRuntime + layout.runtime.interpreters, kInterpreter);
    put(kInterpreter + layout.runtime.threads, kThread);
    put(kThread + fields.thread.dict, kFirst);
    put_class(kTypeType, "type", fields.size.type + shift(), type_flag::kType);
    put_class(kListType, "list", 40 + shift(), type_flag::kList | type_flag::kCollected);
  }
  void put(std::uint64_t at, std::uint64_t word) { std::memcpy(bytes.data() + (at - kStart), &word, sizeof word); }
  [[nodiscard]] std::uint64_t shift() const { return layout.object.type - 8; }
  void put_head(std::uint64_t at, std::uint64_t type, std::uint64_t count) {
    if (shift() == 0)
      put(at, count);
    else
      put(at + 8, count << 32U);  // that of its thread
    put(at + layout.object.type, type);
  }
  void put_class(std::uint64_t at, std::string_view name, std::uint64_t size, std::uint64_t flags) {
    const std::uint64_t text = at + 0x800;
    std::memcpy(bytes.data() + (text - kStart), name.data(), name.size());
    put_head(at, kTypeType, 1);
    put(at + shift() + type_field::kName, text);
    put(at + shift() + type_field::kBasicSize, size);
    put(at + shift() + type_field::kFlags, flags | type_flag::kReady);
  }
  void put_list(std::uint64_t at, std::uint64_t items, std::uint64_t count) {
    put_head(at, kListType, 3);
    put(at + layout.object.var_size, count);
    put(at + shift() + cpython::container_field::kListItems, items);
    put(at + shift() + cpython::container_field::kListAllocated, count);
  }
  Result<ImageStatistics> capture() {
    image.add(Address{kStart}, bytes);
    image.add_zeros(Address{kZeros}, kZeros);
    image.seal();
    const ImageView view(image, layout, fields);
    return capture_image(view, {Address{kRuntime}, Address{kTypeType}}, ImageValues::kRedacted, {}, writer);
  }

  cpython::Layout layout;
  cpython::ObjectFields fields;
  std::vector<std::byte> bytes;
  memory::Image image;
  SnapshotWriter writer;
};

TEST_F(ImageCapture, FollowsListsThatHoldEachOther) {
  // GIVEN a list that holds another twice, which holds the first
  put_list(kFirst, kItems, 2);
  put(kItems, kSecond);
  put(kItems + 8, kSecond);
  put_list(kSecond, kItems + 16, 1);
  put(kItems + 16, kFirst);
  // WHEN a snapshot is taken
  const Result<ImageStatistics> taken = capture();
  ASSERT_TRUE(taken.ok()) << taken.error().message;
  const Result<Snapshot> snapshot = read_snapshot(writer.bytes());
  ASSERT_TRUE(snapshot.ok());
  // THEN both are in it, with their classes, sizes (16 for the collector, 40, and 8 an item) and references
  const Snapshot& heap = snapshot.value();
  ASSERT_EQ(heap.object_count, 4U);
  EXPECT_EQ(heap.address.values(),
            (std::vector<std::uint64_t>{kTypeType, kListType, kFirst, kSecond, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(heap.type_name(2), "list");
  EXPECT_EQ(heap.size[2], 64U + 16U);
  EXPECT_EQ(heap.refcount[2], 3U);
  const auto held = heap.graph.from(2);
  EXPECT_EQ(std::vector<Node>(held.begin(), held.end()), (std::vector<Node>{3, 3}));
  EXPECT_EQ(heap.graph.from(3)[0], 2U);
  EXPECT_EQ(taken.value().lost_edges, 0U);
}

// The same without a GIL.
struct ImageOfFreeThreads : ImageCapture {
  ImageOfFreeThreads() : ImageCapture(cpython::testing::offsets_3_13t().layout().take()) {}
  Snapshot snapshot() {
    taken = capture();
    return taken.ok() ? read_snapshot(writer.bytes()).take() : Snapshot{};
  }
  Result<ImageStatistics> taken = ImageStatistics{};
};

TEST_F(ImageOfFreeThreads, HasSizesOfItsAllocatorAndNoCounts) {
  // GIVEN a list that holds another six times, whose references are those of other threads only
  put_list(kFirst, kItems, 6);
  for (std::uint64_t i = 0; i < 6; ++i) put(kItems + 8 * i, kSecond);
  put_list(kSecond, kItems, 0);
  put(kSecond + 8, 0);
  put(kSecond + 16, 6U << 2U | 1U);
  // WHEN a snapshot is taken
  const Snapshot heap = snapshot();
  // THEN sizes are those of blocks of mimalloc's (56 bytes; 8 and 48), and no counts are told
  ASSERT_TRUE(taken.ok()) << taken.error().message;
  ASSERT_EQ(heap.object_count, 4U);
  EXPECT_EQ(heap.type_name(2), "list");
  EXPECT_EQ(heap.size[2], 64U + 64U);
  EXPECT_EQ(heap.size[3], 64U);
  EXPECT_EQ(heap.refcount[2], 0U);
  EXPECT_EQ(heap.graph.from(2).size(), 6U);
  // AND it is told that the collector's objects were not found
  EXPECT_TRUE(taken.value().is_cut);
}

TEST_F(ImageOfFreeThreads, WhatHasBeenFreedIsNoObject) {
  // GIVEN a list that holds one without a count, and four pointers of which the last leads to a class
  put_list(kFirst, kItems, 2);
  put(kItems, kSecond);
  put_list(kSecond, kItems, 0);
  put(kSecond + 8, 0);
  put(kSecond + 16, 3);  // merged, and queued
  put(kItems + 8, kItems + 0x100);
  for (const std::uint64_t offset : {0x100U, 0x108U, 0x110U}) put(kItems + offset, 0x7f0012345678);
  put(kItems + 0x118, kListType);
  // THEN both references are lost
  EXPECT_EQ(snapshot().object_count, 3U);
  EXPECT_EQ(taken.value().lost_edges, 2U);
}

TEST_F(ImageOfFreeThreads, FindsWhatOnlyTheCollectorKnows) {
  // GIVEN a segment of the allocator with a page, in which the modules' dict is, and a list that nobody holds
  const cpython::PageLayout& pages = cpython::kPageLayouts[0];
  constexpr std::uint64_t kSegment = cpython::page_size::kSegment, kBlock = 64, kDictType = 0x23000;
  constexpr std::uint64_t kPage = kSegment + cpython::page_size::kSlice + 3 * kBlock, kTracked = 1U << 24U;
  std::vector<std::byte> segment(2 * cpython::page_size::kSlice);
  const auto put_word = [&](std::uint64_t at, std::uint64_t word) {
    std::memcpy(segment.data() + (at - kSegment), &word, sizeof word);
  };
  const std::uint64_t entry = kSegment + pages.segment.table + pages.page.size;
  put_word(kSegment + pages.segment.head_slices, 1);
  put_word(kSegment + pages.segment.slice_count, 2);
  put_word(entry, 1);
  put_word(entry + 8, cpython::collector_heap::kPlain << pages.page.heap_shift | 2U << 16U);  // and two blocks
  put_word(entry + 24, kBlock << 32U);
  for (const auto& [at, type] : {std::pair{kPage, kDictType}, {kPage + kBlock, kListType}}) {
    put_word(at + 8, std::uint64_t{1} << 32U | kTracked);
    put_word(at + layout.object.type, type);
  }
  put_class(kDictType, "dict", 64, type_flag::kDict | type_flag::kCollected);
  put_list(kFirst, kItems, 0);
  put(kInterpreter + fields.interpreter.modules, kPage);
  image.add(Address{kSegment}, segment);
  // THEN the list is found
  const Snapshot heap = snapshot();
  ASSERT_TRUE(taken.ok()) << taken.error().message;
  EXPECT_FALSE(taken.value().is_cut);
  ASSERT_EQ(heap.object_count, 6U);
  EXPECT_EQ(heap.address[5], kPage + kBlock);
  EXPECT_EQ(heap.type_name(5), "list");
}

// An array of NumPy's: as many bytes an element as its description says, in the places of NumPy 1 or 2.
struct ImageOfNumPy : ImageCapture {
  static constexpr std::uint64_t kArrayType = 0x22000, kShape = 0x31100, kElement = 0x31200, kData = 0x32000;

  ImageOfNumPy() {
    put_class(kArrayType, "numpy.ndarray", 96, 0);
    put(kFirst, 1);
    put(kFirst + layout.object.type, kArrayType);
    put(kFirst + array::kData, kData);
    put(kFirst + array::kDimensionCount, 2);
    put(kFirst + array::kDimensions, kShape);
    put(kFirst + array::kDescription, kElement);
    put(kFirst + array::kFlags, array::kOwnsData);
    put(kShape, 10);
    put(kShape + 8, 20);
    put(kElement + array::kElementSize2, 8);
    put(kElement + array::kAlignment2, 8);
  }
  // Of the array, and the buffers there are.
  std::uint64_t size_and_buffers(std::vector<std::pair<std::uint64_t, std::uint64_t>>& buffers) {
    const Result<ImageStatistics> taken = capture();
    if (!taken.ok()) return 0;
    const Snapshot snapshot = read_snapshot(writer.bytes()).take();
    for (const Buffer& each : snapshot.buffers) buffers.emplace_back(each.start, each.size);
    for (Node node = 0; node < snapshot.object_count; ++node)
      if (snapshot.address[node] == kFirst) return snapshot.size[node];
    return 0;
  }
  std::uint64_t size() {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> buffers;
    return size_and_buffers(buffers);
  }
};

TEST_F(ImageOfNumPy, CountsElementsThatAreItsOwn) {
  // GIVEN an array of 10 x 20 elements of 8 bytes
  std::vector<std::pair<std::uint64_t, std::uint64_t>> buffers;
  // THEN its size is that of the object, of its shape (16 a dimension), and of these; and they have an extent
  EXPECT_EQ(size_and_buffers(buffers), 96U + 32 + 1600 + 16);
  EXPECT_EQ(buffers, (std::vector<std::pair<std::uint64_t, std::uint64_t>>{{kData, 1600}}));
}

TEST_F(ImageOfNumPy, KnowsDescriptionsOfNumPyOne) {
  // GIVEN a description that has an int, and addresses behind it
  put(kElement + array::kElementSize1, (std::uint64_t{4} << 32U) | 4);
  put(kElement + array::kElementSize2, 0);
  put(kElement + array::kAlignment2, 0x7f0000000000);
  EXPECT_EQ(size(), 96U + 32 + 800 + 16);
}

TEST_F(ImageOfNumPy, OneWithoutDimensionsHasOneElement) {
  put(kFirst + array::kDimensionCount, 0);
  EXPECT_EQ(size(), 96U + 16);
}

TEST_F(ImageOfNumPy, AViewHasItsShapeOnly) {
  // GIVEN an array that does not own its elements, and what it is a view of
  put(kFirst + array::kFlags, 0);
  put(kFirst + array::kBase, kSecond);
  put_list(kSecond, kItems, 0);
  std::vector<std::pair<std::uint64_t, std::uint64_t>> buffers;
  EXPECT_EQ(size_and_buffers(buffers), 96U + 32);
  EXPECT_TRUE(buffers.empty());
  // THEN it holds that by its name
  const Snapshot snapshot = read_snapshot(writer.bytes()).take();
  ASSERT_FALSE(snapshot.names.empty());
  EXPECT_EQ(snapshot.names[0], "base");
}

TEST_F(ImageOfNumPy, AbsurdShapesHaveNoElements) {
  put(kShape, std::uint64_t{1} << 62U);
  EXPECT_EQ(size(), 96U + 32);
}

TEST_F(ImageOfNumPy, AbsurdElementsAreNone) {
  put(kElement + array::kElementSize2, ~std::uint64_t{0});
  EXPECT_EQ(size(), 96U + 32);
}

TEST_F(ImageOfNumPy, MoreDimensionsThanThereCanBeAreNotRead) {
  put(kFirst + array::kDimensionCount, 0xffffffffU);
  std::vector<std::pair<std::uint64_t, std::uint64_t>> buffers;
  EXPECT_EQ(size_and_buffers(buffers), 96U);
  EXPECT_TRUE(buffers.empty());
}

TEST_F(ImageCapture, EndsWhereAListClaimsMoreThanThereIs) {
  // GIVEN a list of a million million items, in memory that was never touched
  put_list(kFirst, kZeros, std::uint64_t{1} << 36U);
  // THEN that is refused in words, soon
  const Result<ImageStatistics> taken = capture();
  ASSERT_FALSE(taken.ok());
  EXPECT_EQ(taken.error().kind, ErrorKind::kBadInput);
  EXPECT_NE(taken.error().message.find("damaged"), std::string::npos);
}

TEST_F(ImageCapture, CountsReferencesToWhatIsNoObject) {
  // GIVEN a list that holds a number, an address outside of all memory, and an object without a class
  put_list(kFirst, kItems, 3);
  put(kItems, 12345);
  put(kItems + 8, 0x7f0000000000);
  put(kItems + 16, kItems + 0x100);
  // THEN they are told of as lost
  const Result<ImageStatistics> taken = capture();
  ASSERT_TRUE(taken.ok()) << taken.error().message;
  EXPECT_EQ(taken.value().lost_edges, 3U);
  EXPECT_EQ(taken.value().objects, 3U);
}

TEST_F(ImageCapture, RefusesABuildWhoseObjectsAreLaidOutOtherwise) {
  // GIVEN lists of another size
  put_class(kListType, "list", 48, type_flag::kList | type_flag::kCollected);
  put_list(kFirst, kItems, 0);
  // THEN it is said which
  const Result<ImageStatistics> taken = capture();
  ASSERT_FALSE(taken.ok());
  EXPECT_EQ(taken.error().kind, ErrorKind::kUnsupported);
  EXPECT_NE(taken.error().message.find("class list have 48 bytes"), std::string::npos) << taken.error().message;
}

}  // namespace
}  // namespace plimsoll::heap
