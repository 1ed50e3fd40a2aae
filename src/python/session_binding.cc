#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "alloc/patched_malloc.h"
#include "base/clock.h"
#include "base/unkept_file.h"
#include "capture/session.h"
#include "os/os.h"
#include "profile/recorder.h"
#include "python/allocation_hook.h"
#include "python/bindings.h"
#include "python/code_hook.h"
#include "python/interpreter.h"
#include "python/recording.h"
#include "python/task_tables.h"

namespace nb = nanobind;

namespace plimsoll::python {
namespace {

std::optional<os::TickClock> clock_named(const std::string& engine) {
  if (engine == "auto" || engine == "signal" || engine == "reader") return std::nullopt;
  if (engine == "perf") return os::TickClock::kPerf;
  if (engine == "timer") return os::TickClock::kMonotonic;
  if (engine == "cpu-timer") return os::TickClock::kThreadCpu;
  raise(Error{ErrorKind::kUsage, "unknown engine \"" + engine + "\": choose auto, perf, cpu-timer, timer or reader"});
}

capture::Mode mode_named(const std::string& mode) {
  for (const capture::Mode known : {capture::Mode::kCpu, capture::Mode::kWall, capture::Mode::kGil})
    if (mode == capture::text(known)) return known;
  raise(Error{ErrorKind::kUsage, "unknown mode \"" + mode + "\": choose cpu, wall or gil"});
}

// Above this rate, signals cost the program more than a reader does.
constexpr double kManyTicks = 1000;

bool is_by_reader(const std::string& engine, const capture::TickSettings& tick, bool has_native) {
  if (engine == "reader" && has_native)
    raise(Error{ErrorKind::kUsage,
                "native frames are recorded by each thread's own ticks: they need another engine than reader"});
  const bool can_be = tick.mode != capture::Mode::kGil;
  if (engine == "reader" && !can_be)
    raise(Error{ErrorKind::kUsage, "the engine reader cannot tell who holds the GIL: mode gil needs another engine"});
  return engine == "reader" || (engine == "auto" && can_be && !has_native && tick.rate_hz > kManyTicks);
}

// The thread state of a thread of any interpreter, by pthread_self(); null if it has none. Needs the GIL.
Address thread_state_of(unsigned long ident) {
  for (PyInterpreterState* interpreter = PyInterpreterState_Head(); interpreter != nullptr;
       interpreter = PyInterpreterState_Next(interpreter))
    for (PyThreadState* state = PyInterpreterState_ThreadHead(interpreter); state != nullptr;
         state = PyThreadState_Next(state))
      if (state->thread_id == ident) return address_of(state);
  return Address{};
}

// Those who await a task are recorded with it; what stands in the way is for `meta`.
void tell_tasks(PyObject* known_task, capture::Interpreter& interpreter,
                std::vector<std::pair<std::string, std::string>>& meta) {
  Result<cpython::TaskLayout> found = find_tasks(interpreter, known_task);
  if (found.ok())
    interpreter.tasks = found.take();
  else
    meta.emplace_back("tasks", found.error().message);
}

std::string rate_text(double rate_hz) {
  std::string text = std::to_string(rate_hz);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

// Of a recording that was begun for another process, which is no more: Python code is to end it, in the main thread.
int end_unheard(void*) {
  try {
    nb::module_::import_("plimsoll._inside").attr("end_unheard")();
  } catch (nb::python_error& error) {
    error.discard_as_unraisable("plimsoll._inside.end_unheard");
  }
  return 0;
}
// May be called by threads that Python does not know. False if too much is to be done there already.
bool have_it_ended() { return Py_AddPendingCall(&end_unheard, nullptr) == 0; }

enum class Perf : std::uint8_t { kNo, kYes };
// What starting would wait for otherwise. What is returned is to be kept until the first thread has its perf event.
UniqueFd made_ready(Perf perf) {
  const nb::gil_scoped_release release;
  os::grow_descriptor_table();
  return perf == Perf::kYes ? os::open_idle_counter() : UniqueFd{};
}

}  // namespace

// The one recording of the process. The pointers outlive the Python object on purpose: hooks that run late in the
// interpreter's life (thread ends, deaths of code objects) must not meet a destroyed session.
class Recording {
 public:
  Recording(const FilePath& path, double rate_hz, const std::string& mode, const std::string& engine, bool safe_mode,
            double max_overhead, std::size_t memory_mb, std::size_t max_depth, double duration_s, double rss_interval_s,
            std::uint64_t alloc_bytes, bool alloc_exact, bool alloc_events, bool native_memory, bool native,
            const nb::object& known_task, bool sources, std::vector<std::pair<std::string, std::string>> meta,
            const std::string& process_name) {
    if (current_recording() != nullptr) raise(Error{ErrorKind::kUsage, "a recording is active already: stop it first"});
    capture::Interpreter interpreter = value_or_raise(find_interpreter());
    capture::SessionSettings settings;
    settings.tick.rate_hz = rate_hz;
    settings.tick.mode = mode_named(mode);
    settings.tick.clock = clock_named(engine);
    settings.tick.by_reader = is_by_reader(engine, settings.tick, native);
    settings.has_native = native;
    settings.watch_deaths = &watch_code_deaths;
    if (native_memory) settings.before_drain = &alloc::patch_new_modules;
    settings.max_overhead = max_overhead;
    settings.tick.measures_itself = max_overhead > 0;
    settings.tick.max_depth = std::clamp<std::size_t>(max_depth, 1, 65536);
    if (native) check(capture::Session::check_native());
    // Other threads of the program go on while the kernel makes itself ready.
    const UniqueFd counter = made_ready(settings.tick.by_reader ? Perf::kNo : Perf::kYes);
    check(capture::CpuSampler::check(settings.tick));  // before the file, which may hold an earlier profile
    settings.trust = safe_mode ? capture::Trust::kKnown : capture::Trust::kValidated;
    // A quarter of the budget is for the ring, half for tables, and the rest for what is being encoded.
    const std::size_t budget = std::max<std::size_t>(memory_mb, 1) << 20U;
    settings.ring_bytes = budget / 4;
    settings.duration_ns = static_cast<std::int64_t>(duration_s * 1e9);
    settings.rss_interval_ns = static_cast<std::int64_t>(rss_interval_s * 1e9);

    profile::RecorderSettings recorder;
    recorder.path = path.bytes;
    recorder.memory_bytes = budget / 2;
    recorder.rate_hz = rate_hz;
    recorder.allocation_distance = alloc_bytes;
    recorder.is_exact = settings.exact_allocations = alloc_exact;
    recorder.has_events = alloc_events;
    if (alloc_events) exact_ = ExactAllocations::kEvents;
    if (native_memory) meta.emplace_back("native_memory", "malloc");
    recorder.meta = std::move(meta);
    recorder.meta.emplace_back("rate_hz", rate_text(rate_hz));
    if (!known_task.is_none()) tell_tasks(known_task.ptr(), interpreter, recorder.meta);
    recorder.process = {::getpid(), ::getppid(), process_name};
    recorder.main_thread = Tid{::getpid()};
    recorder.sources = sources ? profile::RecorderSettings::Sources::kEmbed : profile::RecorderSettings::Sources::kOmit;
    auto sink = value_or_raise(profile::Recorder::create(std::move(recorder)));
    UnkeptFile file(path.bytes);  // until the recording has begun: one of nothing is left to nobody
    session_ = value_or_raise(capture::Session::start(settings, interpreter, std::move(sink)));
    set_current_recording(session_);
    if (const Status started =
            record_allocations(alloc_bytes, native_memory ? AllocationScope::kNative : AllocationScope::kPython);
        !started.ok()) {
      stop();
      raise(started.error());
    }
    file.keep();
  }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  ~Recording() { stop(); }

