// heap/own_memory_test.cc: objects drawn by hand, with blocks beside them.
#include "heap/own_memory.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace plimsoll::heap {
namespace {

namespace field = cpython::container_field;
namespace array = cpython::numpy_field;

constexpr std::uint64_t kObject = 0x10000, kBlock = 0x7f0000000010;

// Words at addresses; 0 where none is drawn.
struct Drawn {
  std::map<std::uint64_t, std::uint64_t> words;
  [[nodiscard]] std::uint64_t word(Address at, std::uint64_t offset) const {
    const auto found = words.find(raw(at) + offset);
    return found != words.end() ? found->second : 0;
  }
  template <typename Number>
  [[nodiscard]] Number number(Address at, std::uint64_t offset) const {
    return static_cast<Number>(word(at, offset));
  }
  // What an object has in fields, where its head is `shift` longer.
  [[nodiscard]] NativeExtent extent(OwnMemory kind, std::uint64_t bytes, std::uint64_t shift = 0) const {
    return own_extent(kind, *this, Address{kObject}, shift, bytes);
  }
};

TEST(OwnMemory, IsKnownByTheNameOfAClassInCAndItsSize) {
  EXPECT_EQ(own_memory_of("list", 40), OwnMemory::kList);
  EXPECT_EQ(own_memory_of("frozenset", 200), OwnMemory::kSet);
  EXPECT_EQ(own_memory_of("numpy.ndarray", 96), OwnMemory::kNumPy);
  EXPECT_EQ(own_memory_of("collections.OrderedDict", 200), OwnMemory::kNone);
  // and a class that only bears the name has no such fields
  EXPECT_EQ(own_memory_of("numpy.ndarray", 48), OwnMemory::kNone);
}

TEST(OwnMemory, LiesWhereTheObjectSays) {
  const auto drawn = [](std::uint32_t offset) { return Drawn{{{kObject + offset, kBlock}}}; };
  for (const auto& [kind, offset] : {std::pair{OwnMemory::kList, field::kListItems},
                                     {OwnMemory::kDict, field::kDictKeys},
                                     {OwnMemory::kSet, field::kSetTable},
                                     {OwnMemory::kArray, field::kArrayItems}}) {
    EXPECT_EQ(drawn(offset).extent(kind, 4096).start, kBlock);
    EXPECT_EQ(drawn(offset).extent(kind, 4096).size, 4096U);
    // Without a GIL heads are longer, and the block of a list has a word in front of the items.
    const std::uint64_t in_front = kind == OwnMemory::kList ? 8 : 0;
    EXPECT_EQ(drawn(offset + 16).extent(kind, 4096, 16).start, kBlock - in_front);
  }
}

TEST(OwnMemory, OfTheSmallObjectAllocatorIsNoExtent) {
  const Drawn drawn{{{kObject + field::kListItems, kBlock}}};
  EXPECT_EQ(drawn.extent(OwnMemory::kList, 512).size, 0U);
  EXPECT_EQ(drawn.extent(OwnMemory::kList, 520).size, 520U);
}

TEST(OwnMemory, OfADictWithSharedKeysIsNotItsTable) {
  const Drawn drawn{{{kObject + field::kDictKeys, kBlock}, {kObject + field::kDictValues, kBlock + 4096}}};
  EXPECT_EQ(drawn.extent(OwnMemory::kDict, 4096).size, 0U);
}

TEST(OwnMemory, OfAByteArrayIsWithoutTheHeadOfAnObjectThatHoldsIt) {
  // GIVEN a bytearray of 1000 bytes; from 3.15 on they are in a bytes object, whose 33 bytes its size has
  const Drawn drawn{{{kObject + field::kByteArrayAllocated, 1000}, {kObject + field::kByteArrayBlock, kBlock}}};
  for (const std::uint64_t bytes : {1000U, 1033U}) {
    EXPECT_EQ(drawn.extent(OwnMemory::kByteArray, bytes).start, kBlock);
    EXPECT_EQ(drawn.extent(OwnMemory::kByteArray, bytes).size, 1000U);
  }
}

TEST(OwnMemory, OfAnArrayOfNumPysIsWhatItOwns) {
  // GIVEN an array of two dimensions: 32 bytes of its size are what they are, in another block
  Drawn drawn{{{kObject + array::kData, kBlock},
               {kObject + array::kDimensionCount, 2},
               {kObject + array::kFlags, 0x500 | array::kOwnsData}}};
  EXPECT_EQ(drawn.extent(OwnMemory::kNumPy, 8032).start, kBlock);
  EXPECT_EQ(drawn.extent(OwnMemory::kNumPy, 8032).size, 8000U);
  // WHEN it is a view THEN it owns nothing
  drawn.words[kObject + array::kFlags] = 0x500;
  EXPECT_EQ(drawn.extent(OwnMemory::kNumPy, 8032).size, 0U);
  // and absurd numbers of dimensions leave nothing
  drawn.words[kObject + array::kFlags] = array::kOwnsData;
  drawn.words[kObject + array::kDimensionCount] = 0xffffffffU;
  EXPECT_EQ(drawn.extent(OwnMemory::kNumPy, 8032).size, 0U);
}

TEST(OwnMemory, IsNowhereWhereNoProcessHasMemory) {
  for (const std::uint64_t wrong : {std::uint64_t{0}, ~std::uint64_t{0}, std::uint64_t{1} << 60U})
    EXPECT_EQ((Drawn{{{kObject + field::kListItems, wrong}}}.extent(OwnMemory::kList, 4096).size), 0U);
  const Drawn drawn{{{kObject + field::kListItems, kBlock}}};
  EXPECT_EQ(drawn.extent(OwnMemory::kList, std::uint64_t{1} << 60U).size, 0U);
}

TEST(OwnMemory, NumPyNeverTakesItFromTheSmallObjectAllocator) {
  ObjectSize size;
  add_own(size, OwnMemory::kNumPy, 48);
  EXPECT_EQ(size.large, 48U);
  add_own(size, OwnMemory::kList, 48);
  EXPECT_EQ(size.small, 48U);
  EXPECT_EQ(size.total(), 96U);
}

TEST(OwnMemory, ReferencesThatAreNotShownAreNamed) {
  ASSERT_EQ(hidden_fields(OwnMemory::kNumPy).size(), 2U);
  EXPECT_STREQ(hidden_fields(OwnMemory::kNumPy)[0].name, "base");
  EXPECT_TRUE(hidden_fields(OwnMemory::kList).empty());
}

// An array of objects of so many dimensions, with a description beside it.
Drawn array_of_objects(std::vector<std::uint64_t> shape) {
  constexpr std::uint64_t kDescription = 0x20000, kShape = 0x30000;
  Drawn drawn{{{kObject + array::kData, kBlock},
               {kObject + array::kDimensionCount, shape.size()},
               {kObject + array::kDimensions, kShape},
               {kObject + array::kDescription, kDescription},
               {kObject + array::kFlags, array::kOwnsData},
               {kDescription + array::kTypeNumber, array::kObjects}}};
  for (std::size_t i = 0; i < shape.size(); ++i) drawn.words[kShape + 8 * i] = shape[i];
  return drawn;
}

TEST(OwnMemory, ElementsOfAnArrayOfObjectsAreReferences) {
  const auto count = [](const Drawn& drawn, OwnMemory kind = OwnMemory::kNumPy) {
    return hidden_elements(kind, drawn, Address{kObject}, 0).count;
  };
  EXPECT_EQ(raw(hidden_elements(OwnMemory::kNumPy, array_of_objects({3}), Address{kObject}, 0).first), kBlock);
  EXPECT_EQ(count(array_of_objects({3})), 3U);
  EXPECT_EQ(count(array_of_objects({3, 4})), 12U);
  EXPECT_EQ(count(array_of_objects({})), 1U) << "a scalar";
  EXPECT_EQ(count(array_of_objects({3, 0, 5})), 0U);
  EXPECT_EQ(count(array_of_objects({3}), OwnMemory::kList), 0U);
  // but not where they are numbers, another's, or absurd
  Drawn other = array_of_objects({3});
  other.words[0x20000 + array::kTypeNumber] = 12;
  EXPECT_EQ(count(other), 0U);
  other = array_of_objects({3});
  other.words[kObject + array::kFlags] = 0;
  EXPECT_EQ(count(other), 0U);
  other = array_of_objects({3});
  other.words[kObject + array::kData] = 0;
  EXPECT_EQ(count(other), 0U);
  EXPECT_EQ(count(array_of_objects({std::uint64_t{1} << 44U})), 0U);
  EXPECT_EQ(count(array_of_objects({std::uint64_t{1} << 40U, std::uint64_t{1} << 40U})), 0U);
  EXPECT_EQ(count(array_of_objects(std::vector<std::uint64_t>(65, 1))), 0U);
}

}  // namespace
}  // namespace plimsoll::heap
