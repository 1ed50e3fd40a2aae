// cli/top.cc: what a process does now, on a live screen.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/clock.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/process_id.h"
#include "cli/process_sources.h"
#include "cli/python_command.h"
#include "cli/top_loop.h"
#include "cli/units.h"
#include "cli/watched_program.h"
#include "cpython/task_layout.h"
#include "os/os.h"
#include "os/process.h"

namespace plimsoll::cli {
namespace {

constexpr std::size_t kRowsAtTheEnd = 15;

bool is_number(std::string_view word) {
  return !word.empty() && std::all_of(word.begin(), word.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// Words as typed, before they are checked.
struct TopWords {
  std::string view = "functions", sort = "self", mode = "cpu", window = "5", interval = "1", color = "auto";
};

// For somebody who looks on, 200 looks a second are as good as 1000.
remote::SessionSettings often_enough() {
  remote::SessionSettings settings;
  settings.rate_hz = 200;
  // What goes on waiting is in the picture of a moment, too.
  settings.sampler.tell_after_ns = 25'000'000;
  return settings;
}

class Top final : public Command {
 public:
  [[nodiscard]] std::string_view name() const override { return "top"; }
  [[nodiscard]] std::string_view summary() const override { return "Show live what a process or program does"; }
  [[nodiscard]] std::string examples() const override {
    return "  plimsoll top 1234                     process 1234: functions, lines, threads, flame graph; ? for the "
           "keys\n"
           "  plimsoll top app.py --port 80         starts python app.py --port 80, and ends it at the end\n"
           "  plimsoll top 1234 --view threads      who runs, who waits for what, who has the GIL\n"
           "  plimsoll top 1234 --mode wall         time that passes in waits, too\n"
           "  plimsoll top 1234 --tasks --view flame  asyncio: below the tasks that await what runs\n"
           "  plimsoll top 1234 --once              one picture as text, of the next 5 seconds; --json for programs\n"
           "  plimsoll top 1234 | tee top.txt       a picture as text every second\n"
           "Options come before a program; all that follows it is the program's. Nothing of ours runs in the process, "
           "and it is\n"
           "not stopped. Each look takes some 20 us of its CPU.";
  }
  [[nodiscard]] bool takes_program() const override { return true; }
  [[nodiscard]] bool is_own_word(std::string_view word) const override { return is_number(word); }
  void set_program(std::vector<std::string> words) override { program_ = std::move(words); }

  void add_arguments(CLI::App& app) override {
    app.add_option("PID", pid_, "The process; or else a program follows")->type_name("")->check(process_id());
    app.add_option("--view", words_.view, "functions (default), lines, flame or threads")->type_name("VIEW");
    app.add_option("--sort", words_.sort, "self (default) or total")->type_name("ORDER");
    app.add_option("--mode", words_.mode, "cpu (default), or wall: all time, with waits")->type_name("MODE");
    app.add_option("-w,--window", words_.window, "Show the last so much time, up to 60 s; 5 s by default")
        ->type_name("TIME");
    app.add_option("-i,--interval", words_.interval, "A new picture so often; 1 s by default")->type_name("TIME");
    app.add_option("-r,--rate", settings_.rate_hz, "Looks a second; 200 by default")->type_name("HZ");
    app.add_option("--filter", state_.filter, "Only what has this in its name or place")->type_name("TEXT");
    app.add_option("--limit", limit_, "Rows of a picture as text, 0 for all; 20 by default")->type_name("N");
    app.add_flag("--once", is_once_, "One picture as text, when the window is over");
    app.add_flag("--json", as_json_, "One picture as JSON (docs/json.md)");
    app.add_option("--color", words_.color, "auto (default), always or never")->type_name("WHEN");
    app.add_flag("--discard-output", discards_output_, "Do not keep the program's output in a file");
    app.add_option("--python", python_, "The interpreter; by default the one plimsoll is installed beside")
        ->type_name("PYTHON");
    app.add_option("--max-depth", settings_.sampler.max_depth, "Frames looked at of a stack; 2048 by default")
        ->type_name("N")
        ->check(CLI::Range(1, 65536));
    app.add_flag("--tasks", has_tasks_,
                 "asyncio's tasks with those that await them, in place of the event loop (not of 3.13t)");
    app.add_flag("--apart", is_apart_, "Look from other CPUs than the process's own: see plimsoll attach --help");
  }

  Result<int> run(Console& console) override {
    PLIMSOLL_TRY(check_settings());
    const TopSignals signals;
    Result<int> code = run_with(signals, console);
    watched_.reset();  // while signals wait: another Ctrl-C must not leave the program behind
    return code;
  }

 private:
  [[nodiscard]] bool is_once() const { return is_once_ || as_json_; }
  [[nodiscard]] std::size_t limit() const { return static_cast<std::size_t>(limit_); }

  Result<int> run_with(const TopSignals& signals, Console& console) {
    const Result<ColorChoice> color = parse_color(words_.color);
    if (!color.ok()) return color.error();
    color_ = color.value();
    PLIMSOLL_TRY(start_program(signals));
    Result<remote::Target> target =
        program_.empty() ? remote::find_named_target(os::Pid{pid_})
                         : remote::await_target(watched_->pid(), [&] { return was_ended_early(signals); });
    if (!target.ok() && !was_ended_early(signals)) return target.error();
    if (!target.ok()) return report_program(TopEnd::kAsked, console);
    Result<TopEnd> end = watch(target.take(), signals, console);
    // One that has called exec goes on.
    while (end.ok() && end.value() == TopEnd::kProcessEnded && watched_ != nullptr && !has_ended(signals)) {
      target = remote::await_target(watched_->pid(), [&] { return was_ended_early(signals); });
      if (!target.ok()) return wait_for_other_program(signals, console);
      end = watch(target.take(), signals, console);
    }
    if (!end.ok()) return end.error();
    return program_.empty() ? report_process(end.value(), console) : report_program(end.value(), console);
  }

  // Whether the program has ended; if its memory is gone, it will have in a moment.
  bool has_ended(const TopSignals& signals) {
    // (Which file it runs may be kept from us.)
    const std::int64_t until_ns = monotonic_ns() + 1'000'000'000;
    while (!was_ended_early(signals) && os::program_file(watched_->pid()).empty() && monotonic_ns() < until_ns)
      os::sleep_until(monotonic_ns() + 1'000'000);
    return watched_->ending().has_value();
  }

  // It is no Python any more.
  Result<int> wait_for_other_program(const TopSignals& signals, Console& console) {
    if (!was_ended_early(signals))
      console.notice("the program runs another program now, which is no Python: waiting for its end");
    while (!was_ended_early(signals)) os::sleep_until(monotonic_ns() + 20'000'000);
    return report_program(watched_->ending() ? TopEnd::kProcessEnded : TopEnd::kAsked, console);
  }

  // Shows a process until it ends, or calls exec, or somebody has seen enough.
  Result<TopEnd> watch(remote::Target target, const TopSignals& signals, Console& console) {
    PLIMSOLL_TRY(remote::check(target, settings_));
    if (has_tasks_) PLIMSOLL_TRY(cpython::knows_awaiters(target.layout.version));
    const os::Pid pid = target.pid;
    TopFeed feed(std::move(target), settings_);
    ProcessSources sources(pid);
    const TopSources source = [&](std::string_view file) -> const SourceText& { return sources.of(file); };
    const TopShow show{feed, signals, source, interval_ns_};
    const Environment environment = console.environment();
    const Paint paint(wants_color(color_, environment));
    const Page page{output_width(environment), paint, environment.directory};
    Result<TopEnd> end = run_show(show, page, console);
    if (!end.ok()) return end.error();
    const Result<remote::SessionResult> result = feed.stop();
    if (!result.ok()) return result.error();
    if (end.value() == TopEnd::kProcessEnded && !is_once() && ends_with_picture_)
      PLIMSOLL_TRY(print_picture(show, page, kRowsAtTheEnd, console));
    return end;
  }

  Status check_settings() {
    if (pid_ == 0 && program_.empty())
      return Error{ErrorKind::kUsage,
                   "which process or program? For example: plimsoll top 1234, or plimsoll top app.py"};
    if (!(settings_.rate_hz >= 1 && settings_.rate_hz <= 10000))
      return Error{ErrorKind::kUsage,
                   fmt::format("a rate of {} Hz is not possible: choose 1 to 10000", settings_.rate_hz)};
    if (limit_ < 0) return Error{ErrorKind::kUsage, fmt::format("--limit: {} is less than 0", limit_)};
    const Result<TopSubject> subject = parse_top_subject(words_.view);
    if (!subject.ok()) return subject.error();
    const Result<SortBy> sort = parse_top_sort(words_.sort);
    if (!sort.ok()) return sort.error();
    const Result<TopTime> time = parse_top_time(words_.mode);
    if (!time.ok()) return time.error();
    const Result<std::int64_t> window = parse_time(words_.window, "--window");
    if (!window.ok()) return window.error();
    const Result<std::int64_t> interval = parse_time(words_.interval, "--interval");
    if (!interval.ok()) return interval.error();
    constexpr std::int64_t kShortest = 100'000'000;
    if (window.value() < kShortest || window.value() > kTopWindows.back())
      return Error{ErrorKind::kUsage, "--window: choose 100 ms to 60 s"};
    if (interval.value() < kShortest) return Error{ErrorKind::kUsage, "--interval: choose 100 ms or more"};
    state_.subject = subject.value();
    state_.sort = sort.value();
    state_.time = time.value();
    state_.window_ns = window.value();
    interval_ns_ = interval.value();
    // All time is looked at, as what threads wait for is on the screen, too.
    settings_.sampler.mode = capture::Mode::kWall;
    settings_.sampler.gil_looks = remote::GilLooks::kYes;
    if (has_tasks_ && is_apart_)
      return Error{ErrorKind::kUsage, "--tasks takes looks from the process's own CPUs: leave --apart out"};
    if (has_tasks_) settings_.sampler.awaiting_tasks = remote::AwaitingTasks::kYes;
    settings_.stand = is_apart_ ? remote::Stand::kApart : remote::Stand::kBeside;
    return Ok{};
  }

  Status start_program(const TopSignals& signals) {
    if (program_.empty()) return Ok{};
    const Result<PythonCommand> command = find_python_command(python_, program_);
    if (!command.ok()) return command.error();
    Result<std::unique_ptr<WatchedProgram>> started =
        WatchedProgram::start(command.value().argv(), discards_output_ ? ProgramOutput::kNowhere : ProgramOutput::kFile,
                              signals.mask_before());
    if (!started.ok()) return started.error();
    watched_ = started.take();
    return Ok{};
  }

  // The program has ended by itself, or somebody wants it to, before there was anything to see.
  bool was_ended_early(const TopSignals& signals) {
    if (watched_ == nullptr) return false;
    if (!is_over_ && TopSignals::is_end(signals.next())) is_over_ = true;
    return is_over_ || watched_->ending();
  }

  Result<TopEnd> run_show(const TopShow& show, const Page& page, Console& console) {
    if (is_once()) return run_once(show, page, console);
    const Environment environment = console.environment();
    if (!environment.is_tty || environment.term == "dumb") return run_plain(show, console, state_, page, limit());
    ends_with_picture_ = true;
    const Result<std::unique_ptr<Screen>> screen = Screen::open(page.paint);
    if (!screen.ok()) return screen.error();
    return run_screen(show, *screen.value(), state_);
  }

  Result<TopEnd> run_once(const TopShow& show, const Page& page, Console& console) {
    const TopEnd end = wait_quietly(show, monotonic_ns() + state_.window_ns).value_or(TopEnd::kAsked);
    PLIMSOLL_TRY(print_picture(show, page, limit(), console));
    return end;
  }

  Status print_picture(const TopShow& show, const Page& page, std::size_t limit, Console& console) {
    TopPicture picture = show.feed.picture(state_.window_ns);
    has_samples_ = !picture.all_samples.time_ns.empty();
    select_samples(picture, state_);
    if (!has_samples_) return Ok{};
    return console.print(as_json_ ? top_json(picture, state_) : top_text(picture, state_, show.sources, page, limit));
  }

  int report_process(TopEnd end, Console& console) const {
    if (end == TopEnd::kProcessEnded)
      console.notice(fmt::format("process {} has ended, or runs another program now", pid_));
    if (!is_once() || has_samples_) return kFine;
    console.notice("there were no samples: the process has no Python thread that could be looked at");
    return kNoSamples;
  }

  // Ends the program if need be; the exit code that it had, if it has ended by itself.
  int report_program(TopEnd end, Console& console) {
    const bool was_asked = end == TopEnd::kAsked && !watched_->ending();
    const bool is_gone = watched_->terminate();
    if (!is_gone)
      console.notice(fmt::format("the program does not end on SIGTERM: process {} goes on",
                                 static_cast<std::int32_t>(watched_->pid())));
    const std::string output = watched_->output_file();
    const Ending ending = watched_->ending().value_or(Ending{});
    const int code = ending.signal != 0 ? 128 + ending.signal : ending.exit_code;
    if (!was_asked && ending.signal != 0)
      console.notice(fmt::format("the program was ended by signal {}", ending.signal));
    else if (!was_asked)
      console.notice(fmt::format("the program has ended with exit code {}", code));
    if (!output.empty()) console.notice(fmt::format("its output is in {}", output));
    constexpr std::size_t kLines = 10;
    if (!was_asked && code != 0 && !output.empty())
      console.notice(fmt::format("its last lines are{}", watched_->last_output(kLines)));
    return was_asked ? kFine : code;
  }

  std::int32_t pid_ = 0;
  std::vector<std::string> program_;
  std::unique_ptr<WatchedProgram> watched_;
  remote::SessionSettings settings_ = often_enough();
  TopWords words_;
  TopState state_;
  ColorChoice color_{};
  std::int64_t interval_ns_ = 0;
  std::int64_t limit_ = 20;  // signed, because CLI11 takes "-1" for a large unsigned number
  std::string python_;
  bool is_once_ = false, as_json_ = false, is_apart_ = false, has_tasks_ = false, discards_output_ = false;
  bool is_over_ = false, has_samples_ = false, ends_with_picture_ = false;
};

}  // namespace

std::unique_ptr<Command> make_top() { return std::make_unique<Top>(); }

}  // namespace plimsoll::cli