  void stop() {
    if (session_ == nullptr || is_stopped_) return;
    if (process_ != ::getpid()) return abandon();  // Python was not told of the fork: file and ticks are the parent's
    is_stopped_ = true;
    if (current_recording() == session_) {
      set_current_recording(nullptr);
      stop_recording_allocations();
      // After this no hook reaches the registry: only then may the last samples be resolved without it.
      final_ = session_->stop();
      watch_code_deaths(nullptr);
    }
  }

  // In the child of a fork.
  void abandon() {
    if (session_ == nullptr || is_stopped_) return;
    forget_current_recording();
    abandon_allocations();
    watch_code_deaths_after_fork();
    session_->abandon();
    session_ = nullptr;
    is_stopped_ = true;
  }

  capture::Session& session() {
    if (session_ == nullptr || is_stopped_) raise(Error{ErrorKind::kUsage, "this recording has ended"});
    return *session_;
  }
  [[nodiscard]] bool is_active() const { return session_ != nullptr && !is_stopped_; }
  [[nodiscard]] bool has_reader() const { return session_ != nullptr && session_->has_reader(); }
  capture::SessionStats stats() { return is_stopped_ ? final_ : session_->stats(); }

 private:
  Status record_allocations(std::uint64_t mean_bytes, AllocationScope scope) {
    if (session_->exact() != nullptr) return start_exact_allocations(*session_->exact(), scope, exact_);
    return mean_bytes == 0 ? Status(Ok{}) : start_allocation_sampling(session_->allocations(), mean_bytes, scope);
  }

