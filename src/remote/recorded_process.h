// remote/recorded_process.h: one process of a recording from outside.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/unique_fd.h"
#include "remote/process_cpu.h"
#include "remote/process_sink.h"
#include "remote/sampler.h"
#include "remote/target.h"

namespace plimsoll::remote {

// Looks at it, and knows how long it is the program that it was. Used by one thread.
class RecordedProcess {
 public:
  // What `holds` has, `sink` and `numbers` must outlive it.
  RecordedProcess(const Target& target, const SamplerSettings& settings, const Holds& holds, capture::SampleSink& sink,
                  SharedNumbers& numbers);

  [[nodiscard]] os::Pid pid() const { return target_.pid; }
  [[nodiscard]] Sampler& sampler() { return sampler_; }
  // Who has come, who has gone. `whole`: even if nobody seems to have come; to be done now and then.
  void update(bool whole);
  // False when it has ended, or runs another program now.
  [[nodiscard]] bool goes_on() const { return goes_on_; }
  // CPU time of all its threads since it is recorded.
  // (One that was killed has been looked at since its clock was read last, or its threads' clocks have.)
  [[nodiscard]] std::int64_t used_ns() { return std::max(cpu_.used_ns(), sink_.sampled_cpu_ns()); }

 private:
  // Whether it has the memory that it had: that is gone when it ends or calls exec.
  [[nodiscard]] bool has_memory();

  const Target target_;
  const std::uint64_t stack_start_;
  UniqueFd memory_;  // stays the program's that it was opened of
  ProcessSink sink_;
  ProcessCpu cpu_;
  Sampler sampler_;
  std::int64_t next_new_ns_ = 0;
  bool goes_on_ = true;
};

}  // namespace plimsoll::remote
