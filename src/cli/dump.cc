// cli/dump.cc: all stacks of a process, now.
#include "cli/commands.h"

#include <CLI/CLI.hpp>

#include "cli/exit_code.h"
#include "cli/process_sources.h"
#include "cli/render_dump.h"
#include "cli/render_tasks.h"

namespace plimsoll::cli {
namespace {

class DumpCommand final : public Command {
 public:
  [[nodiscard]] std::string_view name() const override { return "dump"; }
  [[nodiscard]] std::string_view summary() const override { return "Show the stacks of a running process, now"; }
  [[nodiscard]] std::string examples() const override {
    return "  plimsoll dump 1234                  all threads of process 1234, which is not stopped for it\n"
           "  plimsoll dump 1234 --tasks          asyncio's tasks: who awaits whom, and where\n"
           "  plimsoll dump 1234 --native         functions of C, C++, ... as well; threads are stopped, one at a\n"
           "                                      time, for some microseconds while their stacks are copied\n"
           "  plimsoll dump 1234 --json           the same for a program\n"
           "  sudo plimsoll dump 1234             if the process is not yours to look into";
  }

  void add_arguments(CLI::App& app) override {
    app.add_option("PID", pid_, "The process")->required()->type_name("")->check(CLI::PositiveNumber);
    CLI::Option* tasks =
        app.add_flag("--tasks", shows_tasks_, "asyncio's tasks instead of threads (CPython 3.14 and newer)");
    app.add_flag("--native", has_native_,
                 "Native functions, too, between those of Python; threads without Python have their stacks, as well")
        ->excludes(tasks);
    app.add_flag("--json", as_json_, "As JSON (docs/json.md)");
    app.add_option("--color", color_, "auto (default), always or never")->type_name("WHEN");
  }

  Result<int> run(Console& console) override {
    const Result<ColorChoice> color = parse_color(color_);
    if (!color.ok()) return color.error();
    const Result<remote::Target> target = remote::find_target(os::Pid{pid_});
    if (!target.ok()) return target.error();
    ProcessSources sources(os::Pid{pid_});
    const SourceLookup source = [&](std::string_view file) -> const SourceText& { return sources.of(file); };
    const Environment environment = console.environment();
    const auto page = [&](const std::string& directory) {
      return Page{output_width(environment), Paint(wants_color(color.value(), environment)), directory};
    };
    const Result<std::string> text =
        shows_tasks_ ? tasks(target.value(), source, page) : threads(target.value(), source, page);
    if (!text.ok()) return text.error();
    PLIMSOLL_TRY(console.print(text.value()));
    return kFine;
  }

 private:
  using PageFor = std::function<Page(const std::string& directory)>;

  [[nodiscard]] Result<std::string> threads(const remote::Target& target, const SourceLookup& source,
                                            const PageFor& page) const {
    const Result<remote::Dump> dump =
        remote::take_dump(target, {has_native_ ? remote::NativeFrames::kYes : remote::NativeFrames::kNo, std::nullopt});
    if (!dump.ok()) return dump.error();
    return as_json_ ? dump_json(dump.value(), source) : render_dump(dump.value(), source, page(dump.value().directory));
  }
  [[nodiscard]] Result<std::string> tasks(const remote::Target& target, const SourceLookup& source,
                                          const PageFor& page) const {
    const Result<remote::TaskDump> dump = remote::take_task_dump(target);
    if (!dump.ok()) return dump.error();
    return as_json_ ? tasks_json(dump.value(), source)
                    : render_tasks(dump.value(), source, page(dump.value().directory));
  }

  std::int32_t pid_ = 0;
  std::string color_ = "auto";
  bool shows_tasks_ = false, has_native_ = false;
  bool as_json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_dump() { return std::make_unique<DumpCommand>(); }

}  // namespace plimsoll::cli
