#include <nanobind/nanobind.h>
#include <nanobind/operators.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <utility>

#include "heap/node_set.h"
#include "python/bindings.h"
#include "python/heap_data.h"

namespace nb = nanobind;

namespace plimsoll::python {
namespace {

using heap::Node;
using heap::NodeSet;

// Some of a snapshot's objects; keeps the snapshot.
class HeapSet {
 public:
  HeapSet(nb::handle owner, NodeSet set) : owner_(nb::borrow(owner)), set_(std::move(set)) {}

  [[nodiscard]] const NodeSet& set() const { return set_; }
  [[nodiscard]] HeapData& heap() const { return nb::cast<HeapData&>(owner_); }
  // The objects that `find`, which knows no Python, names for these.
  template <typename Find>
  [[nodiscard]] HeapSet found(Find find) const {
    const heap::Snapshot& snapshot = heap().snapshot();
    NodeSet result = [&] {
      const nb::gil_scoped_release release;
      return find(snapshot, set_);
    }();
    return {owner_, std::move(result)};
  }
  template <typename Combine>
  [[nodiscard]] HeapSet with(const HeapSet& other, Combine combine) const {
    check(other);
    HeapSet result = *this;
    combine(result.set_, other.set_);
    return result;
  }
  void check(const HeapSet& other) const {
    if (!owner_.is(other.owner_)) throw nb::value_error("the objects are of two snapshots, or of two views of one");
  }

 private:
  nb::object owner_;
  NodeSet set_;
};

HeapSet select(nb::handle self, const std::string& pattern) {
  const heap::Snapshot& snapshot = nb::cast<HeapData&>(self).snapshot();
  return {self, pattern.empty() ? heap::all_objects(snapshot) : heap::objects_of(snapshot, pattern)};
}

HeapSet chosen(nb::handle self, const std::vector<std::int64_t>& numbers) {
  const HeapData& data = nb::cast<HeapData&>(self);
  NodeSet set(data.snapshot().object_count);
  for (const std::int64_t number : numbers) {
    if (!data.snapshot().is_object(data.check(number))) throw nb::index_error("a root is no object");
    set.insert(static_cast<Node>(number));
  }
  return {self, std::move(set)};
}

// A column of their numbers.
nb::object numbers(const HeapSet& self) {
  auto values = std::make_unique<std::vector<Node>>();
  values->reserve(self.set().count());
  self.set().for_each([&](Node node) { values->push_back(node); });
  const std::vector<Node>& kept = *values;
  const nb::capsule owner(values.release(), [](void* made) noexcept { delete static_cast<std::vector<Node>*>(made); });
  return column(kept, owner);
}

nb::list types_of_set(const HeapSet& self) {
  const heap::Snapshot& snapshot = self.heap().snapshot();
  return rows_of(snapshot, heap::types(snapshot, self.heap().dominance(), self.set()));
}

}  // namespace

void bind_heap_sets(nb::module_& module) {
  nb::class_<HeapSet>(module, "HeapSet", "Some objects of a heap snapshot; see plimsoll.heap.ObjectSet.")
      .def_static("select", &select, nb::arg("heap"), nb::arg("pattern"))
      .def_static("chosen", &chosen, nb::arg("heap"), nb::arg("numbers"))
      .def("__len__", [](const HeapSet& self) { return self.set().count(); })
      .def("__contains__",
           [](const HeapSet& self, std::int64_t number) {
             return number >= 0 && std::in_range<Node>(number) && self.set().contains(static_cast<Node>(number));
           })
      .def("__or__", [](const HeapSet& a, const HeapSet& b) { return a.with(b, [](auto& x, auto& y) { x |= y; }); })
      .def("__and__", [](const HeapSet& a, const HeapSet& b) { return a.with(b, [](auto& x, auto& y) { x &= y; }); })
      .def("__sub__", [](const HeapSet& a, const HeapSet& b) { return a.with(b, [](auto& x, auto& y) { x -= y; }); })
      .def("__xor__", [](const HeapSet& a, const HeapSet& b) { return a.with(b, [](auto& x, auto& y) { x ^= y; }); })
      .def("is_within",
           [](const HeapSet& self, const HeapSet& other) {
             self.check(other);
             return self.set().is_within(other.set());
           })
      .def_prop_ro("size", [](const HeapSet& self) { return heap::size_of(self.heap().snapshot(), self.set()); })
      .def_prop_ro("retained_size",
                   [](const HeapSet& self) {
                     const heap::Snapshot& snapshot = self.heap().snapshot();
                     const nb::gil_scoped_release release;
                     return heap::retained_size(snapshot, self.set());
                   })
      .def("retained", [](const HeapSet& self) { return self.found(heap::retained_by); })
      .def("held", [](const HeapSet& self) { return self.found(heap::held_by); })
      .def("holders", [](const HeapSet& self) { return self.found(heap::holders_of); })
      .def("reached", [](const HeapSet& self) { return self.found(heap::reached_from); })
      .def("numbers", &numbers)
      .def("types", &types_of_set);
}

}  // namespace plimsoll::python
