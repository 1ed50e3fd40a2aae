// heap/image_roots.h: where the program in a copy of a process's memory can get at objects from. As
// python/heap_roots.h.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "heap/image_types.h"

namespace plimsoll::heap {

// An object that a root holds, and by what name: a str of the program, or a word of ours.
struct ImageRootEdge {
  Address held{};
  Address name{};
  const char* word = nullptr;
};

// A node of a snapshot that is no object.
struct ImageRoot {
  const char* type;  // "[modules]", "[thread]", "[frame]"
  std::string text;
  std::vector<ImageRootEdge> edges;
  std::vector<std::size_t> children;  // roots that it holds
};

// The Python in a copy: where its runtime is, and the class of code objects.
struct ImageRuntime {
  Address runtime{};
  Address code_type{};
};

// The states of all interpreters, the newest first.
std::vector<Address> interpreters_of(const ImageView& view, Address runtime);

// Modules, threads with their frames, and what else each interpreter holds. [1] is always that of the main interpreter
// itself.
std::vector<ImageRoot> find_roots(const ImageView& view, ImageTypes& types, const ImageRuntime& runtime);

// visit(list, object) for each object that the garbage collectors of the interpreters know: of builds with a GIL, those
// on their lists (cpython/collector_lists.h). `list` is 0 for the youngest generation to 2, and 3 for what gc.freeze()
// has set aside. Of free-threaded builds, which have neither lists nor generations, all that the allocator has
// (cpython/collector_pages.h), and `list` is kNoList. False if there may be more.
inline constexpr std::size_t kNoList = ~std::size_t{0};
bool each_tracked(const ImageView& view, ImageTypes& types, std::span<const Address> interpreters,
                  const std::function<void(std::size_t, Address)>& visit);

}  // namespace plimsoll::heap
