// remote/core_file.h: the Python in an ELF core file: a process as it was when it ended, or when gcore looked at it.
#pragma once

#include <string>

#include "base/mapped_file.h"
#include "base/result.h"
#include "cpython/layout.h"
#include "memory/image.h"

namespace plimsoll::remote {

// A core file that is open. The image reads its bytes where they are; what is not in it (code, and data that the
// process never wrote to) is read from the files that it had mapped, as far as they are still at their paths.
struct CoreFile {
  MappedFile file;
  memory::Image image;
  cpython::Layout layout;
  Address runtime{};    // _PyRuntime
  Address code_type{};  // PyCode_Type
  std::int32_t pid = 0;
};

// Opens it, and finds the interpreter. `program` is the file of the program or library that the interpreter is in, if
// it is not where the core file says; or "". The core file may be damaged or hostile: nothing outside of it is read.
// Errors: kBadInput for what is no core file of x86-64 or is cut short, kUnsupported if no CPython that is known is in
// it.
Result<CoreFile> open_core_file(const std::string& path, const std::string& program);

}  // namespace plimsoll::remote
