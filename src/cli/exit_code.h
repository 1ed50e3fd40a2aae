// cli/exit_code.h: what the process tells its caller. The numbers are documented and never change.
#pragma once

#include "base/result.h"

namespace plimsoll::cli {

// `plimsoll run` passes the program's own code through; these are for what Plimsoll itself has to say.
enum ExitCode : int {
  kFine = 0,
  kFailed = 1,        // a system call failed, or this system cannot do it
  kUsage = 2,         // the command line makes no sense
  kNoPermission = 3,  // the system refused
  kNoSamples = 4,     // nothing was recorded, or nothing is left after the filters
  kBadInput = 5,      // a file is missing, damaged, or not a profile
};

constexpr ExitCode exit_code(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kUsage: return kUsage;
    case ErrorKind::kPermission: return kNoPermission;
    case ErrorKind::kBadInput: return kBadInput;
    case ErrorKind::kUnsupported:
    case ErrorKind::kSystem: break;
  }
  return kFailed;
}

}  // namespace plimsoll::cli
