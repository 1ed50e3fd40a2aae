// python/heap_roots.h: where the program can get at objects from: modules, threads with their frames, the interpreter.
#pragma once

#include <Python.h>

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"

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

}  // namespace plimsoll::python
