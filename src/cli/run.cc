// cli/run.cc: start the program with a recording in it, wait, say what came of it, and end as the program ended.
#include "cli/commands.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "cli/firefox_page.h"
#include "cli/native_frames.h"
#include "cli/outside_recording.h"
#include "cli/pypy_files.h"
#include "cli/python_command.h"
#include "cli/python_program.h"
#include "cli/run_output.h"
#include "cli/run_report.h"
#include "cli/run_settings.h"
#include "os/os.h"
#include "os/process.h"

namespace plimsoll::cli {
namespace {

namespace fs = std::filesystem;

// A line of PLIMSOLL_RUN: name=value, with backslashes doubled and line ends written as \n. Not JSON, as its decoder is
// one of the modules that a program may not have imported yet.
std::string setting_line(const std::string& name, const std::string& value) {
  std::string line = name + "=";
  for (const char letter : value) {
    if (letter == '\\') line += '\\';
    if (letter == '\n')
      line += "\\n";
    else
      line += letter;
  }
  return line + "\n";
}

// A flag that somebody may have said nothing about. (CLI11 would count in an optional, and so set it to 0 at once.)
void add_switch(CLI::App& app, const char* name, std::optional<bool>& setting, const char* description) {
  app.add_flag_function(
      name, [&setting](std::int64_t count) { setting = count > 0; }, description);
}

class Run final : public Command {
 public:
  [[nodiscard]] std::string_view name() const override { return "run"; }
  [[nodiscard]] std::string_view summary() const override { return "Run a Python program and record it"; }
  [[nodiscard]] std::string examples() const override {
    return "  plimsoll run app.py --port 80             as python app.py --port 80\n"
           "  plimsoll run -m pytest tests              as python -m pytest tests\n"
           "  plimsoll run pytest tests                 a command that is a Python program\n"
           "  plimsoll run -r 100 -o app.plim app.py    100 samples a second, into app.plim\n"
           "  plimsoll run --children -m gunicorn app   child processes, too, each into a file of its own\n"
           "  plimsoll run --alloc app.py               memory, too: plimsoll show app.plim live\n"
           "  plimsoll run --native-memory app.py       and what C libraries take from malloc: SQLite, NumPy before "
           "2.5\n"
           "  plimsoll run --native-memory --native app.py   with the C functions that took it\n"
           "  plimsoll run --native app.py              C functions and libraries, too: plimsoll show app.plim "
           "--native\n"
           "  plimsoll run --mode wall app.py           where it waits, not only where it computes\n"
           "  plimsoll run --firefox app.py             then look at it in the Firefox Profiler\n"
           "  plimsoll run -f firefox -o app.json app.py\n"
           "\n"
           "Options come before the program; all that follows it is the program's. Its exit code is passed on.\n"
           "Settings are also read from plimsoll.ini, [plimsoll], or pyproject.toml, [tool.plimsoll].";
  }
  [[nodiscard]] bool takes_program() const override { return true; }
  void set_program(std::vector<std::string> words) override { program_ = std::move(words); }

  void add_arguments(CLI::App& app) override {
    app.add_option("-o,--output", settings_.output,
                   "The profile's file, in the format that its name ends for; by default NAME-DATE-TIME.plim")
        ->type_name("FILE");
    app.add_option("-r,--rate", settings_.rate, "Samples per second of each thread's time; 1000 by default")
        ->type_name("HZ");
    app.add_option("-d,--duration", settings_.duration, "Stop recording, not the program, after so many seconds")
        ->type_name("SECONDS");
    app.add_option("--mode", settings_.mode,
                   "cpu (default): CPU time; wall: all time, waits, too; gil: CPU time of threads that hold the GIL")
        ->type_name("MODE");
    app.add_option("--engine", settings_.engine,
                   "auto, perf, cpu-timer or timer: what makes the ticks; reader: a thread looks")
        ->type_name("ENGINE");
    add_switch(app, "--mem", settings_.mem, "Read the memory in use (RSS) 100 times a second, not 10 times");
    app.add_flag(
           "--alloc{512K}", settings_.alloc,
           "Sample allocations, too: one in BYTES on average (--alloc=64K; by default 512K), with stacks and frees; "
           "--alloc=exact records all of them, as sums; --alloc=events one by one, in a file that grows with them")
        ->type_name("[=BYTES]");
    add_switch(app, "--native-memory", settings_.native_memory,
               "Allocations that C libraries make by malloc, too, such as SQLite's, or arrays of NumPy before 2.5; "
               "implies --alloc");
    add_switch(app, "--native", settings_.native,
               "Record machine code, too: C functions and libraries (CPython 3.9 and newer on x86-64; PyPy)");
    app.add_flag("--jitlog", jitlog_, "PyPy: record what its JIT does, too; see plimsoll jitlog --help");
    app.add_flag("-q,--quiet", is_quiet_, "Say nothing about the recording unless it failed");
    add_switch(app, "--children", settings_.children, "Record child processes, too");
    app.add_option("-f,--format", settings_.format, "Write this format instead of .plim; see plimsoll convert --help")
        ->type_name("FORMAT");
    app.add_flag("--external", is_external_,
                 "Record from outside, as plimsoll attach does: none of our code runs in the program");
    app.add_flag("--firefox", is_shown_in_firefox_,
                 "Open the profile in the Firefox Profiler when the program has ended, until Ctrl-C");
    app.add_option("--config", config_, "Read settings from this file only")->type_name("FILE");
    app.add_option("--python", python_, "The interpreter; by default the one plimsoll is installed beside")
        ->type_name("PYTHON");
    add_switch(app, "--safe-mode", settings_.safe_mode, "Keep only stacks whose code objects were all known before");
    add_switch(app, "--tasks", settings_.tasks,
               "Asyncio's tasks: what runs below those that await it (on 3.13t by show --tasks)");
    app.add_flag("--no-sources", no_sources_, "Do not keep the profiled files' text in the profile");
    app.add_option("--max-overhead", settings_.max_overhead,
                   "Lower the rate while recording costs more than so many percent of CPU time")
        ->type_name("PERCENT");
    app.add_option("--memory-limit", settings_.memory_limit, "Memory for the profiler's buffers; 16 by default")
        ->type_name("MIB");
    app.add_option("--max-depth", settings_.max_depth, "Frames kept of a stack, innermost first; 2048 by default")
        ->type_name("N");
  }

