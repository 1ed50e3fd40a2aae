#include "heap/image_types.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

namespace plimsoll::heap {
namespace {

namespace field = cpython::type_field;
namespace flag = cpython::type_flag;
using cpython::kNoField;

constexpr std::uint64_t kLargestObject = std::uint64_t{1} << 20U;
constexpr int kLongestChain = 256;  // of base classes

// Classes in C that hold nothing.
constexpr std::array<std::string_view, 14> kLeaves{
    "object", "NoneType", "ellipsis", "NotImplementedType", "bool",        "float",         "complex",
    "int",    "str",      "bytes",    "bytearray",          "array.array", "NoDefaultType", "types.CapsuleType"};

// Classes in C of which each field that points to an object holds a reference to it, so that reading all of them is
// exact. (From CPython's sources, 3.9 to 3.15.)
constexpr std::array<std::string_view, 63> kOwners{"function",
                                                   "builtin_function_or_method",
                                                   "builtin_method",
                                                   "method",
                                                   "instancemethod",
                                                   "cell",
                                                   "property",
                                                   "classmethod",
                                                   "staticmethod",
                                                   "super",
                                                   "slice",
                                                   "range",
                                                   "mappingproxy",
                                                   "method_descriptor",
                                                   "classmethod_descriptor",
                                                   "member_descriptor",
                                                   "getset_descriptor",
                                                   "wrapper_descriptor",
                                                   "method-wrapper",
                                                   "traceback",
                                                   "types.SimpleNamespace",
                                                   "types.GenericAlias",
                                                   "types.UnionType",
                                                   "typing.Union",
                                                   "enumerate",
                                                   "reversed",
                                                   "zip",
                                                   "map",
                                                   "filter",
                                                   "iterator",
                                                   "callable_iterator",
                                                   "list_iterator",
                                                   "list_reverseiterator",
                                                   "tuple_iterator",
                                                   "set_iterator",
                                                   "dict_keys",
                                                   "dict_values",
                                                   "dict_items",
                                                   "dict_keyiterator",
                                                   "dict_valueiterator",
                                                   "dict_itemiterator",
                                                   "str_iterator",
                                                   "str_ascii_iterator",
                                                   "bytes_iterator",
                                                   "range_iterator",
                                                   "longrange_iterator",
                                                   "coroutine_wrapper",
                                                   "async_generator_asend",
                                                   "async_generator_athrow",
                                                   "managedbuffer",
                                                   "hamt",
                                                   "hamt_array_node",
                                                   "hamt_bitmap_node",
                                                   "hamt_collision_node",
                                                   "Context",
                                                   "_contextvars.Context",
                                                   "ContextVar",
                                                   "_contextvars.ContextVar",
                                                   "collections.defaultdict",
                                                   "functools.partial",
                                                   "frozendict",
                                                   "_io.TextIOWrapper",
                                                   "numpy.ndarray"};

template <std::size_t kCount>
bool has(const std::array<std::string_view, kCount>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

bool ImageTypes::is_count(std::uint64_t count) const {
  // 32 bits; above them 3.14 and later have 16 bits of flags. A freed object has none left, or a pointer here.
  const bool has_flags = view_.layout().version.minor >= 14;
  return (count & 0xffffffffU) != 0 && ((count >> 32U) & (has_flags ? 0xffffU : 0xffffffffU)) == 0;
}

const ImageType* ImageTypes::of_divided(Address object) {
  std::array<std::uint64_t, 4> head;  // its thread; flags, a lock, the collector's bits and the thread's count; ...
  if (!view_.image().read(object, head.data(), sizeof head) || !is_count(head[1], head[2])) return nullptr;
  return of(Address{head[3]});
}

// Both are 0 of an object that has been freed. Four pointers side by side, the last to a class, are not rare: what is
// no object has other bits set where flags are, or shows a count that there cannot be.
bool ImageTypes::is_count(std::uint64_t word, std::uint64_t shared) const {
  constexpr std::int64_t kMost = std::int64_t{1} << 32U, kDeferred = (std::int64_t{1} << 60U) - 1;
  constexpr unsigned kSharedFlags = 2, kLock = 16, kLockBits = 2, kLockSize = 8, kOwn = 32;
  const std::int64_t count = static_cast<std::int64_t>(shared) >> kSharedFlags;
  const bool has_flags = view_.layout().version.minor >= 14;
  if (!has_flags && (word & 0xffffU) != 0) return false;
  if (((word >> kLock) & ((1U << kLockSize) - 1)) >> kLockBits != 0) return false;
  const auto is_near = [&](std::int64_t middle) { return count > middle - kMost && count < middle + kMost; };
  return (word >> kOwn != 0 || count != 0) && (is_near(0) || is_near(kDeferred));
}

// Whether a count is one of those that objects begin with that shall never be freed, and which changes a little all the
// same where Python is older than that.
bool ImageTypes::is_immortal(std::uint32_t count) const {
  constexpr std::uint32_t kLeast = 1U << 31U;                       // from 3.12 on
  constexpr std::uint32_t kStatic = 999'999'999, kFar = 1U << 24U;  // what is part of the program file of 3.11
  const std::uint32_t minor = view_.layout().version.minor;
  if (minor == 11) return count > kStatic - kFar && count < kStatic + kFar;
  return minor > 11 && count >= kLeast;
}

// Where a program lies low in memory, its static structures do, too: a pointer to one of those that stands before a
// pointer to a class, as in a table of a module's classes, looks like a count.
bool ImageTypes::is_low_address(std::uint32_t count) const {
  constexpr std::uint32_t kLowest = 1U << 16U;  // of what is mapped
  std::uint64_t word = 0;
  return count >= kLowest && (count & 7U) == 0 && view_.image().read(Address{count}, &word, sizeof word);
}

// The first word of a freed block is a link to the next; that is where an object has its count, or its link to the next
// one on the collector's list, whose link back then leads elsewhere.
bool ImageTypes::is_likely(Address object, const ImageType& type) const {
  constexpr std::uint32_t kMany = 1U << 24U;
  constexpr std::uint64_t kLinks = 16, kFlags = 3;
  if (view_.head_shift() != 0) return true;  // whose counts are not where that link is
  const auto count = view_.number<std::uint32_t>(object, 0);
  if (count >= kMany && !is_immortal(count)) return false;
  if (is_low_address(count)) return false;
  if (!type.is(flag::kCollected)) return true;
  const bool is_class = type.is(flag::kType);
  if (is_class && (view_.word_in(object, field::kFlags) & flag::kHeapType) == 0) return true;  // which has no links
  const Address links{raw(object) - kLinks};
  const Address next{view_.word(links, 0) & ~kFlags};
  return is_null(next) || (view_.word(next, 8) & ~kFlags) == raw(links);
}

std::uint32_t ImageTypes::reference_count(Address object) const {
  constexpr std::uint32_t kImmortal = 1U << 29U;  // the least that any version takes for it
  if (view_.head_shift() != 0) return 0;
  const auto count = view_.number<std::uint32_t>(object, 0);
  return count >= kImmortal ? 0 : count;
}

const ImageType* ImageTypes::add(Address type) {
  constexpr std::size_t kMostRejected = 1U << 16U, kMostTypes = 1U << 22U;
  if ((raw(type) & 7U) != 0 || is_null(type)) return nullptr;
  if (!cpython::is_class(view_, type_type_, type) || types_.size() >= kMostTypes) {
    // Known to be none, so that what many words lead to is looked at once; but not without bounds.
    if (rejected_++ < kMostRejected) by_address_.emplace(raw(type), nullptr);
    return nullptr;
  }
  ImageType& added = types_.emplace_back();
  by_address_.emplace(raw(type), &added);
  added.address = type;
  added.number = static_cast<std::uint32_t>(types_.size() - 1);
  added.flags = view_.word_in(type, field::kFlags);
  added.basic_size = view_.word_in(type, field::kBasicSize);
  added.item_size = view_.word_in(type, field::kItemSize);
  added.dict_offset = view_.number_in<std::int64_t>(type, field::kDictOffset);
  const cpython::ObjectFields& fields = view_.fields();
  added.has_attributes = added.dict_offset != 0 || added.is(fields.managed_dict_flag);
  const bool has_links = added.is(flag::kCollected) && view_.head_shift() == 0;
  added.header = (has_links ? 16 : 0) + (added.is(fields.pre_header_flags) ? 16 : 0);
  added.sentinel = added.is(flag::kHeapType) || type == type_type_ ? added.item_size : 0;
  set_members(added);
  set_shape(added, solid_base(type));
  check_size(added);
  return &added;
}

bool ImageTypes::is_of_python(Address type) const {
  if ((view_.word_in(type, field::kFlags) & flag::kHeapType) == 0) return false;
  // The text of such a class's name is that of the str it has for it.
  const Address name = view_.pointer_in(type, view_.fields().heap_type.name);
  const Address text = view_.pointer_in(type, field::kName);
  const auto& unicode = view_.layout().unicode;
  if (is_null(name) || is_null(text)) return false;
  constexpr std::uint32_t kLengthAndPointer = 8;  // utf8_length stands before utf8
  return text == offset_by(name, unicode.ascii_size) ||
         text == view_.pointer(name, unicode.ascii_size + kLengthAndPointer);
}

Address ImageTypes::solid_base(Address type) const {
  for (int i = 0; i < kLongestChain && is_of_python(type) && view_.spend(4); ++i) {
    const Address base = view_.pointer_in(type, field::kBase);
    if (is_null(base)) break;
    type = base;
  }
  return type;
}

void ImageTypes::set_members(ImageType& type) const {
  namespace member = cpython::member_field;
  constexpr std::size_t kMostMembers = 4096;
  Address base = type.address;
  for (int i = 0; i < kLongestChain && !is_null(base) && view_.spend(2);
       ++i, base = view_.pointer_in(base, field::kBase)) {
    Address at = view_.pointer_in(base, field::kMembers);
    for (; !is_null(at) && type.members.size() < kMostMembers; at = offset_by(at, member::kSize)) {
      const Address name = view_.pointer(at, member::kName);
      if (is_null(name) || !view_.spend(member::kSize / 8)) break;
      const auto kind = view_.number<std::uint32_t>(at, member::kType);
      const std::uint64_t offset = view_.word(at, member::kOffset);
      const bool is_reference = kind == member::kObject || kind == member::kObjectEx;
      const bool is_dict = type.dict_offset > 0 && offset == static_cast<std::uint64_t>(type.dict_offset);
      if (!is_reference || is_dict || offset < head() || offset > kLargestObject || offset + 8 > type.basic_size)
        continue;
      const auto is_it = [&](const ImageMember& known) { return known.offset == offset; };
      if (std::none_of(type.members.begin(), type.members.end(), is_it))
        type.members.push_back({static_cast<std::uint32_t>(offset), c_text(view_, name)});
    }
  }
}

namespace {

// How objects of a class in C keep what they hold; kWords if that is not among what is known here.
ImageShape shape_by_name(std::string_view name, std::uint64_t flags) {
  if (name == "collections.OrderedDict") return ImageShape::kOrderedDict;
  if ((flags & flag::kType) != 0) return ImageShape::kClass;
  if ((flags & flag::kTuple) != 0) return name == "tuple" ? ImageShape::kTuple : ImageShape::kTupleLike;
  if ((flags & flag::kList) != 0) return name == "list" ? ImageShape::kList : ImageShape::kListLike;
  if ((flags & flag::kDict) != 0) return name == "dict" ? ImageShape::kDict : ImageShape::kDictLike;
  if (name == "frozendict") return ImageShape::kDictLike;
  if ((flags & (flag::kInt | flag::kBytes | flag::kText)) != 0 || has(kLeaves, name)) return ImageShape::kLeaf;
  if (name == "set" || name == "frozenset") return ImageShape::kSet;
  if (name == "code") return ImageShape::kCode;
  if (name == "frame") return ImageShape::kFrame;
  if (name == "module") return ImageShape::kModule;
  if (name == "generator" || name == "coroutine" || name == "async_generator") return ImageShape::kGenerator;
  if (name == "collections.deque") return ImageShape::kDeque;
  if (name == "_queue.SimpleQueue") return ImageShape::kSimpleQueue;
  if (name == "weakref" || name == "weakref.ReferenceType" || name.starts_with("weakproxy") ||
      name.starts_with("weakcallableproxy") || name == "weakref.ProxyType" || name == "weakref.CallableProxyType")
    return ImageShape::kWeakref;
  return ImageShape::kWords;
}

// Whether a class with this shape and name is itself what the shape is named after.
bool is_exact(ImageShape shape, std::string_view name) {
  switch (shape) {
    case ImageShape::kWords:
    case ImageShape::kTupleLike:
    case ImageShape::kListLike: return false;
    case ImageShape::kDictLike: return name == "frozendict";
    case ImageShape::kClass: return name == "type";
    default: return true;
  }
}

// What its objects own beside them, with a class in C below it whose objects have so many bytes.
OwnMemory kind_of_memory(const ImageType& type, std::uint64_t basic_size) {
  switch (type.shape) {
    case ImageShape::kList:
    case ImageShape::kListLike: return OwnMemory::kList;
    case ImageShape::kDict:
    case ImageShape::kDictLike: return OwnMemory::kDict;
    case ImageShape::kSet: return OwnMemory::kSet;
    default: return own_memory_of(type.c_name, basic_size);
  }
}

ImageShape of_subclass(ImageShape shape) {
  if (shape == ImageShape::kTuple) return ImageShape::kTupleLike;
  if (shape == ImageShape::kList) return ImageShape::kListLike;
  if (shape == ImageShape::kDict) return ImageShape::kDictLike;
  return shape;
}

}  // namespace

// A class in C may add fields to one that is known, the root.
void ImageTypes::set_shape(ImageType& type, Address solid) const {
  type.c_name = c_text(view_, view_.pointer_in(solid, field::kName));
  std::string name = type.c_name;
  Address root = solid;
  type.shape = shape_by_name(name, view_.word_in(solid, field::kFlags));
  Address base = solid;
  for (int i = 0; i < kLongestChain && !is_exact(type.shape, name); ++i) {
    base = view_.pointer_in(base, field::kBase);
    if (is_null(base)) break;
    const std::string name_of_base = c_text(view_, view_.pointer_in(base, field::kName));
    if (name_of_base == "object") break;
    const ImageShape of_base = shape_by_name(name_of_base, view_.word_in(base, field::kFlags));
    if (of_base == ImageShape::kWords) continue;
    type.shape = of_base;
    root = base;
    name = name_of_base;
  }
  if (root != type.address) type.shape = of_subclass(type.shape);
  const std::uint64_t shift = view_.head_shift(), size = view_.word_in(solid, field::kBasicSize) - shift;
  type.own_memory = kind_of_memory(type, size);
  const std::span<const HiddenField> all_fields = hidden_fields(type.c_name, size);
  for (const std::span<const HiddenField> fields : {hidden_fields(type.own_memory), all_fields})
    for (const HiddenField& each : fields) {
      const HiddenField hidden = each.behind(view_.head_shift());
      type.members.push_back({hidden.offset, hidden.name, hidden.flag});
    }
  std::uint64_t from = view_.word_in(root, field::kBasicSize);
  const bool is_own = type.shape == ImageShape::kWords || type.shape == ImageShape::kModule ||
                      type.shape == ImageShape::kGenerator || type.shape == ImageShape::kFrame ||
                      type.shape == ImageShape::kSimpleQueue;
  if (is_own) from = head();
  // What stands before is told of above, or is not Python's.
  if (type.own_memory == OwnMemory::kNumPy) from = shift + cpython::numpy_field::kLater;
  if (!all_fields.empty()) from = shift + size;
  set_words(type, solid, from, end_of_words(type, solid));
  const bool is_known = has(kOwners, type.c_name) || type.is(flag::kException) || (is_own && root == solid);
  type.is_guessed =
      !type.words.empty() &&
      (!is_known || (type.shape == ImageShape::kWords && !type.is(flag::kException) && !has(kOwners, type.c_name)));
  const bool has_class = type.is(flag::kHeapType) && type.is(flag::kCollected);
  const bool has_fields = type.has_attributes || !type.members.empty() || !type.words.empty() || has_class;
  if (type.shape == ImageShape::kLeaf && has_fields) type.shape = ImageShape::kWords;
  const bool has_items = type.item_size == 8 && !type.is(flag::kInt | flag::kBytes | flag::kText);
  if (type.shape == ImageShape::kWords && !has_fields && !has_items) type.shape = ImageShape::kLeaf;
}

// What stands there, and behind it, is no reference of the object's.
std::uint64_t ImageTypes::end_of_words(const ImageType& type, Address solid) const {
  const cpython::ObjectFields& fields = view_.fields();
  const std::uint64_t shift = view_.head_shift();
  // What follows is set in coroutines and async generators only.
  if (type.shape == ImageShape::kGenerator && fields.generator.frame != kNoField)
    return shift + fields.generator.exception + 8;
  if (type.shape == ImageShape::kFrame) return shift + fields.frame_object.data;
  // What follows its weak references is borrowed: a placeholder (3.14).
  if (type.c_name == "functools.partial") return view_.word_in(solid, field::kWeakListOffset);
  // What follows its name and its default is borrowed: the value that was asked for last.
  if (type.c_name == "ContextVar" || type.c_name == "_contextvars.ContextVar") return head() + 16;
  return view_.word_in(solid, field::kBasicSize);
}

// Fields of C classes that are not told of otherwise.
void ImageTypes::set_words(ImageType& type, Address solid, std::uint64_t from, std::uint64_t end) const {
  const std::uint64_t weak_list = view_.word_in(solid, field::kWeakListOffset);
  const std::uint64_t shift = view_.head_shift();
  const cpython::ObjectFields& fields = view_.fields();
  // Generators, and from 3.11 on frames, have items and do not say how many.
  const bool is_frame = type.shape == ImageShape::kFrame && fields.frame_object.frame != kNoField;
  const bool has_count = type.item_size != 0 && type.shape != ImageShape::kGenerator && !is_frame;
  const auto is_told = [&](std::uint64_t offset) {
    const bool is_count = has_count && offset == view_.layout().object.var_size;
    const bool is_dict = type.dict_offset > 0 && offset == static_cast<std::uint64_t>(type.dict_offset);
    const bool is_definition = type.shape == ImageShape::kModule && offset == fields.module.definition + shift;
    const bool is_frames = type.shape == ImageShape::kFrame &&
                           (offset == fields.frame_object.frame + shift || offset == fields.frame_object.generator);
    const auto is_it = [&](const ImageMember& member) { return member.offset == offset; };
    return is_count || is_dict || is_definition || is_frames || offset == weak_list ||
           std::any_of(type.members.begin(), type.members.end(), is_it);
  };
  for (std::uint64_t offset = from; offset + 8 <= std::min(end, type.basic_size); offset += 8)
    if (!is_told(offset)) type.words.push_back(static_cast<std::uint32_t>(offset));
}

void ImageTypes::check_size(const ImageType& type) {
  const auto& sizes = view_.fields().size;
  const bool is_built_in = !type.is(flag::kHeapType);
  const std::string name = c_text(view_, view_.pointer_in(type.address, field::kName));
  std::uint64_t expected = 0;
  if (name == "type") expected = sizes.type;
  if (name == "code") expected = sizes.code;
  if (name == "function") expected = sizes.function;
  if (name == "frame") expected = sizes.frame;
  if (name == "tuple") expected = view_.fields().tuple_items;
  if (name == "dict") expected = 48;
  if (name == "list") expected = 40;
  if (name == "set") expected = 200;
  if (!is_built_in || expected == 0 || !problem_.empty()) return;
  expected += view_.head_shift();
  if (type.basic_size == expected) return;
  problem_ = "objects of class " + name + " have " + std::to_string(type.basic_size) + " bytes, and " +
             std::to_string(expected) + " in Python " + view_.layout().version.text();
}

Address type_dict(const ImageView& view, const KeptDicts& kept, Address type) {
  const Address dict = view.pointer_in(type, field::kDict);
  if (!is_null(dict)) return dict;
  const auto found = kept.find(raw(type));
  return found != kept.end() ? found->second : Address{};
}

KeptDicts find_kept_dicts(const ImageView& view, ImageTypes& types, Address interpreter) {
  KeptDicts kept;
  if (view.fields().interpreter.built_in == kNoField) return kept;
  constexpr std::uint64_t kFarthest = 3;
  std::array<std::uint64_t, kFarthest + 1> row{};  // the word looked at, and those after it
  const std::uint64_t size = view.fields().interpreter.size;
  for (std::uint64_t offset = view.fields().interpreter.built_in; offset + sizeof row <= size; offset += 8) {
    row[0] = view.word(interpreter, offset);
    if (row[0] == 0 || (row[0] & 7U) != 0 || view.type_of(Address{row[0]}) != types.type_type()) continue;
    const ImageType* type = types.of(Address{row[0]});
    if (type == nullptr || type->is(flag::kHeapType) || !is_null(view.pointer_in(type->address, field::kDict)))
      continue;
    for (std::uint64_t i = 2; i <= kFarthest; ++i) {
      const Address dict = view.pointer(interpreter, offset + i * 8);
      const ImageType* of_dict = types.of_object(dict);
      if (of_dict == nullptr || of_dict->shape != ImageShape::kDict) continue;
      kept.try_emplace(row[0], dict);
      break;
    }
  }
  return kept;
}

}  // namespace plimsoll::heap
