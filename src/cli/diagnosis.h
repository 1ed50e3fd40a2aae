// cli/diagnosis.h: what a machine and a Python allow, in words.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace plimsoll::cli {

// Facts about a machine. Everything that `diagnose` needs to know, so that tests can make one up.
struct Machine {
  std::string kernel;
  std::optional<int> perf_event_paranoid;
  std::string perf_error;  // why perf events do not tick; empty if they do
  bool has_traps = false;
  unsigned scheduler_hz = 0;
  bool has_wait_files = false;  // /proc/.../syscall is readable
  bool has_schedstat = false;
  std::size_t open_files = 0;  // descriptors a process may have
  std::string interpreter;     // its path
  std::string python_error;    // why it could not be asked, or could not record; empty if it did
  std::string python;          // "CPython 3.13.2", "PyPy 3.11.17"
  std::string plimsoll;        // the package's version; empty where it does not say (PyPy)
  std::string engine;          // of a test recording
  double coverage = 0;         // of its CPU time, by samples; 1 is all
};

// How a finding is to be taken.
enum class Verdict { kGood, kLimited, kMissing };

// One line of the report, and what to do about it.
struct Finding {
  Verdict verdict{};
  std::string what;
  std::string remedy;  // a command or a sentence; empty if there is nothing to do
};

// What the facts mean. Pure.
std::vector<Finding> diagnose(const Machine& machine);

// The facts of this machine, and of an interpreter, which is started for a moment. An empty path: there is none, and
// `python_error` says so.
Machine examine(const std::string& interpreter, const std::string& python_error);

}  // namespace plimsoll::cli
