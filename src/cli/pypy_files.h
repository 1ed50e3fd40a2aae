// cli/pypy_files.h: what PyPy has written beside a profile -> the profile.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "cli/console.h"
#include "cli/cpu_clock.h"

namespace plimsoll::cli {

// Where PyPy's log of its collector and its JIT is put for a profile.
std::string pypy_log_path(const std::string& plim);

// What is known of a run of PyPy but what it has written.
struct PyPyRun {
  CpuClocks clocks;
  // Whether the profile gets the texts of its files.
  enum class Sources : std::uint8_t { kEmbed, kOmit } sources = Sources::kEmbed;
};

// After a program has run: if PyPy's own sampler has written PLIM.vmprof, makes PLIM of that, with the log of its JIT
// (PLIM.jit) attached and the sections of its other log (PLIM.pypylog) as markers, and takes all of them away; and does
// so for the profiles of child processes (app.123.plim). Samples that have CPU time only get the time of day by the
// clocks that were noted meanwhile. What cannot be read is left there, and said.
void adopt_pypy_files(const std::string& plim, const PyPyRun& run, Console& console);

}  // namespace plimsoll::cli