  Result<int> run(Console& console) override {
    if (program_.empty())
      return Error{ErrorKind::kUsage, "which program? For example: plimsoll run app.py (plimsoll run --help has more)"};
    std::error_code removed;  // then no settings are found
    const std::string here = fs::current_path(removed).string();
    const Result<RunSettings> file = config_.empty() ? find_settings(here) : read_settings(config_);
    if (!file.ok()) return file.error();
    if (no_sources_) settings_.sources = false;
    fill_in(settings_, file.value());
    if (settings_.native_memory.value_or(false) && !settings_.alloc) settings_.alloc = "512K";
    PLIMSOLL_TRY(check_settings());
    const Result<PythonCommand> command = find_python_command(python_, program_);
    if (!command.ok() && settings_.alloc && allocation_setting(program_[0]).ok())
      return Error{ErrorKind::kUsage,
                   fmt::format("--alloc has its value behind an equals sign: --alloc={}", program_[0])};
    if (!command.ok()) return command.error();
    const Result<Ending> ending = record(command.value(), console);
    return ending.ok() ? Result<int>(pass_on(ending.value())) : ending.error();
  }

 private:
  Result<Ending> record(const PythonCommand& command, Console& console) const {
    if (!is_external_) PLIMSOLL_TRY(check_imports_us(command));
    const Result<RunOutput> chosen = RunOutput::choose(settings_, command.program);
    if (!chosen.ok()) return chosen.error();
    const RunOutput& output = chosen.value();
    if (is_shown_in_firefox_ && !output.is_plim())
      return Error{ErrorKind::kUsage, "--firefox shows the .plim file, and none is to be written: choose one of them"};
    return is_external_ ? record_from_outside(command.argv(), output, console)
                        : record_inside(command.argv(), output, console);
  }

  Result<Ending> record_inside(const std::vector<std::string>& argv, const RunOutput& output, Console& console) const {
    const Result<std::string> boot = find_boot_directory(argv[0]);
    if (!boot.ok()) return boot.error();
    PyPyRun pypy;
    if (!settings_.sources.value_or(true)) pypy.sources = PyPyRun::Sources::kOmit;
    const std::chrono::nanoseconds began = std::chrono::system_clock::now().time_since_epoch();
    UniqueFd counter;
    const Result<std::string> path = output.absolute_plim();
    if (!path.ok()) return path.error();
    const auto meanwhile = [&](std::int32_t pid) {
      // The kernel makes itself ready for the program's perf events while Python is still starting.
      counter = os::open_idle_counter();
      if (!is_pypy(argv[0]) || settings_.mode.value_or("cpu") != "cpu") return;
      const Watched watched = follows_children() ? Watched::kDescendants : Watched::kProgram;
      pypy.clocks = watch_cpu_clocks(os::Pid{pid}, watched);
    };
    const std::string& plim = output.plim();
    Result<Ending> ending = run_and_wait(argv, variables(boot.value(), argv[0], path.value()), meanwhile);
    if (!ending.ok()) return ending;
    if (ending.value().signal == SIGTRAP)
      console.notice(
          "the program was killed by SIGTRAP: if C code in it calls exec, which Python would tell us of, it may have "
          "been a tick of ours that came then; with --engine timer there is none");
    adopt_pypy_files(plim, pypy, console);
    if (!output.was_recorded())
      console.notice(output.nothing_recorded());
    else if (!output.is_plim())
      output.convert(children(), began.count(), words(), console);
    else if (!is_quiet_)
      report_recording(plim, plim, children(), console);
    if (!is_quiet_ && output.is_plim()) report_children(plim, began.count(), console);
    if (is_shown_in_firefox_ && output.was_recorded()) show(plim, console);
    return ending;
  }

