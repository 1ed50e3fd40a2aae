// python/heap_finder.h: pass 1 of a snapshot from inside: from roots to all objects that they lead to.
#pragma once

#include <Python.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "heap/address_set.h"
#include "heap/open_objects.h"
#include "python/fetch_queue.h"
#include "python/object_edges.h"
#include "python/type_plan.h"

namespace plimsoll::python {

// Finds all objects that can be reached. A sink for ObjectEdges.
class Finder {
 public:
  static constexpr bool kTellsNames = false;

  Finder(TypePlans& plans, heap::AddressSet& found, const heap::AddressSet* known = nullptr)
      : plans_(plans), found_(found), known_(known), edges_(plans, *this), open_(found) {}

  void add(PyObject* object) {
    if (object == nullptr) return;
    std::uint64_t* place = found_.place_of(address_of(object));
    __builtin_prefetch(place);
    __builtin_prefetch(object);
    const Shown before = std::exchange(shown_[next_shown_++ % shown_.size()], {object, place});
    if (before.object != nullptr) enter(before.object, before.place);
  }
  // Follows the edges of an object that is not itself to be found.
  void follow(PyObject* object) { visit(object); }
  // Follows all edges from what was added.
  void run() {
    do {
      for (; types_ < plans_.all().size(); ++types_) add(reinterpret_cast<PyObject*>(plans_.all()[types_].type));
      while (go_on()) {
      }
    } while (types_ < plans_.all().size());
  }

  void edge(heap::EdgeKind, PyObject* held) { add(held); }
  template <typename Name>
  void named(PyObject* held, Name) {
    add(held);
  }
  void type() {}
  void weak(PyObject*) {}
  void name_space(PyObject* dict) {
    if (dict == nullptr) return;
    enter(dict, nullptr);
    found_.mark(address_of(dict));
  }
  static bool has_names(PyObject*) { return false; }

 private:
  // An object that something holds, and nobody knows yet whether it is found; its memory and its bit are being fetched.
  struct Shown {
    PyObject* object = nullptr;
    std::uint64_t* place = nullptr;
  };

  void enter(PyObject* object, std::uint64_t* place) {
    if (known_ != nullptr && known_->contains(address_of(object))) return;
    if (!found_.insert(address_of(object), place)) return;
    if (plans_.of(Py_TYPE(object)).shape != Shape::kLeaf) open_.push(address_of(object));
  }
  // A very long list, of which so much has been looked at. A portion is so large that what it holds, in the order of
  // addresses as it comes when it was put aside, is near one another; all at once would be as much memory as the set.
  struct LongList {
    PyObject* list = nullptr;
    Py_ssize_t next = 0;
  };
  static constexpr Py_ssize_t kPortion = Py_ssize_t{1} << 20U;

  // A step towards the next object to be looked at. False if none is left.
  bool go_on() {
    Address object{};
    if (open_.pop(object) || !fetching_.is_empty()) {
      auto* next = pointer_to<PyObject>(object);
      __builtin_prefetch(next);
      PyObject* fetched = fetching_.pass(next);
      if (PyObject* half = fetching_.halfway(); half != nullptr) fetch_parts(half);
      if (fetched != nullptr) visit(fetched);
      return true;
    }
    bool is_more = false;
    for (Shown& shown : shown_) {
      if (shown.object == nullptr) continue;
      is_more = true;
      const Shown last = std::exchange(shown, {});
      enter(last.object, last.place);
    }
    return is_more || take_portion();
  }
  // When nothing else is left.
  bool take_portion() {
    found_.free_aside();
    if (long_lists_.empty()) return false;
    LongList& last = long_lists_.back();
    PyObject* const list = last.list;
    Py_ssize_t next = last.next;
    const Py_ssize_t end = std::min(next + kPortion, PyList_GET_SIZE(list));
    last.next = end;
    if (end == PyList_GET_SIZE(list)) long_lists_.pop_back();
    for (; next < end; ++next) add(PyList_GET_ITEM(list, next));
    return true;
  }
  void visit(PyObject* object) {
    const TypePlan& plan = plans_.of(Py_TYPE(object));
    if (plan.shape == Shape::kList && PyList_GET_SIZE(object) > kPortion)
      long_lists_.push_back({object, 0});
    else
      edges_.visit(object, plan);
  }

  TypePlans& plans_;
  heap::AddressSet& found_;
  const heap::AddressSet* known_;
  ObjectEdges<Finder> edges_;
  heap::OpenObjects open_;
  std::vector<LongList> long_lists_;
  std::array<Shown, 16> shown_{};
  std::size_t next_shown_ = 0;
  FetchQueue<16> fetching_;  // found
  std::size_t types_ = 0;
};

}  // namespace plimsoll::python
