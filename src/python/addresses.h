// python/addresses.h: where the objects of this process are, for those that read them as any memory.
#pragma once

#include <cstdint>

#include "base/ids.h"

namespace plimsoll::python {

inline Address address_of(const void* pointer) { return Address{reinterpret_cast<std::uint64_t>(pointer)}; }

}  // namespace plimsoll::python
