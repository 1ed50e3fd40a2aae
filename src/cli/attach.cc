// cli/attach.cc: records a process that runs already, from outside.
#include "cli/commands.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/utsname.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <filesystem>

#include "base/clock.h"
#include "cli/exit_code.h"
#include "cli/run_report.h"
#include "cli/units.h"
#include "cli/write_file.h"
#include "os/os.h"
#include "profile/recorder.h"
#include "remote/session.h"

namespace plimsoll::cli {
namespace {

namespace fs = std::filesystem;

Result<capture::Mode> mode_named(const std::string& name) {
  for (const capture::Mode mode : {capture::Mode::kCpu, capture::Mode::kWall, capture::Mode::kGil})
    if (name == capture::text(mode)) return mode;
  return Error{ErrorKind::kUsage, fmt::format("no mode '{}': choose cpu, wall or gil", name)};
}

// Ctrl-C, a hang-up and a polite kill end the recording, not this process: while it lives they only end waits.
class StopSignals {
 public:
  StopSignals() {
    ::sigemptyset(&set_);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&set_, signal);
    ::pthread_sigmask(SIG_BLOCK, &set_, &before_);
  }
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  ~StopSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

  // False if one came.
  [[nodiscard]] bool wait_until(std::int64_t time_ns) const {
    while (true) {
      const std::int64_t left_ns = std::max<std::int64_t>(time_ns - monotonic_ns(), 0);
      const timespec left{left_ns / 1'000'000'000, left_ns % 1'000'000'000};
      if (::sigtimedwait(&set_, nullptr, &left) > 0) return false;
      if (errno == EAGAIN) return true;
    }
  }

 private:
  sigset_t set_{};
  sigset_t before_{};
};

class Attach final : public Command {
 public:
  [[nodiscard]] std::string_view name() const override { return "attach"; }
  [[nodiscard]] std::string_view summary() const override { return "Record a process that runs already"; }
  [[nodiscard]] std::string examples() const override {
    return "  plimsoll attach 1234                       CPU time of process 1234, until it ends or Ctrl-C\n"
           "  plimsoll attach 1234 -d 30 -o app.plim     for 30 seconds\n"
           "  plimsoll attach 1234 --mode wall           where its threads wait, too\n"
           "  plimsoll attach 1234 -r 100                100 looks a second instead of 1000\n"
           "The process is not stopped, and nothing is written into it. Each look takes some 20 us of its CPU; "
           "--apart\n"
           "takes none, and sees little of functions that are over in microseconds.";
  }

  void add_arguments(CLI::App& app) override {
    app.add_option("PID", pid_, "The process")->required()->type_name("")->check(CLI::PositiveNumber);
    app.add_option("-o,--output", output_, "The profile; by default PID-DATE-TIME.plim")->type_name("FILE");
    app.add_option("-d,--duration", duration_, "For so long: 30, 500ms, 2min; by default until the process ends")
        ->type_name("TIME");
    app.add_option("-r,--rate", settings_.rate_hz, "Looks a second; 1000 by default")->type_name("HZ");
    app.add_option("--mode", mode_, "cpu (default), wall (waits, too) or gil (with the lock of the interpreter)")
        ->type_name("MODE");
    app.add_option("--max-depth", settings_.sampler.max_depth,
                   "Frames kept of a stack, innermost first; 2048 by default")
        ->type_name("N")
        ->check(CLI::Range(1, 65536));
    app.add_flag("--apart", is_apart_,
                 "Look from other CPUs than the process's own: takes no time from it, and loses fast functions");
    app.add_flag("--no-sources", no_sources_, "Do not keep the profiled files' text in the profile");
  }

  Result<int> run(Console& console) override {
    PLIMSOLL_TRY(check_settings());
    const Result<remote::Target> target = remote::find_target(os::Pid{pid_});
    if (!target.ok()) return target.error();
    PLIMSOLL_TRY(remote::check(target.value(), settings_));
    const std::string output = output_.empty() ? new_profile_path(std::to_string(pid_)) : output_;
    Result<std::unique_ptr<profile::Recorder>> recorder =
        profile::Recorder::create(recorder_settings(target.value(), output));
    if (!recorder.ok()) return recorder.error();
    profile::Recorder& sink = *recorder.value();
    sink.fact("engine", "attached");
    sink.fact("mode", capture::text(settings_.sampler.mode));
    sink.fact("trust", "validated");
    PLIMSOLL_TRY(sink.flush({monotonic_ns(), 0, {}}, capture::SampleSink::Ending::kOpen));
    sink.fact("looked_from", is_apart_ ? "other CPUs" : "the threads' own CPUs");
    os::wake_on_time();
    if (!is_apart_) os::hurry();
    const StopSignals signals;
    console.notice(fmt::format("recording process {} (Python {}) into {}; Ctrl-C ends it", pid_,
                               target.value().layout.version.text(), output));
    const Result<remote::SessionResult> result = remote::record(
        target.value(), settings_, sink, [&](std::int64_t time_ns) { return signals.wait_until(time_ns); });
    if (!result.ok()) return result.error();
    report(result.value(), output, console);
    return kFine;
  }

