// python/object_type.h: which type the object in a block of memory has, if there is one in it.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace plimsoll::python {

// Whether the object in the block is alive, or about to be freed: its reference count must look like that.
enum class ObjectState { kAlive, kDying };

// The name of the type of the object that begins in a block of `size` bytes from PyObject_Malloc; nothing if there does
// not seem to be one: the block may hold anything. Valid as long as the type. Needs the GIL and an installed
// FaultGuard.
std::optional<std::string_view> type_of_object_in(const void* block, std::size_t size, ObjectState state);

}  // namespace plimsoll::python
