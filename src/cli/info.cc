// cli/info.cc: the facts of a session, as text or JSON.
#include "cli/commands.h"

#include <CLI/CLI.hpp>

#include "cli/exit_code.h"
#include "cli/json_output.h"
#include "cli/profile_input.h"

namespace plimsoll::cli {
namespace {

class Info final : public Command {
 public:
  [[nodiscard]] std::string_view name() const override { return "info"; }
  [[nodiscard]] std::string_view summary() const override { return "Tell what a profile holds, and what it lost"; }
  [[nodiscard]] std::string examples() const override {
    return "  plimsoll info app.plim                             rates, coverage, losses, sizes\n"
           "  plimsoll info app.plim --json | jq .covered_percent";
  }

  void add_arguments(CLI::App& app) override {
    input_.add_arguments(app);
    app.add_flag("--json", as_json_, "As JSON (docs/json.md)");
    app.add_option("--color", color_, "auto (default), always or never")->type_name("WHEN");
  }

  Result<int> run(Console& console) override {
    const Result<ColorChoice> color = parse_color(color_);
    if (!color.ok()) return color.error();
    const Result<Input> input = input_.read(console);
    if (!input.ok()) return input.error();
    const profile::Profile& profile = input.value().profile;
    const SessionFacts facts = session_facts(profile, input.value().file_bytes);
    const Environment environment = console.environment();
    const Page page{output_width(environment), Paint(wants_color(color.value(), environment)), environment.directory};
    PLIMSOLL_TRY(console.print(as_json_ ? info_json(profile, facts, input_.path())
                                        : render_info(profile, facts, input_.path(), page)));
    return kFine;
  }

 private:
  ProfileInput input_;
  std::string color_ = "auto";
  bool as_json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_info() { return std::make_unique<Info>(); }

}  // namespace plimsoll::cli
