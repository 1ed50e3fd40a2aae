// python/type_rules.h: what is known of classes beyond what they tell themselves.
//
// A rule is data: it says where something is, and runs nothing. It is found by the name of a class, which need not be
// imported; all rules that match a class or one of its bases are joined when the class is first met, and for each
// facet the most derived class decides.
#pragma once

#include <Python.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace plimsoll::python {

// Memory that an object owns and that neither its type nor __sizeof__ tells of. Offsets are in bytes after the header
// that all objects have (PyObject_HEAD); those that do not lie inside the object are not followed.
struct NativeMemory {
  static constexpr std::size_t kNowhere = ~std::size_t{0};
  std::size_t pointer = 0;       // where the object keeps its address; null: it has none
  std::size_t length = 0;        // where it keeps how much, as 64 bits
  std::size_t unit = 1;          // bytes of which it counts
  std::size_t owned = kNowhere;  // where an int says that it is the object's own; else it always is
};

// What one rule, or all rules of a class together, say.
struct Facets {
  std::optional<NativeMemory> native;
  std::optional<std::string> label;  // an attribute, a str or int, that tells objects of the class apart
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

// Rules for a class, joined along its bases in their order; within a class a later rule goes before an earlier one.
Facets facets_of(PyTypeObject* type, const std::vector<TypeRule>& rules);

}  // namespace plimsoll::python