  const pid_t process_ = ::getpid();
  ExactAllocations exact_ = ExactAllocations::kSums;
  std::shared_ptr<capture::Session> session_;
  capture::SessionStats final_;
  bool is_stopped_ = false;
};

namespace {

nb::dict stats_dict(const capture::SessionStats& stats) {
  nb::dict result;
  result["samples"] = stats.samples;
  result["sampled_cpu_ns"] = stats.sampled_cpu_ns;
  result["process_cpu_ns"] = stats.process_cpu_ns;
  result["waited_ns"] = stats.waited_ns;
  result["profiler_cpu_ns"] = stats.profiler_cpu_ns;
  result["duration_ns"] = stats.duration_ns;
  result["rate_hz"] = stats.rate_hz;
  result["engine"] = stats.engine;
  result["is_paused"] = stats.is_paused;
  result["tick_median_ns"] = stats.tick_median_ns;
  result["tick_p99_ns"] = stats.tick_p99_ns;
  result["error"] = stats.error;
  nb::dict drops;
  for (std::size_t i = 0; i < stats.drops.size(); ++i)
    if (stats.drops[i].count != 0 || stats.drops[i].cpu_ns != 0)
      drops[capture::text(static_cast<capture::DropReason>(i))] =
          nb::make_tuple(stats.drops[i].count, stats.drops[i].cpu_ns);
  result["drops"] = drops;
  return result;
}

}  // namespace

void bind_session(nb::module_& module) {
  nb::class_<Recording>(module, "Recording", "A running recording of this process; see plimsoll.Profiler.")
      .def(nb::init<const FilePath&, double, const std::string&, const std::string&, bool, double, std::size_t,
                    std::size_t, double, double, std::uint64_t, bool, bool, bool, bool, const nb::object&, bool,
                    std::vector<std::pair<std::string, std::string>>, const std::string&>(),
           nb::kw_only(), nb::arg("path"), nb::arg("rate_hz"), nb::arg("mode"), nb::arg("engine"), nb::arg("safe_mode"),
           nb::arg("max_overhead"), nb::arg("memory_mb"), nb::arg("max_depth"), nb::arg("duration_s"),
           nb::arg("rss_interval_s"), nb::arg("alloc_bytes"), nb::arg("alloc_exact"), nb::arg("alloc_events"),
           nb::arg("native_memory"), nb::arg("native"), nb::arg("known_task").none(), nb::arg("sources"),
           nb::arg("meta"), nb::arg("process_name"))
      .def("stop", &Recording::stop)
      .def("abandon", &Recording::abandon)
      .def_prop_ro("is_active", &Recording::is_active)
      .def_prop_ro("has_reader", &Recording::has_reader)
      .def("stats", [](Recording& self) { return stats_dict(self.stats()); })
      .def("pause",
           [](Recording& self) {
             self.session().pause();
             pause_allocations();
           })
      .def("resume",
           [](Recording& self) {
             self.session().resume();
             resume_allocations();
           })
      .def("set_rate", [](Recording& self, double rate_hz) { check(self.session().sampler().set_rate(rate_hz)); })
      .def("flush",
           [](Recording& self) {
             capture::Session& session = self.session();
             close_allocation_epoch();
             const nb::gil_scoped_release release;
             session.flush();
           })
      .def("watch_listener",
           [](Recording& self, int pipe) { self.session().watch_listener(UniqueFd(pipe), &have_it_ended); })
      .def("name_thread",
           [](Recording& self, int tid, const std::string& name, unsigned long ident) {
             self.session().sampler().name_thread(Tid{tid}, name);
             self.session().sampler().set_thread_state(Tid{tid}, thread_state_of(ident));
           })
      .def("add_source", [](Recording& self, std::string file, std::string text) {
        self.session().add_source({std::move(file), std::move(text)});
      });
  module.def("grow_descriptor_table", &os::grow_descriptor_table, nb::call_guard<nb::gil_scoped_release>());
  module.def("open_idle_counter", [] { return os::open_idle_counter().release(); });
}

}  // namespace plimsoll::python
