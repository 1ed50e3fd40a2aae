// python/heap_roots.h: where the program can get at objects from: modules, threads with their frames, the interpreter.
#pragma once

#include <Python.h>
#include <nanobind/nanobind.h>

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cpython/layout.h"
#include "cpython/object_fields.h"

namespace plimsoll::python {

// An object that a root holds, and by what name: a str of the program, or a word of ours.
struct RootEdge {
  PyObject* held = nullptr;
  PyObject* name = nullptr;
  const char* word = nullptr;
};

// A node of a snapshot that is no object.
struct RootNode {
  const char* type;  // "[modules]", "[thread]", "[frame]"
  std::string text;
  std::vector<RootEdge> edges;
  std::vector<std::size_t> children;  // root nodes that it holds
};

// What the program can see, but nothing of frames whose global variables are one of `hidden`. Borrowed references: good
// while no Python code runs.
Result<std::vector<RootNode>> find_roots(const std::vector<PyObject*>& hidden);

// The garbage collector's own lists of objects, read without taking a reference to any.
class TrackedObjects {
 public:
  // Finds the lists; `thresholds` are those of gc.get_threshold(), by which they are known. False where they are not
  // as expected: in free-threaded builds, which have none, and while a collection runs.
  bool find(const std::vector<int>& thresholds);
  // visit(list, object) for each object on them; lists are those of the generations, the youngest first, and then of
  // what gc.freeze() has set aside.
  void visit(const std::function<void(std::size_t, PyObject*)>& visit_one) const;

 private:
  struct Link;
  struct Generation;
  static Link* after(const Link* link);
  static Link* before(const Link* link);
  static PyObject* object_of(const Link* link);
  static bool is_linked(const Link* link);
  static Link* find_head(Link* probe);

  std::vector<Link*> lists_;
};

// What the collector of a free-threaded build knows: it has no lists, and asks the allocator. Read without taking a
// reference to any object: a tuple that another thread is still making may have none but that thread's.
class TrackedPages {
 public:
  // Finds out how the allocator keeps them. False where that is not as expected, where there may be other interpreters,
  // and in builds with a GIL.
  bool find();
  // visit(object) for each, while no other thread runs. False if not all that were visited need be objects.
  bool visit(const std::function<void(PyObject*)>& visit_one) const;

 private:
  // Likewise for those in some of the memory.
  bool visit_between(std::uint64_t start, std::uint64_t end, const std::function<void(PyObject*)>& visit_one) const;
  [[nodiscard]] bool has(PyObject* object) const;

  cpython::Layout layout_;
  cpython::ObjectFields fields_;
  std::vector<Address> known_;  // dicts of the collector's
};

// What the collector knows, where neither is as expected: with a reference to each; in free-threaded builds without
// tuples and frozensets. Not in a list of Python's, which the snapshot of another thread would take for the program's.
std::vector<nanobind::object> all_tracked(nanobind::module_& collector);

}  // namespace plimsoll::python
