// heap/type_rules.h: what is known of classes beyond what they tell themselves.
//
// A rule is data: it says where something is, and runs nothing, so that it holds in a process, in a forked child of it
// and from outside alike. It is found by the name of a class, which need not be imported; all rules that match a class
// or one of its bases are joined when the class is first met, and for each facet the most derived class decides.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "heap/object_size.h"

namespace plimsoll::heap {

// Memory that an object owns and that neither its type nor __sizeof__ tells of. Offsets are in bytes after the header
// that all objects have (PyObject_HEAD); those that do not lie inside the object are not followed.
struct NativeMemory {
  static constexpr std::uint64_t kNowhere = ~std::uint64_t{0};
  std::uint64_t pointer = 0;       // where the object keeps its address; null: it has none
  std::uint64_t length = 0;        // where it keeps how much, as 64 bits
  std::uint64_t unit = 1;          // bytes of which it counts
  std::uint64_t owned = kNowhere;  // where an int says that it is the object's own; else it always is
};

// Where an object of `size` bytes, `head` of them PyObject_HEAD, says that its memory is; of no bytes if that cannot
// be. `word` reads 64 bits at an offset of the object, and `number` 32.
template <typename Word, typename Number>
NativeExtent native_extent(const NativeMemory& native, Address object, std::uint64_t head, std::uint64_t size,
                           Word word, Number number) {
  const std::uint64_t inside = size > head ? size - head : 0;
  const auto has = [&](std::uint64_t offset, std::uint64_t bytes) {
    return offset <= inside && bytes <= inside - offset;
  };
  if (!has(native.pointer, 8) || !has(native.length, 8)) return {};
  if (native.owned != NativeMemory::kNowhere && (!has(native.owned, 4) || number(head + native.owned) == 0)) return {};
  const std::uint64_t start = word(head + native.pointer);
  const bool is_in_object = start >= raw(object) && start - raw(object) < size;
  const std::uint64_t length = word(head + native.length);
  if (is_in_object || native.unit == 0 || length > kLargestExtent / native.unit) return {};
  const NativeExtent found{start, length * native.unit};
  return can_be(found) ? found : NativeExtent{};
}

// What one rule, or all rules of a class together, say.
struct Facets {
  std::optional<NativeMemory> native;
  std::optional<std::string> label;    // an attribute, a str or int, that tells objects of the class apart
  std::optional<std::uint32_t> asked;  // the number of the function of the program's that tells more, after the walk
};

// Whom a rule is for.
enum class Reach : std::uint8_t {
  kExactly,    // objects of the class itself
  kInstances,  // of subclasses, too
};

// A rule. `classes` is a full name, or a pattern as of a shell: "app.Session", "torch.*".
struct TypeRule {
  std::string classes;
  Reach reach = Reach::kInstances;
  Facets facets;
};

// The rules that Plimsoll brings: of the standard library.
std::vector<TypeRule> built_in_rules();

// As people write them, in lines or between semicolons: "CLASSES: WHAT, WHAT", where WHAT is "label ATTRIBUTE",
// "native POINTER LENGTH" with "unit BYTES" or "owned OFFSET" behind it, or "exactly". kUsage if it is something else.
Result<std::vector<TypeRule>> parse_rules(std::string_view words);

// Rules for a class, joined along its bases: `names` of the class itself, then of each in its __mro__. Within a class a
// later rule goes before an earlier one.
Facets facets_of(std::span<const std::string> names, std::span<const TypeRule> rules);

}  // namespace plimsoll::heap
