// alloc/sampling_python.h: the hooks over Python's allocators that sample what they give out.
#pragma once

#include <cstddef>

#include "alloc/allocator_table.h"
#include "alloc/sampling_state.h"

namespace plimsoll::alloc::sampling {

// Those of a tier for a domain, one of kDomains.
Allocator hooks_of(Tier tier, std::size_t domain);

}  // namespace plimsoll::alloc::sampling
