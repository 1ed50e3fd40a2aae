// remote/process_cpu.h: what a process uses, as its own clock says.
#pragma once

#include <time.h>

#include <algorithm>
#include <cstdint>

#include "base/clock.h"
#include "os/process.h"

namespace plimsoll::remote {

// CPU time of all threads of a process, living and dead, in nanoseconds since this was made. To be read often: of a
// process that has ended it tells what it told last.
class ProcessCpu {
 public:
  explicit ProcessCpu(os::Pid pid) {
    if (::clock_getcpuclockid(static_cast<pid_t>(pid), &clock_) != 0) clock_ = -1;
    start_ns_ = last_ns_ = clock_ns(clock_);
  }
  std::int64_t used_ns() {
    last_ns_ = std::max(last_ns_, clock_ns(clock_));
    return last_ns_ - start_ns_;
  }

 private:
  clockid_t clock_{};
  std::int64_t start_ns_ = 0, last_ns_ = 0;
};

}  // namespace plimsoll::remote
