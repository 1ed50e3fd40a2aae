// alloc/exact_python.h: the hooks over Python's allocators that book every block.
#pragma once

#include <cstddef>

#include "alloc/allocator_table.h"

namespace plimsoll::alloc::exact_books {

// What takes the place of the allocator of a domain, one of kAllDomains, over the one that was there.
Allocator hooks_of(std::size_t domain);
// Whether that is what these are, or were in a recording of other books, or over another allocator.
bool is_hook(std::size_t domain, const Allocator& allocator);

}  // namespace plimsoll::alloc::exact_books
