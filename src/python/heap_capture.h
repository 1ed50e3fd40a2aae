// python/heap_capture.h: a snapshot of this process's heap, taken from inside.
#pragma once

#include <Python.h>
#include <nanobind/nanobind.h>
#include <poll.h>
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "heap/snapshot.h"
#include "heap/type_rules.h"

namespace plimsoll::python {

// What is recorded beside types, sizes, references and the names in the program.
enum class Values : std::uint8_t {
  kRedacted,
  kShown,  // the beginning of each str and bytes, and numbers
};

// An object of which a function of the program's is asked after the walk. Owns a reference.
struct Asked {
  heap::Node node = 0;
  std::uint32_t function = 0;  // Facets::asked
  nanobind::object object;
};

// What a snapshot took.
struct CaptureStatistics {
  std::uint64_t objects = 0, edges = 0, lost_edges = 0;
  std::uint64_t file_bytes = 0;
  std::int64_t stop_ns = 0;  // for which no Python code ran
  std::int64_t mark_ns = 0;  // thereof to find the objects
};

// What the caller wants.
struct CaptureOptions {
  Values values = Values::kRedacted;
  // Modules and other objects of ours, with which what only they hold is left out.
  std::vector<PyObject*> hidden;
  std::vector<heap::TypeRule> rules;                      // beside the built-in ones
  std::vector<std::pair<std::string, std::string>> meta;  // facts about the program that the snapshot is to name
  traverseproc python_traverse = nullptr;                 // of classes written in Python
};

// Writes all objects of this interpreter to `path`. The GIL is held throughout; without one, all other threads are
// stopped.
// `asked` gets the objects that rules want asked, which live until it is cleared.
Result<CaptureStatistics> capture_heap(const std::string& path, CaptureOptions options, std::vector<Asked>& asked);

// A snapshot that a forked child takes, of the heap as it was when it started, while the program goes on.
class CaptureChild {
 public:
  // Stops the program for as long as a fork takes. The child runs no code of the program's, neither at its end.
  static Result<CaptureChild> start(const std::string& path, CaptureOptions options);
  // Whether the child is done, or has been waited for; waits for that for so long, or until a signal comes.
  [[nodiscard]] bool is_done(int timeout_ms) const {
    pollfd told{pipe_.get(), POLLIN, 0};
    return !pipe_.is_open() || ::poll(&told, 1, timeout_ms) > 0;
  }
  // Blocks until the child is done; stop_ns is what start() took. An error tells how it failed.
  Result<CaptureStatistics> wait();
  [[nodiscard]] std::int64_t pid() const { return pid_; }

 private:
  UniqueFd pipe_;
  pid_t pid_ = -1;
  std::int64_t pause_ns_ = 0;
};

}  // namespace plimsoll::python
