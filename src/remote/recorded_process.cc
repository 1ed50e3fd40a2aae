#include "remote/recorded_process.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "base/clock.h"

namespace plimsoll::remote {
namespace {

// How often it is asked whether a thread has been born: half as long as any thread lives that is worth a look.
constexpr std::int64_t kBirthsInterval = 2'000'000;

UniqueFd open_memory(os::Pid pid) {
  const std::string path = "/proc/" + std::to_string(static_cast<int>(pid)) + "/mem";
  return UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
}

}  // namespace

RecordedProcess::RecordedProcess(const Target& target, const SamplerSettings& settings, const Holds& holds,
                                 capture::SampleSink& sink, SharedNumbers& numbers)
    : target_(target),
      stack_start_(os::stack_start(target.pid)),
      memory_(open_memory(target.pid)),
      sink_(sink, numbers, {0, static_cast<std::int32_t>(target.pid), os::command_line(target.pid)}),
      cpu_(target.pid),
      sampler_(target_, settings, holds, cpu_, sink_) {}

bool RecordedProcess::has_memory() {
  char byte = 0;
  if (!memory_.is_open()) {
    memory_ = open_memory(target_.pid);
    if (!memory_.is_open()) return errno == EMFILE || errno == ENFILE;  // it may be there: some file is closed soon
  }
  if (::pread(memory_.get(), &byte, 1, static_cast<off_t>(raw(target_.runtime))) != 1) return false;
  // A child of vfork has its parent's memory, and is that Python, until it calls exec: which takes that from nobody.
  const std::uint64_t stack_start = os::stack_start(target_.pid);
  return stack_start == 0 || stack_start == stack_start_;
}

void RecordedProcess::update(bool whole) {
  const std::int64_t now_ns = monotonic_ns();
  if (!whole) {
    if (now_ns < next_new_ns_) return;
    next_new_ns_ = now_ns + kBirthsInterval;
    if (!sampler_.has_new_threads()) return;
  }
  goes_on_ = has_memory();
  if (!goes_on_) return;
  sampler_.update_threads();
  (void)cpu_.used_ns();
}

}  // namespace plimsoll::remote
