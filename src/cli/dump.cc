// cli/dump.cc: all stacks of a process, now, or as its core file has them.
#include "cli/commands.h"

#include <CLI/CLI.hpp>

#include "cli/exit_code.h"
#include "cli/process_id.h"
#include "cli/process_sources.h"
#include "cli/render_dump.h"
#include "cli/render_tasks.h"
#include "remote/core_dump.h"
#include "remote/core_tasks.h"

namespace plimsoll::cli {
namespace {

class DumpCommand final : public Command {
 public:
  [[nodiscard]] std::string_view name() const override { return "dump"; }
  [[nodiscard]] std::string_view summary() const override { return "Show the stacks of a running process, now"; }
  [[nodiscard]] std::string examples() const override {
    return "  plimsoll dump 1234                  all threads of process 1234, which is not stopped for it,\n"
           "                                      and its greenlets (greenlet, gevent): where each is suspended\n"
           "  plimsoll dump 1234 --locals         with the local variables of every frame\n"
           "  plimsoll dump 1234 --tasks          asyncio's tasks: who awaits whom, and where\n"
           "  plimsoll dump 1234 --native         functions of C, C++, ... as well; threads are stopped, one at a\n"
           "                                      time, for some microseconds while their stacks are copied\n"
           "  plimsoll dump --core core.1234      the same of a core file: of a process that has ended; also --native\n"
           "  plimsoll dump --core core.1234 --tasks\n"
           "  plimsoll dump 1234 --json           the same for a program\n"
           "  sudo plimsoll dump 1234             if the process is not yours to look into";
  }

  void add_arguments(CLI::App& app) override {
    app.add_option("PID", pid_, "The process")->type_name("")->check(process_id());
    CLI::Option* core = app.add_option("--core", core_, "Or a core file, of a process of this kind of machine (x86-64)")
                            ->type_name("FILE");
    app.add_option("--exe", program_, "With --core: the program's file, if it is not where it was")
        ->type_name("PYTHON")
        ->needs(core);
    CLI::Option* tasks = app.add_flag("--tasks", shows_tasks_, "asyncio's tasks instead of threads");
    app.add_flag("--native", has_native_,
                 "Native functions, too, between those of Python; threads without Python have their stacks, as well")
        ->excludes(tasks);
    CLI::Option* locals =
        app.add_flag("--locals", has_locals_, "Local variables, read without running any code")->excludes(tasks);
    app.add_option("--chars", limits_.characters, "--locals: so much of a value (200)")
        ->type_name("N")
        ->check(CLI::Range(1U, kMostCharacters))
        ->needs(locals);
    app.add_option("--items", limits_.items, "--locals: so many items of a container (10)")
        ->type_name("N")
        ->check(CLI::Range(0U, kMostItems))
        ->needs(locals);
    app.add_option("--depth", limits_.depth, "--locals: so many containers in each other (3)")
        ->type_name("N")
        ->check(CLI::Range(0U, kDeepest))
        ->needs(locals);
    app.add_flag("--json", as_json_, "As JSON (docs/json.md)");
    app.add_option("--color", color_, "auto (default), always or never")->type_name("WHEN");
  }

  Result<int> run(Console& console) override {
    if (pid_ == 0 && core_.empty())
      return Error{ErrorKind::kUsage, "which process? plimsoll dump PID, or plimsoll dump --core FILE"};
    if (pid_ != 0 && !core_.empty())
      return Error{ErrorKind::kUsage, "a process, or a core file? Leave one of them out"};
    const Result<ColorChoice> color = parse_color(color_);
    if (!color.ok()) return color.error();
    const Environment environment = console.environment();
    const auto page = [&](const std::string& directory) {
      return Page{output_width(environment), Paint(wants_color(color.value(), environment)), directory};
    };
    const Result<std::string> text = core_.empty() ? of_process(page) : of_core(page);
    if (!text.ok()) return text.error();
    PLIMSOLL_TRY(console.print(text.value()));
    return kFine;
  }

 private:
  // Nobody reads more than this of a value, and nesting costs room on our own stack.
  static constexpr unsigned kMostCharacters = 1'000'000, kMostItems = 100'000, kDeepest = 100;
  using PageFor = std::function<Page(const std::string& directory)>;

  [[nodiscard]] Result<std::string> of_process(const PageFor& page) const {
    const Result<remote::Target> target = remote::find_named_target(os::Pid{pid_});
    if (!target.ok()) return target.error();
    ProcessSources sources(os::Pid{pid_});
    const SourceLookup source = [&](std::string_view file) -> const SourceText& { return sources.of(file); };
    if (!shows_tasks_) return shown(remote::take_dump(target.value(), options()), source, page);
    return shown(remote::take_task_dump(target.value()), source, page);
  }
  [[nodiscard]] Result<std::string> of_core(const PageFor& page) const {
    const Result<remote::CoreFile> core = remote::open_core_file(core_, program_);
    if (!core.ok()) return core.error();
    ProcessSources sources(core.value().open);
    const SourceLookup source = [&](std::string_view file) -> const SourceText& { return sources.of(file); };
    if (shows_tasks_) return shown(remote::take_core_task_dump(core.value()), source, page);
    return shown(remote::take_core_dump(core.value(), options()), source, page);
  }

  [[nodiscard]] remote::DumpOptions options() const {
    return {has_native_ ? remote::NativeFrames::kYes : remote::NativeFrames::kNo,
            has_locals_ ? std::optional(limits_) : std::nullopt};
  }
  [[nodiscard]] Result<std::string> shown(const Result<remote::Dump>& dump, const SourceLookup& source,
                                          const PageFor& page) const {
    if (!dump.ok()) return dump.error();
    return as_json_ ? dump_json(dump.value(), source) : render_dump(dump.value(), source, page(dump.value().directory));
  }
  [[nodiscard]] Result<std::string> shown(const Result<remote::TaskDump>& dump, const SourceLookup& source,
                                          const PageFor& page) const {
    if (!dump.ok()) return dump.error();
    return as_json_ ? tasks_json(dump.value(), source)
                    : render_tasks(dump.value(), source, page(dump.value().directory));
  }

  std::int32_t pid_ = 0;
  std::string core_, program_;
  cpython::ValueLimits limits_;
  std::string color_ = "auto";
  bool shows_tasks_ = false, has_native_ = false, has_locals_ = false;
  bool as_json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_dump() { return std::make_unique<DumpCommand>(); }

}  // namespace plimsoll::cli
