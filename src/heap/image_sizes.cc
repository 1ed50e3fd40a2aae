#include <algorithm>

#include "cpython/int_object.h"
#include "heap/image_types.h"

namespace plimsoll::heap {
namespace {

namespace container = cpython::container_field;
namespace flag = cpython::type_flag;
using cpython::kNoField;
using cpython::ValuesStyle;

constexpr std::uint64_t kLargest = kLargestExtent;

// Of what the copy says, which may be anything.
std::uint64_t block_of(const ImageView& view, std::uint64_t bytes) {
  const bool has_gil = view.layout().version.threading == cpython::Version::Threading::kGil;
  return bytes > kLargest ? 0 : heap::block_of(bytes, has_gil ? Allocator::kPymalloc : Allocator::kMimalloc);
}

struct Blocks {
  std::uint64_t own = 0;   // the block of the object, without what stands in front of it
  std::uint64_t rest = 0;  // a buffer
};

std::uint64_t times(std::uint64_t count, std::uint64_t size) { return count > kLargest / 64 ? 0 : count * size; }

Blocks text_blocks(const ImageView& view, Address text, std::uint64_t basic) {
  const auto& unicode = view.layout().unicode;
  const std::uint64_t length = view.word(text, unicode.length);
  const std::uint32_t state = view.number<std::uint32_t>(text, unicode.state) >> unicode.kind_shift;
  const std::uint64_t width = state & 7U;
  if ((state & 8U) == 0) return {basic, times(length + 1, width)};  // of a subclass: its own buffer
  if ((state & 16U) != 0) return {unicode.ascii_size + times(length + 1, 1), 0};
  const bool has_utf8 = view.word(text, unicode.ascii_size + 8) != 0;
  return {unicode.compact_size + times(length + 1, width), has_utf8 ? view.word(text, unicode.ascii_size) + 1 : 0};
}

std::uint64_t int_bytes(const ImageView& view, Address object) {
  const std::uint64_t least = view.layout().version.minor >= 12 ? 1 : 0;
  return 24 + view.head_shift() + times(std::max(cpython::int_digits(view, object).count, least), 4);
}

// What a dict has beside itself.
std::uint64_t dict_tables(const ImageView& view, Address dict) {
  const KeyTable keys = key_table(view, view.pointer_in(dict, container::kDictKeys));
  const Address values = view.pointer_in(dict, container::kDictValues);
  if (!keys.is_sound) return 0;
  // Its values lie in the block of an instance, which counts them: `embedded` of struct _dictvalues.
  const bool is_inside = view.fields().values_style == ValuesStyle::kInside;
  if (is_inside && !is_null(values) && view.number<std::uint8_t>(values, 2) != 0) return 0;
  const std::uint64_t own_keys = keys.references == 1 ? keys.bytes : 0;
  return own_keys + (is_null(values) ? 0 : keys.capacity * 8);
}

std::uint64_t deque_blocks(const ImageView& view, Address deque) {
  constexpr std::uint64_t kItems = 64, kBlock = (kItems + 2) * 8;
  const std::uint64_t used = view.word_in(deque, container::kDequeLeftIndex) + view.item_count(deque);
  return times((used + kItems - 1) / kItems, kBlock);
}

std::uint64_t ordered_nodes(const ImageView& view, Address dict) {
  constexpr std::uint64_t kNode = 32;
  return times(view.word_in(dict, container::kOrderedFastSize), 8) +
         times(view.word_in(dict, container::kDictUsed), kNode);
}

// A frame of the interpreter's, with all its variables and its stack.
std::uint64_t frame_bytes(const ImageView& view, Address frame) {
  const Address code{view.word(frame, view.layout().frame.executable) & ~view.layout().executable_tag_mask};
  const auto& fields = view.fields();
  const std::uint64_t variables = view.number_in<std::uint32_t>(code, fields.code.variables);
  const std::uint64_t stack = view.number_in<std::uint32_t>(code, fields.code.stack_size);
  return fields.frame.variables + times(variables + stack, 8);
}

Blocks class_blocks(const ImageView& view, Address object, const ImageType& type) {
  const std::uint64_t items = times(view.item_count(object), type.item_size);
  const bool is_heap_type = (view.word_in(object, cpython::type_field::kFlags) & flag::kHeapType) != 0;
  const Address keys = view.pointer_in(object, view.fields().heap_type.shared_keys);
  const std::uint64_t shared = is_heap_type ? key_table(view, keys).bytes : 0;
  const std::uint64_t all = is_heap_type ? view.fields().size.type + view.head_shift() + shared : 0;
  return {type.basic_size + items, all > type.basic_size ? all - type.basic_size : 0};
}

// What an array of NumPy's has: its shape, and its elements, if they are its own.
std::uint64_t numpy_bytes(const ImageView& view, Address object) {
  namespace array = cpython::numpy_field;
  constexpr std::uint64_t kLargestAlignment = 4096;
  const std::uint64_t count = view.number_in<std::uint32_t>(object, array::kDimensionCount);
  if (count > array::kMostDimensions) return 0;
  const std::uint64_t shape = 16 * count;
  if ((view.number_in<std::uint32_t>(object, array::kFlags) & array::kOwnsData) == 0) return shape;
  // Where NumPy 2 has the alignment, NumPy 1 has an address, or null.
  const Address element = view.pointer_in(object, array::kDescription);
  const std::uint64_t alignment = view.word_in(element, array::kAlignment2);
  const bool is_second = alignment != 0 && alignment < kLargestAlignment;
  const std::uint64_t size = is_second ? view.word_in(element, array::kElementSize2)
                                       : view.number_in<std::uint32_t>(element, array::kElementSize1);
  const std::uint64_t elements = numpy_count(view, object, view.head_shift());
  return elements == 0 || size > kLargest / elements ? shape : shape + elements * size;
}

Blocks blocks_of(const ImageView& view, Address object, const ImageType& type) {
  const auto& fields = view.fields();
  const std::uint64_t shift = view.head_shift();
  const Blocks basic{type.basic_size, 0};
  if (type.is(flag::kText)) return text_blocks(view, object, type.basic_size);
  if (type.is(flag::kInt)) return {int_bytes(view, object), 0};
  switch (type.shape) {
    case ImageShape::kList:
    case ImageShape::kListLike: {
      const std::uint64_t items = times(view.word_in(object, container::kListAllocated), 8);
      return {basic.own, items == 0 ? 0 : fields.list_head + items};
    }
    case ImageShape::kDict:
    case ImageShape::kDictLike: return {basic.own, dict_tables(view, object)};
    case ImageShape::kOrderedDict: return {basic.own, dict_tables(view, object) + ordered_nodes(view, object)};
    case ImageShape::kSet: {
      const bool is_small =
          view.word_in(object, container::kSetTable) == raw(view.place_in(object, container::kSetSmallTable));
      return {basic.own, is_small ? 0 : times(view.word_in(object, container::kSetMask) + 1, 16)};
    }
    case ImageShape::kDeque: return {basic.own, deque_blocks(view, object)};
    case ImageShape::kClass: return class_blocks(view, object, type);
    case ImageShape::kGenerator:
      if (fields.generator.frame == kNoField) return basic;
      return {shift + fields.generator.frame + frame_bytes(view, view.place_in(object, fields.generator.frame)), 0};
    case ImageShape::kFrame:
      if (fields.frame_object.frame == kNoField) break;
      return {shift + fields.frame_object.data + frame_bytes(view, view.pointer_in(object, fields.frame_object.frame)),
              0};
    default: break;
  }
  if (type.own_memory == OwnMemory::kByteArray) {
    const std::uint64_t allocated = view.word_in(object, container::kByteArrayAllocated);
    return {basic.own, allocated == 0 ? 0 : allocated + fields.byte_array_extra};
  }
  if (type.own_memory == OwnMemory::kArray) {
    // allocated, and in its description the bytes of an item.
    const auto width = view.number<std::uint32_t>(view.pointer_in(object, 40), 4);
    return {basic.own, times(view.word_in(object, 32), width)};
  }
  if (type.own_memory == OwnMemory::kNumPy) return {basic.own, numpy_bytes(view, object)};
  return {basic.own + (type.item_size == 0 ? 0 : times(view.item_count(object), type.item_size)), 0};
}

NativeExtent native_memory_of(const ImageView& view, Address object, const ImageType& type) {
  if (!type.facets.native) return {};
  const std::uint64_t head = 16 + view.head_shift();
  return native_extent(
      *type.facets.native, object, head, type.basic_size,
      [&](std::uint64_t offset) { return view.word(object, offset); },
      [&](std::uint64_t offset) { return view.number<std::uint32_t>(object, offset); });
}

}  // namespace

ObjectSize size_of(const ImageView& view, Address object, const ImageType& type) {
  ObjectSize size;
  const Blocks blocks = blocks_of(view, object, type);
  cpython::Attributes attributes;
  if (type.has_attributes && type.shape != ImageShape::kClass) attributes = attributes_of(view, object, type);
  size.own = block_of(view, type.header + blocks.own + type.sentinel + attributes.inline_bytes);
  add_own(size, type.own_memory, block_of(view, blocks.rest));
  size.block = own_extent(type.own_memory, view, object, view.head_shift(), blocks.rest);
  size.add_block(block_of(view, attributes.block_bytes));
  size.native = native_memory_of(view, object, type);
  size.large += block_of(view, size.native.size);
  return size;
}

}  // namespace plimsoll::heap
