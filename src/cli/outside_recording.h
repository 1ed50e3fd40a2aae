// cli/outside_recording.h: a recording of another process, from outside, into a file.
#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "cli/console.h"
#include "remote/session.h"
#include "remote/target.h"

namespace plimsoll::cli {

// Looks a second, where nothing else is asked for; with native frames each stops the threads that run.
inline constexpr double kOutsideRate = 1000, kOutsideNativeRate = 100;

// What to record, and where to.
struct OutsideRecording {
  remote::SessionSettings session;
  std::string output;
  bool keeps_sources = true;
};

// The mode of that name; an error that says which there are.
Result<capture::Mode> mode_named(const std::string& name);

// An error if it is no rate that can be asked for.
Status check_rate(double rate_hz);
// Likewise no part of the time of a CPU.
Status check_max_overhead(double percent);

// Records on the calling thread until `wait_until` says stop or the process ends. `begin` is called when all that can
// fail at the start has gone well.
Result<remote::SessionResult> record_outside(const remote::Target& target, const OutsideRecording& recording,
                                             const remote::WaitUntil& wait_until, const std::function<void()>& begin);

// Records a program that has just been started, until it ends: its interpreter is there some milliseconds later.
Result<remote::SessionResult> record_program(os::Pid pid, const OutsideRecording& recording);

// What came of it, and what to be careful about.
void report_outside(const remote::SessionResult& result, const OutsideRecording& recording, Console& console);

}  // namespace plimsoll::cli
