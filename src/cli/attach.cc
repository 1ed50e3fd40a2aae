// cli/attach.cc: records a process that runs already, from outside.
#include "cli/commands.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <optional>

#include "base/clock.h"
#include "cli/exit_code.h"
#include "cli/inside_recording.h"
#include "cli/output_path.h"
#include "cli/outside_recording.h"
#include "cli/process_id.h"
#include "cli/run_settings.h"
#include "cli/units.h"
#include "cpython/task_layout.h"
#include "formats/registry.h"

namespace plimsoll::cli {
namespace {

// Ctrl-C, a hang-up and a polite kill end the recording, not this process, from here to its end: one that comes while
// the profile is written or reported must not take them away.
class StopSignals {
 public:
  StopSignals() {
    ::sigemptyset(&set_);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&set_, signal);
    ::pthread_sigmask(SIG_BLOCK, &set_, nullptr);
  }

  // False if one came.
  [[nodiscard]] bool wait_until(std::int64_t time_ns) const {
    while (true) {
      const std::int64_t left_ns = std::max<std::int64_t>(time_ns - monotonic_ns(), 0);
      const timespec left = timespec_of(left_ns);
      if (::sigtimedwait(&set_, nullptr, &left) > 0) return false;
      if (errno == EAGAIN) return true;
    }
  }

 private:
  sigset_t set_{};
};

class Attach final : public Command {
 public:
  [[nodiscard]] std::string_view name() const override { return "attach"; }
  [[nodiscard]] std::string_view summary() const override { return "Record a process that runs already"; }
  [[nodiscard]] std::string examples() const override {
    return "  plimsoll attach 1234                       CPU time of process 1234, until it ends or Ctrl-C\n"
           "  plimsoll attach 1234 -d 30 -o app.plim     for 30 seconds\n"
           "  plimsoll attach 1234 --mode wall           where its threads wait, too\n"
           "  plimsoll attach 1234 --tasks               of asyncio: below the tasks that await what runs\n"
           "  plimsoll attach 1234 -r 100                100 looks a second instead of 1000\n"
           "  plimsoll attach 1234 --native              functions of C, C++, ... too: plimsoll show FILE --native\n"
           "  plimsoll attach 1234 --alloc -d 60         memory, too (CPython 3.14 and later): plimsoll show FILE "
           "leaks\n"
           "The process is not stopped, and nothing is written into it. Each look takes some 20 us of its CPU; "
           "--apart\n"
           "takes none, and sees little of functions that are over in microseconds. With --native each thread that "
           "runs\n"
           "is stopped for some 100 us a look; one that waits never is. With --alloc the process itself is made to\n"
           "record, by its main thread, from the next function that this calls or leaves.";
  }

  void add_arguments(CLI::App& app) override {
    app.add_option("PID", pid_, "The process")->required()->type_name("")->check(process_id());
    app.add_option("-o,--output", output_, "The profile; by default PID-DATE-TIME.plim")->type_name("FILE");
    app.add_option("-d,--duration", duration_, "For so long: 30, 500ms, 2min; by default until the process ends")
        ->type_name("TIME");
    app.add_option("-r,--rate", rate_hz_, "Looks a second; 1000 by default, 100 with --native")->type_name("HZ");
    app.add_option("--mode", mode_, "cpu (default), wall (waits, too) or gil (with the lock of the interpreter)")
        ->type_name("MODE");
    app.add_option("--max-overhead", max_overhead_,
                   "Of a CPU, for looks, in percent; 20 by default. Where they would take more, there are fewer")
        ->type_name("PERCENT");
    app.add_option("--max-depth", recording_.session.sampler.max_depth,
                   "Frames kept of a stack, innermost first; 2048 by default")
        ->type_name("N")
        ->check(CLI::Range(1, 65536));
    app.add_flag("--native", has_native_,
                 "Native functions, too, between those of Python; threads that run are stopped while their stacks are "
                 "copied");
    app.add_flag("--children", has_children_, "The processes that it starts, too, in the same profile");
    app.add_flag(
        "--tasks", has_tasks_,
        "asyncio's tasks with those that await them, in place of the event loop (not of 3.13t, nor with --apart, "
        "--native or --stop)");
    app.add_flag("--apart", is_apart_,
                 "Look from other CPUs than the process's own: takes no time from it, and loses fast functions");
    app.add_flag("--stop", stops_,
                 "Stop threads that run while they are looked at: where this program may not run on their CPUs");
    app.add_flag("--alloc{512K}", alloc_,
                 "Sample allocations, too, as run --alloc does: one in BYTES on average, exact or events; by code that "
                 "the process "
                 "is made to run")
        ->type_name("[=BYTES]");
    app.add_flag("--native-memory", has_native_memory_, "Those that C libraries make by malloc, too; implies --alloc");
    app.add_flag("--no-sources", no_sources_, "Do not keep the profiled files' text in the profile");
  }