 private:
  Status check_settings() {
    if (!(settings_.rate_hz >= 1 && settings_.rate_hz <= 100000))
      return Error{ErrorKind::kUsage,
                   fmt::format("a rate of {} Hz is not possible: choose 1 to 100000", settings_.rate_hz)};
    const Result<capture::Mode> mode = mode_named(mode_);
    if (!mode.ok()) return mode.error();
    settings_.sampler.mode = mode.value();
    settings_.sampler.stand = is_apart_ ? remote::Stand::kApart : remote::Stand::kBeside;
    if (duration_.empty()) return Ok{};
    const Result<std::int64_t> duration = parse_time(duration_, "--duration");
    if (!duration.ok()) return duration.error();
    if (duration.value() <= 0) return Error{ErrorKind::kUsage, "the duration must be more than 0 seconds"};
    settings_.duration_ns = duration.value();
    return Ok{};
  }

  [[nodiscard]] profile::RecorderSettings recorder_settings(const remote::Target& target,
                                                            const std::string& output) const {
    const std::string process = fmt::format("/proc/{}", pid_);
    std::error_code none;
    const cpython::Version& version = target.layout.version;
    utsname system{};
    ::uname(&system);
    profile::RecorderSettings recorder;
    recorder.path = output;
    recorder.rate_hz = settings_.rate_hz;
    recorder.process = {pid_, 0, os::command_line(target.pid)};
    recorder.main_thread = Tid{pid_};
    recorder.directory = os::working_directory(target.pid);
    // A process in a container sees other files under the same names.
    if (fs::read_symlink(process + "/root", none) != "/") recorder.root = process + "/root";
    using Sources = profile::RecorderSettings::Sources;
    recorder.sources = no_sources_ ? Sources::kOmit : Sources::kEmbed;
    recorder.meta = {{"plimsoll", PLIMSOLL_VERSION},
                     {"python", version.text()},
                     {"implementation", "cpython"},
                     {"executable", os::program_file(target.pid)},
                     {"argv", recorder.process.name},
                     {"platform", fmt::format("linux {}", system.machine)},
                     {"kernel", system.release},
                     {"directory", recorder.directory},
                     {"rate_hz", fmt::format("{}", settings_.rate_hz)}};
    return recorder;
  }

  void report(const remote::SessionResult& result, const std::string& output, Console& console) const {
    if (result.ending == remote::Ending::kProcessEnded)
      console.notice(fmt::format("process {} has ended, or runs another program now", pid_));
    const double percent =
        percent_of(static_cast<std::int64_t>(result.late), static_cast<std::int64_t>(result.late + result.looks));
    if (percent >= 1)
      console.notice(
          fmt::format("{} % of the looks could not be taken in time: this machine has not enough time for "
                      "{} a second",
                      format_percent(percent), settings_.rate_hz));
    report_recording(output, output, console);
    constexpr double kMuch = 2;
    const double unproven =
        percent_of(static_cast<std::int64_t>(result.unproven), static_cast<std::int64_t>(result.looks));
    if (unproven < kMuch) return;
    const std::string share = format_percent(std::min(unproven, 100.0));
    if (is_apart_)
      console.notice(fmt::format(
          "take care: {} % of the looks came to nothing, most of them at functions that call others within a "
          "microsecond or so. Such functions have less time in this profile than they took, and others more: "
          "leave --apart out for a true picture",
          share));
    else
      console.notice(fmt::format(
          "take care: {} % of the looks came to nothing, so the times of fast functions may be too small: this program "
          "could not stay on the CPUs of the process's threads (taskset, a container's CPU set, real-time scheduling)",
          share));
  }

  std::int32_t pid_ = 0;
  remote::SessionSettings settings_;
  std::string output_, duration_, mode_ = "cpu";
  bool is_apart_ = false;
  bool no_sources_ = false;
};

}  // namespace

std::unique_ptr<Command> make_attach() { return std::make_unique<Attach>(); }

}  // namespace plimsoll::cli
