// python/object_type.h: which type the object in a block of memory has, if there is one in it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "base/ids.h"
#include "cpython/layout.h"
#include "cpython/object_fields.h"

namespace plimsoll::python {

// Whether the object in the block is alive, or about to be freed: its reference count must look like that.
enum class ObjectState { kAlive, kDying };

// The type of the object that begins in a block of `size` bytes from PyObject_Malloc; null if there does not seem to be
// one: the block may hold anything. Needs the GIL and an installed FaultGuard.
Address type_of_object_in(const void* block, std::size_t size, ObjectState state);

// Names types, all by loads that cannot crash: what looks like one may be what is left of it.
class TypeNames {
 public:
  void prepare(const cpython::Layout& layout);
  // "app.Outer.Inner", "list", as in heap snapshots; what C calls it where there is no memory for more, or it is not
  // known how classes look. Empty: it has no name. Needs an installed FaultGuard.
  [[nodiscard]] std::string of(Address type) const;

 private:
  // How objects look in this interpreter.
  struct Looks {
    cpython::Layout layout;
    cpython::ObjectFields fields;
  };
  std::optional<Looks> looks_;
};

}  // namespace plimsoll::python