  [[nodiscard]] bool follows_children() const { return settings_.children.value_or(false); }
  [[nodiscard]] RunOutput::Words words() const { return is_quiet_ ? RunOutput::Words::kQuiet : RunOutput::Words::kAll; }
  [[nodiscard]] Children children() const { return follows_children() ? Children::kRecorded : Children::kLeftAlone; }

  // Python imports what starts a recording by PYTHONPATH and its module site.
  static Status check_imports_us(const PythonCommand& command) {
    const std::string option = command.isolating_option();
    if (option.empty()) return Ok{};
    return Error{
        ErrorKind::kUsage,
        fmt::format("with {} Python imports nothing by PYTHONPATH when it starts, as it must to record: leave it "
                    "out, or record from outside (plimsoll run --external)",
                    option)};
  }

  // What is done in the program cannot be done from outside.
  [[nodiscard]] Status check_external() const {
    const std::pair<const char*, bool> inside[] = {{"--engine", settings_.engine.value_or("auto") != "auto"},
                                                   {"--mem", settings_.mem.value_or(false)},
                                                   {"--alloc", settings_.alloc.has_value()},
                                                   {"--native-memory", settings_.native_memory.value_or(false)},
                                                   {"--jitlog", jitlog_},
                                                   {"--safe-mode", settings_.safe_mode.value_or(false)},
                                                   {"--tasks", settings_.tasks.value_or(false)},
                                                   {"--max-overhead", settings_.max_overhead.has_value()}};
    for (const auto& [name, is_asked] : inside)
      if (is_asked)
        return Error{ErrorKind::kUsage, fmt::format("{} works in the program: it does not go with --external", name)};
    return Ok{};
  }

  Result<Ending> record_from_outside(const std::vector<std::string>& argv, const RunOutput& output,
                                     Console& console) const {
    PLIMSOLL_TRY(check_external());
    const std::chrono::nanoseconds began = std::chrono::system_clock::now().time_since_epoch();
    OutsideRecording recording;
    recording.output = output.plim();
    const bool has_native = settings_.native.value_or(false);
    recording.session.rate_hz = settings_.rate.value_or(has_native ? kOutsideNativeRate : kOutsideRate);
    recording.session.sampler.native = has_native ? remote::NativeFrames::kYes : remote::NativeFrames::kNo;
    recording.session.sampler.mode = mode_named(settings_.mode.value_or("cpu")).value();
    recording.session.sampler.max_depth = static_cast<std::size_t>(settings_.max_depth.value_or(2048));
    recording.session.duration_ns = static_cast<std::int64_t>(settings_.duration.value_or(0) * 1e9);
    recording.session.follows_children = follows_children();
    recording.keeps_sources = settings_.sources.value_or(true);
    Result<remote::SessionResult> result = Error{ErrorKind::kSystem, "the program was not recorded"};
    Result<Ending> ending = run_and_wait(argv, {}, [&](std::int32_t pid) {
      result = record_program(os::Pid{pid}, recording);
      const bool has_ended = result.ok() && result.value().ending == remote::Ending::kProcessEnded;
      if (has_ended && !os::command_line(os::Pid{pid}).empty())
        console.notice("the program runs another program now: the recording ends there");
    });
    if (!ending.ok()) return ending;
    if (!result.ok())
      console.notice(result.error().message);
    else if (!output.is_plim())
      output.convert(children(), began.count(), words(), console);
    else if (!is_quiet_)
      report_outside(result.value(), recording, console);
    if (is_shown_in_firefox_ && result.ok()) show(output.plim(), console);
    return ending;
  }

