// cli/selftest.cc: programs whose answer is known, on the user's own machine; they live in plimsoll/selftest.py.
#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/python_program.h"

namespace plimsoll::cli {
namespace {

class Selftest final : public Command {
 public:
  [[nodiscard]] std::string_view name() const override { return "selftest"; }
  [[nodiscard]] std::string_view summary() const override {
    return "Record programs whose answer is known; print scores";
  }
  [[nodiscard]] std::string examples() const override {
    return "  plimsoll selftest                          about half a minute; exit code 1 if a limit is missed\n"
           "  plimsoll selftest --python python3.13      with another interpreter that has plimsoll";
  }
  void add_arguments(CLI::App& app) override {
    app.add_option("--python", python_, "The interpreter; by default the one plimsoll is installed beside")
        ->type_name("PYTHON");
    app.add_flag("--json", as_json_, "As JSON");
  }
  Result<int> run(Console&) override {
    const Result<std::string> interpreter = find_interpreter(python_);
    if (!interpreter.ok()) return interpreter.error();
    const Result<std::string> boot = find_boot_directory(interpreter.value());  // says if plimsoll is not installed
    if (!boot.ok()) return boot.error();
    std::vector<std::string> words{interpreter.value(), "-m", "plimsoll.selftest"};
    if (as_json_) words.emplace_back("--json");
    const Result<Ending> ending = run_and_wait(words, {});
    if (!ending.ok()) return ending.error();
    return ending.value().signal == 0 ? ending.value().exit_code : kFailed;
  }

 private:
  std::string python_;
  bool as_json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_selftest() { return std::make_unique<Selftest>(); }

}  // namespace plimsoll::cli
