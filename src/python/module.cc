// python/module.cc: the extension module plimsoll._core. Thin: convert, call, convert back.
#include <nanobind/nanobind.h>

#include "python/bindings.h"

NB_MODULE(_core, module) {
  module.doc() = "The C++ half of Plimsoll. Use the package plimsoll, not this module.";
  module.attr("version") = PLIMSOLL_VERSION;
  // Daemon threads outlive the interpreter with all that they hold; nobody wants to read of that at the end.
  nanobind::set_leak_warnings(false);
  plimsoll::python::bind_errors(module);
  plimsoll::python::bind_files(module);
  plimsoll::python::bind_session(module);
  plimsoll::python::bind_threads(module);
  plimsoll::python::bind_signals(module);
  plimsoll::python::bind_tags(module);
  plimsoll::python::bind_profile(module);
  plimsoll::python::bind_heap(module);
  plimsoll::python::bind_heap_sets(module);
  plimsoll::python::bind_memory(module);
  plimsoll::python::bind_native(module);
}
