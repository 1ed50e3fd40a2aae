#include "cli/diagnosis.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/utsname.h>

#include <boost/json.hpp>
#include <charconv>
#include <csignal>
#include <fstream>

#include "cli/python_program.h"
#include "os/os.h"

namespace plimsoll::cli {
namespace {

std::optional<int> number_in(const char* path) {
  std::ifstream file(path);
  int value = 0;
  return file >> value ? std::optional(value) : std::nullopt;
}

// Records a moment of work in the interpreter itself: what that says is worth more than any list of conditions.
constexpr const char* kProbe = R"(
import json, platform, sys, time
facts = {"python": platform.python_implementation() + " " + platform.python_version()}
if not getattr(sys, "_is_gil_enabled", lambda: True)(): facts["python"] += " free-threaded"
try:
    import plimsoll
    if sys.implementation.name == "pypy":
        import plimsoll._pypy
    else:
        facts["plimsoll"] = plimsoll.__version__
        with plimsoll.Profiler() as profiler:
            end = time.thread_time() + 0.2
            while time.thread_time() < end: sum(range(300))
        facts["engine"] = profiler.profile.meta["engine"]
        facts["coverage"] = profiler.profile.sampled_cpu / max(profiler.profile.process_cpu, 1e-9)
except ImportError as error:
    facts["error"] = "plimsoll is not installed for it" if error.name == "plimsoll" else str(error)
except Exception as error:
    facts["error"] = str(error)
print()
print(json.dumps(facts))
)";

void ask_python(Machine& machine) {
  const std::string answer = last_line_of({machine.interpreter, "-c", kProbe});
  boost::system::error_code failed;
  const boost::json::value facts = boost::json::parse(answer, failed);
  if (failed || !facts.is_object()) {
    machine.python_error = "it could not be started, does not answer, or is older than Python 3.9";
    return;
  }
  const auto text = [&](const char* name) {
    const auto* value = facts.as_object().if_contains(name);
    return value != nullptr && value->is_string() ? std::string(value->as_string()) : std::string{};
  };
  machine.python = text("python");
  machine.plimsoll = text("plimsoll");
  machine.engine = text("engine");
  machine.python_error = text("error");
  if (const auto* coverage = facts.as_object().if_contains("coverage"); coverage != nullptr && coverage->is_number())
    machine.coverage = coverage->to_number<double>();
}

Finding about_python(const Machine& machine) {
  if (machine.interpreter.empty()) return {Verdict::kMissing, machine.python_error, "name one with --python PYTHON"};
  const std::string name =
      machine.python.empty() ? machine.interpreter : fmt::format("{} ({})", machine.python, machine.interpreter);
  if (!machine.python_error.empty()) {
    const bool is_absent = machine.python_error.starts_with("plimsoll is not installed");
    return {Verdict::kMissing, fmt::format("{}: {}", name, machine.python_error),
            is_absent ? fmt::format("{} -m pip install plimsoll", machine.interpreter) : ""};
  }
  return {Verdict::kGood,
          fmt::format("{} with plimsoll{}{}", name, machine.plimsoll.empty() ? "" : " ", machine.plimsoll), ""};
}

Finding about_recording(const Machine& machine) {
  constexpr double kGoodCoverage = 0.97;
  const std::string what =
      fmt::format("a test recording by {} covered {:.1f} % of its CPU time", machine.engine, 100 * machine.coverage);
  if (machine.coverage >= kGoodCoverage) return {Verdict::kGood, what, ""};
  return {Verdict::kLimited, what, "the machine may be busy: run plimsoll selftest"};
}

Finding about_own_sampler(const Machine& machine) {
  return {
      Verdict::kGood,
      fmt::format("plimsoll run records it with PyPy's own sampler: CPU time up to {} Hz, or all time (--mode wall)",
                  machine.scheduler_hz),
      ""};
}

Finding about_ticks(const Machine& machine) {
  if (machine.perf_error.empty())
    return {Verdict::kGood, "perf events tick on each thread's own CPU time, at any rate", ""};
  const std::string level = machine.perf_event_paranoid
                                ? fmt::format(" (kernel.perf_event_paranoid is {})", *machine.perf_event_paranoid)
                                : "";
  return {Verdict::kLimited,
          fmt::format("no perf events: {}{}; timers tick instead, exactly up to {} Hz", machine.perf_error, level,
                      machine.scheduler_hz),
          machine.perf_event_paranoid.value_or(0) > 1
              ? "sudo sysctl kernel.perf_event_paranoid=1 (in a container: on its host), or the capability CAP_PERFMON"
              : "in a container: --cap-add PERFMON, and a seccomp profile that allows perf_event_open"};
}

Finding about_traps(const Machine& machine) {
  if (machine.has_traps) return {Verdict::kGood, "ticks come as traps: no system call is ever cut short", ""};
  return {Verdict::kLimited,
          "ticks come as signals: a wait that one ends begins anew on x86-64, and ends with EINTR elsewhere",
          machine.perf_error.empty() ? "Linux 6.1 or newer has better" : ""};
}

Finding about_waits(const Machine& machine) {
  if (!machine.has_wait_files)
    return {Verdict::kLimited, "the kernel does not say what a thread waits in: --mode wall shows waits as \"other\"",
            ""};
  if (!machine.has_schedstat)
    return {Verdict::kLimited, "the kernel does not count how long threads wait for a CPU (no schedstat)", ""};
  return {Verdict::kGood, "waits can be told apart (--mode wall)", ""};
}

Finding about_descriptors(const Machine& machine) {
  constexpr std::size_t kMany = 1024;
  const std::string what =
      fmt::format("a process may have {} files open, and a recording needs one per thread", machine.open_files);
  if (machine.open_files >= kMany || !machine.perf_error.empty()) return {Verdict::kGood, what, ""};
  return {Verdict::kLimited, what, "ulimit -n 4096"};
}

}  // namespace

std::vector<Finding> diagnose(const Machine& machine) {
  std::vector<Finding> findings{about_python(machine)};
  const bool can_record = findings[0].verdict == Verdict::kGood;
  // To that sampler nothing of the rest matters.
  if (can_record && machine.python.starts_with("PyPy")) return {findings[0], about_own_sampler(machine)};
  if (can_record) findings.push_back(about_recording(machine));
  for (const auto about : {about_ticks, about_traps, about_waits, about_descriptors})
    findings.push_back(about(machine));
  return findings;
}

Machine examine(const std::string& interpreter, const std::string& python_error) {
  Machine machine;
  utsname names{};
  if (::uname(&names) == 0) machine.kernel = fmt::format("{} {}", names.release, names.machine);
  machine.perf_event_paranoid = number_in("/proc/sys/kernel/perf_event_paranoid");
  machine.scheduler_hz = os::scheduler_hz();
  constexpr std::int64_t kNever = 1'000'000'000;
  const Result<os::ThreadTick> tick =
      os::ThreadTick::create(os::TickClock::kPerf, {os::current_tid(), SIGRTMAX, 0, kNever, kNever});
  if (!tick.ok()) machine.perf_error = tick.error().message;
  machine.has_traps = os::has_trap_ticks();
  const os::ThreadProbe probe(os::current_tid(), os::ThreadProbe::Keep::kClosed);
  machine.has_wait_files = probe.wait().kind != os::KernelWait::Kind::kUnknown;
  machine.has_schedstat = probe.ready_ns() >= 0;
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0) machine.open_files = files.rlim_cur;
  machine.interpreter = interpreter;
  machine.python_error = python_error;
  if (!interpreter.empty()) ask_python(machine);
  return machine;
}

}  // namespace plimsoll::cli
