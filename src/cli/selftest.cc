// cli/selftest.cc: programs whose answer is known, on the user's own machine; they live in plimsoll/selftest.py.
#include <CLI/CLI.hpp>

#include "cli/commands.h"
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
    return run_module(python_, "plimsoll.selftest",
                      as_json_ ? std::vector<std::string>{"--json"} : std::vector<std::string>{});
  }

 private:
  std::string python_;
  bool as_json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_selftest() { return std::make_unique<Selftest>(); }

}  // namespace plimsoll::cli
