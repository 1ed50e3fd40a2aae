// alloc/exact_malloc.h: malloc and its kin, replaced by functions that book every block.
#pragma once

#include "base/result.h"

namespace plimsoll::alloc::exact_books {

// In all modules, until restore_malloc().
Status patch_exact_malloc();

}  // namespace plimsoll::alloc::exact_books