  // What can be said before the program has started is said before.
  [[nodiscard]] Status check_settings() const {
    PLIMSOLL_TRY(check_rate(settings_.rate.value_or(1000)));
    PLIMSOLL_TRY(check_max_overhead(settings_.max_overhead.value_or(1)));
    constexpr double kLongest = 1e9;  // some thirty years
    const double duration = settings_.duration.value_or(1);
    if (!(duration > 0 && duration <= kLongest))  // (what is no number is neither)
      return Error{ErrorKind::kUsage,
                   fmt::format("-d {}: the duration must be more than 0 seconds, and at most {}", duration, kLongest)};
    const Result<capture::Mode> mode = mode_named(settings_.mode.value_or("cpu"));
    if (!mode.ok()) return mode.error();
    const std::string engine = settings_.engine.value_or("auto");
    constexpr std::array kEngines{"auto", "perf", "cpu-timer", "timer", "reader"};
    if (std::find(kEngines.begin(), kEngines.end(), engine) == kEngines.end())
      return Error{ErrorKind::kUsage,
                   fmt::format("no engine '{}': choose auto, perf, cpu-timer, timer or reader", engine)};
    if (engine == "reader" && settings_.native.value_or(false))
      return Error{ErrorKind::kUsage,
                   "--native: native frames are recorded by each thread's own ticks, not by the engine reader"};
    if (settings_.alloc) {
      const auto allocations = allocation_setting(*settings_.alloc);
      if (!allocations.ok()) return allocations.error();
    }
    PLIMSOLL_TRY(check_range("--max-depth", settings_.max_depth.value_or(2048)));
    return check_range("--memory-limit", settings_.memory_limit.value_or(16));
  }

  [[nodiscard]] std::vector<std::pair<std::string, std::string>> variables(const std::string& boot,
                                                                           const std::string& interpreter,
                                                                           const std::string& path) const {
    const char* before = std::getenv("PYTHONPATH");
    constexpr double kOften = 0.01;
    constexpr double kSeldom = 0.1;
    std::string run;
    const auto say = [&run](const char* name, const auto& value) {
      run += setting_line(name, fmt::format("{}", value));
    };
    say("path", path);
    if (settings_.children.value_or(false)) say("children", "1");
    if (before != nullptr) say("pythonpath", before);
    say("rate_hz", settings_.rate.value_or(1000));
    say("mode", settings_.mode.value_or("cpu"));
    say("engine", settings_.engine.value_or("auto"));
    if (settings_.safe_mode.value_or(false)) say("safe_mode", "1");
    say("max_overhead", settings_.max_overhead.value_or(0) / 100);
    say("memory_mb", settings_.memory_limit.value_or(16));
    say("max_depth", settings_.max_depth.value_or(2048));
    say("duration_s", settings_.duration.value_or(0));
    say("rss_interval_s", settings_.mem.value_or(false) ? kOften : kSeldom);
    if (settings_.alloc) {
      const auto [name, value] = allocation_setting(*settings_.alloc).value();
      say(name.c_str(), value);
    }
    if (settings_.native_memory.value_or(false)) say("native_memory", "1");
    if (settings_.native.value_or(false)) say("native", "1");
    if (!settings_.sources.value_or(true)) say("sources", "");
    if (settings_.tasks.value_or(false)) say("tasks", "1");
    if (jitlog_) say("jitlog", "1");
    const bool has_pypylog = writes_pypylog(interpreter, path);
    if (has_pypylog) say("pypylog", "1");
    const std::string rest = before != nullptr && *before != '\0' ? std::string(":") + before : std::string{};
    std::vector<std::pair<std::string, std::string>> all = {{"PLIMSOLL_RUN", run}, {"PYTHONPATH", boot + rest}};
    // "+": what begins and ends, without the texts between. PyPy takes the variable out of its environment.
    if (has_pypylog) all.emplace_back("PYPYLOG", "+" + pypy_log_path(path));
    return all;
  }
  // In a virtual environment it is called python, too, and is a link.
  static bool is_pypy(const std::string& interpreter) {
    std::error_code none;
    const fs::path file = fs::canonical(interpreter, none);
    return file.filename().string().starts_with("pypy") ||
           fs::path(interpreter).filename().string().starts_with("pypy");
  }
  // PyPy's own log of its collector and its JIT, unless the user wants that elsewhere. "%d" is its process id to PyPy.
  static bool writes_pypylog(const std::string& interpreter, const std::string& path) {
    return is_pypy(interpreter) && std::getenv("PYPYLOG") == nullptr && path.find("%d") == std::string::npos;
  }

  // What goes wrong here does not change how the program ended.
  static void show(const std::string& plim, Console& console) {
    Result<profile::Profile> profile = read_with_lines(plim, console);
    if (!profile.ok()) return;  // which the report has said
    if (profile.value().samples.size() == 0) return console.notice("no samples were taken; there is nothing to open");
    if (const Status shown = show_in_firefox(profile.take(), plim, {}, console); !shown.ok())
      console.notice(shown.error().message);
  }

  RunSettings settings_;
  bool no_sources_ = false, is_quiet_ = false, jitlog_ = false;
  bool is_external_ = false, is_shown_in_firefox_ = false;
  std::string config_, python_;
  std::vector<std::string> program_;
};

}  // namespace

std::unique_ptr<Command> make_run() { return std::make_unique<Run>(); }

}  // namespace plimsoll::cli
