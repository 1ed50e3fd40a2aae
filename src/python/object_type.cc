#include "python/object_type.h"

#include <Python.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <new>

#include "cpython/value_classes.h"
#include "memory/local.h"
#include "python/compat.h"
#include "python/interpreter.h"

namespace plimsoll::python {
namespace {

// Bits of tp_flags that say what lies before an object; the first two are of 3.11 and 3.12, and nothing before.
constexpr unsigned long kManagedWeakref = 1UL << 3U;
constexpr unsigned long kManagedDict = 1UL << 4U;
constexpr std::size_t kManagedBytes = 16;
constexpr std::size_t kCollectorBytes = kIsFreeThreaded ? 0 : 16;

// A plausible address of an object.
bool is_aligned(std::uint64_t address) { return address > 4096 && (address & 7U) == 0; }

// The address of the type of the object at `at`; 0 if there is no plausible one.
std::uint64_t type_at(std::uint64_t at) {
  std::uint64_t type = 0;
  const bool is_read = memory::LocalReader{}.load(Address{at + offsetof(PyObject, ob_type)}, type);
  return is_read && is_aligned(type) ? type : 0;
}

bool has_plausible_count(std::uint64_t at, ObjectState state) {
  std::uint32_t low = 0;
  if (!memory::LocalReader{}.load(Address{at + kReferenceCountOffset}, low)) return false;
  if (kIsFreeThreaded) {
    std::uint64_t others = 0;
    if (!memory::LocalReader{}.load(Address{at + kSharedCountOffset}, others)) return false;
    const bool is_alive = low == kImmortalCount || low != 0 || others >= kSharedCountUnit;
    return is_alive == (state == ObjectState::kAlive);
  }
  if (state == ObjectState::kDying) return low == 0;
  // Immortal objects are below that from 3.14 on. Those of 3.12 and 3.13, in 3.12 all interned strings, have the most
  // that there is, and nothing above it.
  constexpr std::uint32_t kMostReferences = 0xe0000000, kImmortalBefore = 0xffffffff;
  std::uint32_t high = 0;
  return (low > 0 && low <= kMostReferences) ||
         (low == kImmortalBefore &&
          memory::LocalReader{}.load(Address{at + kReferenceCountOffset + sizeof low}, high) && high == 0);
}

// Bytes before an object of this type.
std::size_t bytes_before(unsigned long flags) {
  const std::size_t managed =
      (flags & (kManagedDict | kManagedWeakref)) != 0 && kObjectsHaveManagedFields ? kManagedBytes : 0;
  return managed + ((flags & Py_TPFLAGS_HAVE_GC) != 0 ? kCollectorBytes : 0);
}

// Whether a block begins as those do whose objects have managed fields in front: with a pointer to weak references or
// attributes, or none. A dict's table may look like such an object otherwise, as what is hashed first in it stands
// where the type would: the table of a class's subclasses has their addresses there. But it begins with a count.
bool begins_with_managed_fields(std::uint64_t block) {
  std::uint64_t first = 0;
  return memory::LocalReader{}.load(Address{block}, first) && (first == 0 || is_aligned(first));
}

// Bytes that an object of this type has at least, without what lies before it.
std::size_t least_bytes(const PyTypeObject* type) {
  // That of a str is one whose characters lie elsewhere, which hardly any is.
  if (type == &PyUnicode_Type) return sizeof(PyASCIIObject) + 1;
  const auto size = static_cast<std::size_t>(type->tp_basicsize);
  // A datetime and a time leave out their last field if there is no time zone.
  const bool may_be_cut = (type->tp_flags & Py_TPFLAGS_HAVE_GC) == 0 && size > sizeof(PyObject) + sizeof(PyObject*);
  return may_be_cut ? size - sizeof(PyObject*) : size;
}

// The type, if what is there has all marks of one.
const PyTypeObject* checked_type(std::uint64_t address) {
  // A type's own type is `type`, or a metaclass, whose type is `type` in nearly all programs. No other data leads
  // there.
  std::uint64_t flags = 0;
  const auto type_of_types = reinterpret_cast<std::uint64_t>(&PyType_Type);
  const std::uint64_t meta = type_at(address);
  if (meta != type_of_types && (meta == 0 || type_at(meta) != type_of_types || meta == address)) return nullptr;
  const memory::LocalReader memory;
  if (meta != type_of_types && (!memory.load(Address{meta + offsetof(PyTypeObject, tp_flags)}, flags) ||
                                (flags & Py_TPFLAGS_TYPE_SUBCLASS) == 0))
    return nullptr;
  if (!memory.load(Address{address + offsetof(PyTypeObject, tp_flags)}, flags) || (flags & Py_TPFLAGS_READY) == 0)
    return nullptr;
  return pointer_to<const PyTypeObject>(Address{address});
}

// tp_name: of a class of Python's without its module. As much as needs no memory of its own.
std::string name_in_c(Address type) {
  const memory::LocalReader memory;
  std::uint64_t at = 0;
  if (!memory.load(offset_by(type, offsetof(PyTypeObject, tp_name)), at)) return {};
  std::array<char, 16> name{};  // a std::string keeps 15 in itself
  std::size_t length = 0;
  std::uint8_t letter = 0;
  while (length + 1 < name.size() && memory.load(Address{at + length}, letter) && letter != 0)
    name[length++] = static_cast<char>(letter);
  return {name.data(), length};
}

}  // namespace

Address type_of_object_in(const void* block, std::size_t size, ObjectState state) {
  const auto start = reinterpret_cast<std::uint64_t>(block);
  for (const std::size_t before : {std::size_t{0}, kCollectorBytes, kCollectorBytes + kManagedBytes}) {
    if (before + sizeof(PyObject) > size) break;
    const std::uint64_t address = type_at(start + before);
    if (address == 0 || !has_plausible_count(start + before, state)) continue;
    const PyTypeObject* type = checked_type(address);
    if (type == nullptr || bytes_before(type->tp_flags) != before) continue;
    if (before > kCollectorBytes && !begins_with_managed_fields(start)) continue;
    const bool fits =
        type->tp_basicsize >= static_cast<Py_ssize_t>(sizeof(PyObject)) && before + least_bytes(type) <= size;
    // An object of variable length may be shorter than its type's basic size says (int, for one).
    if (!fits && type->tp_itemsize == 0) continue;
    if (type->tp_name == nullptr) continue;
    return Address{address};
  }
  return Address{};
}

void TypeNames::prepare(const cpython::Layout& layout) {
  looks_.reset();
  const Result<cpython::ObjectFields> fields = cpython::object_fields(own_version());
  if (fields.ok()) looks_ = {layout, fields.value()};
}

std::string TypeNames::of(Address type) const {
  if (!looks_) return name_in_c(type);
  try {
    constexpr std::uint64_t kMostWords = 1U << 16U;
    const memory::LocalReader memory;
    const cpython::ObjectView view(memory, looks_->layout, looks_->fields, kMostWords);
    return cpython::ValueClasses(view, address_of(&PyType_Type)).name_of(type);
  } catch (const std::bad_alloc&) {
    return name_in_c(type);
  }
}

}  // namespace plimsoll::python
