// heap/own_memory.h: what is known of classes in C whose objects keep what is theirs in a block beside them: at which
// address that is, and which references they show nobody.
//
// How large the block is, the object's size has already: __sizeof__ tells it, or image_sizes.cc. All offsets are those
// of builds with a GIL, from 3.9 to 3.15; `shift` is how much longer an object's head is than there.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/ids.h"
#include "cpython/object_fields.h"
#include "heap/object_size.h"

namespace plimsoll::heap {

// How objects keep it.
enum class OwnMemory : std::uint8_t {
  kNone,  // not, or nothing is known of it
  kList,
  kDict,
  kSet,
  kByteArray,
  kArray,    // array.array
  kBytesIO,  // in a bytes object, which has the size
  kNumPy,    // numpy.ndarray: also its dimensions, in another block
};

// Of the class that is so called in C and whose objects have so many bytes.
OwnMemory own_memory_of(std::string_view c_name, std::uint64_t basic_size);

// Counts what an object has beside itself. NumPy never takes it from the small-object allocator.
inline void add_own(ObjectSize& size, OwnMemory kind, std::uint64_t bytes) {
  if (kind == OwnMemory::kNumPy)
    size.large += bytes;
  else
    size.add_block(bytes);
}

// A reference that objects have and that neither tp_traverse nor tp_members tells of in all versions.
struct HiddenField {
  std::uint32_t offset = 0;
  const char* name = nullptr;
  std::uint32_t flag = 0;  // where a byte is that is 0 in objects without the field; 0: all have it

  // Where the head of objects is so much longer.
  [[nodiscard]] constexpr HiddenField behind(std::uint32_t more) const {
    return {offset + more, name, flag == 0 ? 0 : flag + more};
  }
};
std::span<const HiddenField> hidden_fields(OwnMemory kind);
// Likewise of the class that is so called in C, which has no others, and whose objects have so many bytes: they keep
// nothing beside them.
std::span<const HiddenField> hidden_fields(std::string_view c_name, std::uint64_t basic_size);

// How many elements an array of NumPy's has; none if that cannot be.
template <typename Memory>
std::uint64_t numpy_count(const Memory& memory, Address object, std::uint64_t shift) {
  namespace array = cpython::numpy_field;
  const std::uint64_t dimensions = memory.template number<std::uint32_t>(object, array::kDimensionCount + shift);
  if (dimensions > array::kMostDimensions) return 0;
  const Address shape{memory.word(object, array::kDimensions + shift)};
  std::uint64_t count = 1;
  for (std::uint64_t i = 0; i < dimensions; ++i) {
    const std::uint64_t length = memory.word(shape, 8 * i);
    if (length != 0 && count > kLargestExtent / length) return 0;
    count *= length;
  }
  return count;
}

// References that stand in a block and that the object shows nobody; null ones may be among them.
struct HiddenElements {
  Address first{};
  std::uint64_t count = 0;
};

// Those of an array of objects of NumPy's, if its elements are its own: a view of them has a base that shows them.
template <typename Memory>
HiddenElements hidden_elements(OwnMemory kind, const Memory& memory, Address object, std::uint64_t shift) {
  namespace array = cpython::numpy_field;
  if (kind != OwnMemory::kNumPy) return {};
  const auto number = [&](Address at, std::uint64_t offset) {
    return memory.template number<std::uint32_t>(at, offset + shift);
  };
  const Address description{memory.word(object, array::kDescription + shift)};
  const Address first{memory.word(object, array::kData + shift)};
  const bool is_own = (number(object, array::kFlags) & array::kOwnsData) != 0;
  if (!is_own || is_null(first) || is_null(description)) return {};
  if (number(description, array::kTypeNumber) != array::kObjects) return {};
  const std::uint64_t count = numpy_count(memory, object, shift);
  return count <= kLargestExtent / sizeof(Address) ? HiddenElements{first, count} : HiddenElements{};
}

// Where the block is of an object whose size has `bytes` beside itself; of no bytes if it is none of the system's
// allocator. `memory` reads words and numbers at an address and an offset.
template <typename Memory>
NativeExtent own_extent(OwnMemory kind, const Memory& memory, Address object, std::uint64_t shift,
                        std::uint64_t bytes) {
  namespace field = cpython::container_field;
  namespace array = cpython::numpy_field;
  const auto word = [&](std::uint64_t offset) { return memory.word(object, offset + shift); };
  const auto number = [&](std::uint64_t offset) {
    return std::uint64_t{memory.template number<std::uint32_t>(object, offset + shift)};
  };
  NativeExtent found;
  switch (kind) {
    case OwnMemory::kNone:
    case OwnMemory::kBytesIO: return {};
    case OwnMemory::kList: {
      // In front of the items, free-threaded builds have how many there is room for.
      const std::uint64_t in_front = shift == 0 ? 0 : 8;
      found = {word(field::kListItems) - in_front, bytes};
      break;
    }
    case OwnMemory::kDict:
      // Values of its own beside shared keys are another block.
      if (word(field::kDictValues) != 0) return {};
      found = {word(field::kDictKeys), bytes};
      break;
    case OwnMemory::kSet: found = {word(field::kSetTable), bytes}; break;
    case OwnMemory::kByteArray:
      // From 3.15 on it is in a bytes object, whose head stands before it.
      found = {word(field::kByteArrayBlock), std::min(bytes, word(field::kByteArrayAllocated))};
      break;
    case OwnMemory::kArray: found = {word(field::kArrayItems), bytes}; break;
    case OwnMemory::kNumPy:
      if ((number(array::kFlags) & array::kOwnsData) == 0) return {};
      const std::uint64_t shape = 16 * number(array::kDimensionCount);
      found = {word(array::kData), bytes - std::min(bytes, shape)};
      break;
  }
  return found.size > kLargestSmallBlock && can_be(found) ? found : NativeExtent{};
}

}  // namespace plimsoll::heap
