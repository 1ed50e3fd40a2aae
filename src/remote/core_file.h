// remote/core_file.h: the Python in an ELF core file: a process as it was when it ended, or when gcore looked at it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/mapped_file.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "cpython/layout.h"
#include "memory/image.h"
#include "os/process.h"
#include "remote/core_notes.h"
#include "remote/thread_states.h"

namespace plimsoll::remote {

// Opens a file that the core file names; not open if there is none.
using OpenNamedFile = std::function<UniqueFd(const std::string& path)>;

// A core file that is open. The image reads its bytes where they are; what is not in it (code, and data that the
// process never wrote to) is read from the files that it had mapped, as far as they are still at their paths.
struct CoreFile {
  MappedFile file;
  CoreNotes notes;
  memory::Image image;
  cpython::Layout layout;
  Address runtime{};                  // _PyRuntime
  Address code_type{};                // PyCode_Type
  std::vector<os::Mapping> mappings;  // files with code, as far as they are still what ran; and the kernel's own
  std::uint64_t missing_bytes = 0;    // of its memory, as the file was cut short
  OpenNamedFile open;                 // opens those above, and what is said to be the source of a function
};

// Opens it, and finds the interpreter. `program` is the file of the program or library that the interpreter is in, if
// it is not where the core file says; or "". The core file may be damaged or hostile: nothing is read but it and
// regular files that it names; by root only those that the process could read, and whoever made the core file. Errors:
// kBadInput for what is no core file of this machine, or cut too short to find anything, or if the program is not the
// one that ran; kUnsupported if no CPython that is known is in it.
Result<CoreFile> open_core_file(const std::string& path, const std::string& program, OpenNamedFile open = nullptr);

// Its threads as the kernel knew them, without names; and as the interpreter does, the oldest first.
std::vector<os::Task> tasks_of(const CoreFile& core);
std::vector<ThreadState> thread_states_of(const CoreFile& core);

}  // namespace plimsoll::remote
