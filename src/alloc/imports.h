// alloc/imports.h: puts functions of ours in the place of those that the program's modules import.
//
// A module calls a function of another through a word in its own memory, which the dynamic linker has filled: that word
// is replaced, in every module that is loaded, while the program runs. Nothing is written but words that hold the
// function's own address, or that the linker would fill with it at the first call. Pages that the linker has
// made read-only (RELRO) are made so again.
//
// Left alone are the module that has the function, the dynamic linker, ours, and modules that use another function of
// that name, for example an allocator of their own: to mix the two would free blocks by somebody who does not know
// them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace plimsoll::alloc {

// A function that modules import by its name.
struct Import {
  const char* name = nullptr;
  void* ours = nullptr;
  void* original = nullptr;  // null: the program has no such function, and the row is passed over
  void* alias = nullptr;     // what pointers to it are, if not that: see alias_of; null: they are
};

// What was done.
struct PatchCounts {
  std::size_t modules = 0;  // that had something to be replaced, or put back
  std::size_t words = 0;
  std::size_t failures = 0;  // words on pages that could not be made writable
  bool is_whole = true;      // false: meanwhile somebody has begun to load a module, and not all were looked at
};

// For a thread that does not hold the dynamic linker's lock. Allocates nothing. `loads` is modules_loaded() from before
// wait_for_loading(): where there are more by now, the pages of the last ones may be the linker's still.
PatchCounts patch_imports(std::span<const Import> imports, std::uint64_t loads);
// Puts the originals back wherever ours are.
PatchCounts restore_imports(std::span<const Import> imports);

// How many modules have been loaded since the program started. Cheap. Where it grows, wait_for_loading() and then
// patch.
std::uint64_t modules_loaded();

// Returns when what was being loaded by other threads is loaded, relocations and constructors done: before that, the
// pages of such a module are the linker's.
void wait_for_loading();

// The function that a module which imports `name` calls; null if there is none.
void* imported_function(const char* name);
// In a program that is linked to a fixed place, pointers to a library's function may lead to a stub in the program
// itself, so that all modules have the same. That stub; null if there is none.
void* alias_of(const char* name);

}  // namespace plimsoll::alloc
