#include <nanobind/nanobind.h>

#include "base/write_file.h"
#include "python/bindings.h"

namespace plimsoll::python {

void bind_files(nanobind::module_& module) {
  module.def(
      "write_file",
      [](const FilePath& path, const nanobind::bytes& bytes) {
        check(write_file(path.bytes, {bytes.c_str(), bytes.size()}));
      },
      nanobind::arg("path"), nanobind::arg("bytes"));
}

}  // namespace plimsoll::python