  Result<int> run(Console& console) override {
    if (has_native_memory_ && alloc_.empty()) alloc_ = "512K";
    PLIMSOLL_TRY(check_settings());
    const Result<remote::Target> target = remote::find_named_target(os::Pid{pid_});
    if (!target.ok()) return target.error();
    if (!alloc_.empty()) return run_inside(target.value().layout.version, console);
    PLIMSOLL_TRY(remote::check(target.value(), recording_.session));
    if (has_tasks_) PLIMSOLL_TRY(cpython::knows_awaiters(target.value().layout.version));
    recording_.output = output();
    const StopSignals signals;
    const auto wait_until = [&](std::int64_t time_ns) { return signals.wait_until(time_ns); };
    const Result<remote::SessionResult> result = record_outside(target.value(), recording_, wait_until, [&] {
      console.notice(fmt::format("recording process {} (Python {}) into {}; Ctrl-C ends it", pid_,
                                 target.value().layout.version.text(), recording_.output));
    });
    if (!result.ok()) return result.error();
    if (result.value().ending == remote::Ending::kProcessEnded)
      console.notice(fmt::format("process {} has ended, or runs another program now", pid_));
    report_outside(result.value(), recording_, console);
    // (One that did nothing all the time has been recorded, too.)
    if (result.value().ending != remote::Ending::kProcessEnded || result.value().samples > 0) return kFine;
    console.notice("there are no samples: the process ended before it used any CPU time that could be seen");
    return kNoSamples;
  }

 private:
  [[nodiscard]] std::string output() const {
    return output_.empty() ? new_profile_path(std::to_string(pid_)) : output_;
  }

  [[nodiscard]] Result<int> run_inside(const cpython::Version& version, Console& console) const {
    InsideRecording inside{pid_, output(), static_cast<double>(recording_.session.duration_ns) / 1e9, {}};
    const auto say = [&inside](const char* name, const auto& value) {
      inside.settings.emplace_back(name, fmt::format("{}", value));
    };
    say("rate_hz", rate_hz_.value_or(kOutsideRate));
    say("mode", mode_);
    say("max_depth", recording_.session.sampler.max_depth);
    if (max_overhead_) say("max_overhead", *max_overhead_ / 100);
    inside.settings.push_back(allocation_setting(alloc_).value());
    if (has_native_memory_) say("native_memory", 1);
    if (has_native_) say("native", 1);
    if (no_sources_) say("sources", "");
    return record_inside(inside, version, console);
  }

  [[nodiscard]] Status check_inside() const {
    if (alloc_.empty()) return Ok{};
    if (has_children_ || has_tasks_ || is_apart_ || stops_)
      return Error{ErrorKind::kUsage,
                   "--alloc records in the process itself: leave --children, --tasks, --apart and --stop out"};
    const auto allocations = allocation_setting(alloc_);
    return allocations.ok() ? Status(Ok{}) : Status(allocations.error());
  }

  Status check_settings() {
    PLIMSOLL_TRY(check_inside());
    PLIMSOLL_TRY(check_recording_path(output_));
    if (!output_.empty() && !output_.ends_with(".plim") && formats::find_writer("", output_).ok())
      return Error{ErrorKind::kUsage,
                   fmt::format("-o {0}: attach writes .plim files; then plimsoll convert -o {0}", output_)};
    recording_.session.rate_hz = rate_hz_.value_or(has_native_ ? kOutsideNativeRate : kOutsideRate);
    PLIMSOLL_TRY(check_rate(recording_.session.rate_hz));
    if ((has_native_ || stops_) && is_apart_)
      return Error{ErrorKind::kUsage, "--native and --stop stop the threads that they look at: leave --apart out"};
    recording_.session.sampler.native = has_native_ ? remote::NativeFrames::kYes : remote::NativeFrames::kNo;
    const Result<capture::Mode> mode = mode_named(mode_);
    if (!mode.ok()) return mode.error();
    recording_.session.sampler.mode = mode.value();
    recording_.session.follows_children = has_children_;
    if (has_tasks_ && (is_apart_ || has_native_ || stops_))
      return Error{ErrorKind::kUsage,
                   "--tasks takes looks from the process's own CPUs: leave --apart, --native and --stop out"};
    if (has_tasks_) recording_.session.sampler.awaiting_tasks = remote::AwaitingTasks::kYes;
    recording_.session.stand = is_apart_ ? remote::Stand::kApart
                               : stops_  ? remote::Stand::kStop
                                         : remote::Stand::kBeside;
    recording_.keeps_sources = !no_sources_;
    PLIMSOLL_TRY(check_max_overhead(max_overhead_.value_or(1)));
    if (max_overhead_) recording_.session.most_share = *max_overhead_ / 100;
    if (duration_.empty()) return Ok{};
    const Result<std::int64_t> duration = parse_time(duration_, "--duration");
    if (!duration.ok()) return duration.error();
    if (duration.value() <= 0) return Error{ErrorKind::kUsage, "the duration must be more than 0 seconds"};
    recording_.session.duration_ns = duration.value();
    return Ok{};
  }

  std::int32_t pid_ = 0;
  std::optional<double> max_overhead_;
  OutsideRecording recording_;
  std::string output_, duration_, mode_ = "cpu", alloc_;
  std::optional<double> rate_hz_;
  bool has_children_ = false, is_apart_ = false, has_native_ = false, has_tasks_ = false, stops_ = false;
  bool no_sources_ = false, has_native_memory_ = false;
};

}  // namespace

std::unique_ptr<Command> make_attach() { return std::make_unique<Attach>(); }

}  // namespace plimsoll::cli
