#include "cli/outside_recording.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <memory>

#include "base/clock.h"
#include "cli/run_report.h"
#include "cli/units.h"
#include "os/os.h"
#include "os/process_files.h"
#include "profile/recorder.h"

namespace plimsoll::cli {
namespace {

profile::RecorderSettings recorder_settings(const remote::Target& target, const OutsideRecording& recording) {
  const auto pid = static_cast<std::int32_t>(target.pid);
  const cpython::Version& version = target.layout.version;
  utsname system{};
  ::uname(&system);
  profile::RecorderSettings recorder;
  recorder.path = recording.output;
  recorder.rate_hz = recording.session.rate_hz;
  recorder.process = {pid, 0, os::command_line(target.pid)};
  recorder.main_thread = Tid{pid};
  recorder.files = std::make_unique<os::ProcessFiles>(target.pid);
  using Sources = profile::RecorderSettings::Sources;
  recorder.sources = recording.keeps_sources ? Sources::kEmbed : Sources::kOmit;
  recorder.meta = {{"plimsoll", PLIMSOLL_VERSION},
                   {"python", version.text()},
                   {"implementation", "cpython"},
                   {"executable", os::program_file(target.pid)},
                   {"argv", recorder.process.name},
                   {"platform", fmt::format("linux {}", system.machine)},
                   {"kernel", system.release},
                   {"directory", os::working_directory(target.pid)},
                   {"rate_hz", fmt::format("{}", recording.session.rate_hz)}};
  return recorder;
}

bool has_native(const OutsideRecording& recording) {
  return recording.session.sampler.native == remote::NativeFrames::kYes;
}

bool stops(const OutsideRecording& recording) {
  return has_native(recording) || recording.session.stand == remote::Stand::kStop;
}

bool is_apart(const OutsideRecording& recording) { return recording.session.stand == remote::Stand::kApart; }

}  // namespace

Result<capture::Mode> mode_named(const std::string& name) {
  for (const capture::Mode mode : {capture::Mode::kCpu, capture::Mode::kWall, capture::Mode::kGil})
    if (name == capture::text(mode)) return mode;
  return Error{ErrorKind::kUsage, fmt::format("no mode '{}': choose cpu, wall or gil", name)};
}

Status check_rate(double rate_hz) {
  if (rate_hz >= 1 && rate_hz <= 100000) return Ok{};
  return Error{ErrorKind::kUsage, fmt::format("a rate of {} Hz is not possible: choose 1 to 100000", rate_hz)};
}

Status check_max_overhead(double percent) {
  if (percent > 0 && percent <= 100) return Ok{};
  return Error{ErrorKind::kUsage, "--max-overhead: a percentage is more than 0 and at most 100"};
}

Result<remote::SessionResult> record_outside(const remote::Target& target, const OutsideRecording& recording,
                                             const remote::WaitUntil& wait_until, const std::function<void()>& begin) {
  Result<std::unique_ptr<profile::Recorder>> recorder = profile::Recorder::create(recorder_settings(target, recording));
  if (!recorder.ok()) return recorder.error();
  profile::Recorder& sink = *recorder.value();
  sink.fact("engine", "attached");
  sink.fact("mode", capture::text(recording.session.sampler.mode));
  sink.fact("trust", "validated");
  sink.fact("looked_from", stops(recording)      ? "threads that were stopped"
                           : is_apart(recording) ? "other CPUs"
                                                 : "the threads' own CPUs");
  if (has_native(recording)) sink.fact("native", target.image);
  PLIMSOLL_TRY(sink.flush({monotonic_ns(), 0, {}}, capture::SampleSink::Ending::kOpen));
  begin();
  return remote::record(target, recording.session, sink, wait_until);
}

Result<remote::SessionResult> record_program(os::Pid pid, const OutsideRecording& recording) {
  const Result<remote::Target> target = remote::await_target(pid, [&] { return !os::is_alive(pid); });
  if (!target.ok()) return target.error();
  const auto wait_until = [](std::int64_t time_ns) {
    os::sleep_until(time_ns);
    return true;
  };
  return record_outside(target.value(), recording, wait_until, [] {});
}

void report_outside(const remote::SessionResult& result, const OutsideRecording& recording, Console& console) {
  const auto looks = static_cast<std::int64_t>(result.looks);
  const auto late = static_cast<std::int64_t>(result.late);
  const auto spared = static_cast<std::int64_t>(result.spared);
  if (const double percent = percent_of(spared, spared + looks); percent >= 1)
    console.notice(
        fmt::format("{} % of the looks were left out, so that they take at most {:g} % of a CPU: each "
                    "takes long with many threads, or on a busy machine; --max-overhead allows more",
                    format_percent(percent), 100 * recording.session.most_share));
  if (const double percent = percent_of(late, late + looks); percent >= 1)
    console.notice(fmt::format(
        "{} % of the looks could not be taken in time, as the profile was being written, or this machine has "
        "not enough time for {} a second",
        format_percent(percent), recording.session.rate_hz));
  report_recording(recording.output, recording.output,
                   recording.session.follows_children ? Children::kRecorded : Children::kLeftAlone, console);
  if (!is_little(result.unseen_children_ns, result.used_ns))
    console.notice(fmt::format("not in it: child processes, {} of CPU time; {}", format_time(result.unseen_children_ns),
                               recording.session.follows_children
                                   ? "they ended within 50 ms or so, or are no Python, or their parents had ended"
                                   : "--children records them, too"));
  if (result.longest_stop_ns > 0)
    console.notice(fmt::format("threads were stopped for {} at the median, {} at most, with what they waited for a CPU",
                               format_time(result.median_stop_ns), format_time(result.longest_stop_ns)));
  if (result.not_told > 0)
    console.notice(
        fmt::format("take care: {} times a thread could not be looked at, as no more files may be open at once: give "
                    "this command more of them (ulimit -n)",
                    result.not_told));
  constexpr double kMuch = 2;
  const double unproven = percent_of(static_cast<std::int64_t>(result.unproven), looks);
  if (unproven < kMuch) return;
  const std::string share = format_percent(std::min(unproven, 100.0));
  if (stops(recording))
    console.notice(fmt::format("take care: {} % of the looks came to nothing; plimsoll info tells why", share));
  else if (is_apart(recording))
    console.notice(
        fmt::format("take care: {} % of the looks came to nothing, most of them at functions that call others within a "
                    "microsecond or so. Such functions have less time in this profile than they took, and others more: "
                    "leave --apart out for a true picture",
                    share));
  else
    console.notice(fmt::format(
        "take care: {} % of the looks came to nothing, so the times of fast functions may be too small: this program "
        "could not stay on the CPUs of the process's threads (taskset, a container's CPU set, real-time scheduling)",
        share));
}

}  // namespace plimsoll::cli
