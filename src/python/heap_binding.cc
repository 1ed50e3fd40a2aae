#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "python/bindings.h"
#include "python/heap_capture.h"

namespace nb = nanobind;

namespace plimsoll::python {
namespace {

nb::dict take_snapshot(const std::string& path, bool with_values, const nb::list& hidden) {
  std::vector<PyObject*> ours{hidden.ptr()};
  for (const nb::handle object : hidden) {
    ours.push_back(object.ptr());
    if (PyModule_Check(object.ptr())) ours.push_back(PyModule_GetDict(object.ptr()));
  }
  const CaptureStatistics taken =
      value_or_raise(capture_heap(path, with_values ? Values::kShown : Values::kRedacted, std::move(ours)));
  nb::dict result;
  result["objects"] = taken.objects;
  result["edges"] = taken.edges;
  result["lost_edges"] = taken.lost_edges;
  result["file_bytes"] = taken.file_bytes;
  result["stop_ns"] = taken.stop_ns;
  result["mark_ns"] = taken.mark_ns;
  result["index_bytes"] = taken.index_bytes;
  return result;
}

}  // namespace

void bind_heap(nb::module_& module) {
  module.def("heap_snapshot", &take_snapshot, nb::arg("path"), nb::kw_only(), nb::arg("values"), nb::arg("hidden"));
}

}  // namespace plimsoll::python
