#include "remote/recorded_process.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <string>

namespace plimsoll::remote {
namespace {

// How often it is asked whether a thread has been born: half as long as any thread lives that is worth a look.
constexpr std::int64_t kBirthsInterval = 2'000'000;

UniqueFd open_memory(os::Pid pid) {
  const std::string path = "/proc/" + std::to_string(static_cast<int>(pid)) + "/mem";
  return UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
}

// Where the stack of the program began, which exec draws anew; 0 if that is not told.
std::uint64_t stack_start_of(os::Pid pid) {
  constexpr int kStackStart = 28;
  const std::string number = std::to_string(static_cast<int>(pid));
  const UniqueFd file(::open(("/proc/" + number + "/task/" + number + "/stat").c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 1024> line{};
  const ssize_t size = file.is_open() ? ::read(file.get(), line.data(), line.size()) : 0;
  std::uint64_t start = 0;
  const std::string_view text(line.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  os::each_stat_field(text, kStackStart, [&](int field, std::string_view word) {
    if (field == kStackStart) std::from_chars(word.data(), word.data() + word.size(), start);
  });
  return start;
}

}  // namespace

RecordedProcess::RecordedProcess(const Target& target, const SamplerSettings& settings, const Holds& holds,
                                 capture::SampleSink& sink, SharedNumbers& numbers)
    : target_(target),
      stack_start_(stack_start_of(target.pid)),
      memory_(open_memory(target.pid)),
      sink_(sink, numbers, {0, static_cast<std::int32_t>(target.pid), os::command_line(target.pid)}),
      sampler_(target_, settings, holds, sink_) {
  if (::clock_getcpuclockid(static_cast<pid_t>(target.pid), &clock_) != 0) clock_ = -1;
  start_cpu_ns_ = last_cpu_ns_ = clock_ns(clock_);
}

bool RecordedProcess::has_memory() {
  char byte = 0;
  if (!memory_.is_open()) {
    memory_ = open_memory(target_.pid);
    if (!memory_.is_open()) return errno == EMFILE || errno == ENFILE;  // it may be there: some file is closed soon
  }
  if (::pread(memory_.get(), &byte, 1, static_cast<off_t>(raw(target_.runtime))) != 1) return false;
  // A child of vfork has its parent's memory, and is that Python, until it calls exec: which takes that from nobody.
  const std::uint64_t stack_start = stack_start_of(target_.pid);
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
  read_clock();
}

std::int64_t RecordedProcess::used_ns() {
  read_clock();
  return last_cpu_ns_ - start_cpu_ns_;
}

}  // namespace plimsoll::remote
