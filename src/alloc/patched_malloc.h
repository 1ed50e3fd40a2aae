// alloc/patched_malloc.h: malloc and its kin, replaced in all modules as long as a recording wants that.
#pragma once

#include <span>
#include <string_view>

#include "alloc/imports.h"
#include "alloc/malloc_family.h"
#include "base/result.h"

namespace plimsoll::alloc {

// Replaces them, in modules that are loaded later as well: see patch_new_modules. One set at a time.
Status patch_malloc_with(std::span<const Import> imports);
void restore_malloc();

// If modules were loaded since the last look, and malloc is replaced, it is replaced in them, too. Cheap if not. For
// any thread that does not hold the dynamic linker's lock.
void patch_new_modules();
// Whether there is something to do for it.
bool has_new_modules();

// ---- for tests ----
// What is in the place of a function now; null if nothing is.
void* replacement_of(std::string_view name);

template <typename Books>
Status patch_malloc() {
  if (!find_real_malloc()) return Error{ErrorKind::kUnsupported, "this program has no malloc that could be watched"};
  const auto imports = MallocFamily<Books>::imports();
  return patch_malloc_with(imports);
}

}  // namespace plimsoll::alloc
