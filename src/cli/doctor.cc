// cli/doctor.cc: what this machine and this Python allow, what is missing, and the command to get it.
#include "cli/commands.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "cli/diagnosis.h"
#include "cli/exit_code.h"
#include "cli/json_document.h"
#include "cli/python_program.h"
#include "cli/utf8.h"
#include "formats/json.h"

namespace plimsoll::cli {
namespace {

struct Looks {
  std::string_view word;
  Style style;
};

Looks looks_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::kGood: return {"ok", Style::kPlain};
    case Verdict::kLimited: return {"limited", Style::kWarning};
    case Verdict::kMissing: break;
  }
  return {"missing", Style::kHot};
}

std::string as_text(const Machine& machine, const std::vector<Finding>& findings, const Paint& paint) {
  constexpr int kWordCells = 9;
  std::string out = fmt::format("plimsoll {} on Linux {}\n\n", PLIMSOLL_VERSION, machine.kernel);
  for (const Finding& finding : findings) {
    const auto [word, style] = looks_of(finding.verdict);
    out += paint(style, fmt::format("{:<{}}", word, kWordCells)) + printable(finding.what) + "\n";
    if (!finding.remedy.empty()) out += fmt::format("{:{}}-> {}\n", "", kWordCells, printable(finding.remedy));
  }
  return out;
}

std::string as_json(const Machine& machine, const std::vector<Finding>& findings) {
  std::string out;
  formats::JsonWriter json(out);
  begin_document(json);
  json.member("kernel", machine.kernel);
  json.column("findings", findings, [&](const Finding& finding) {
    json.begin_object();
    json.member("verdict", looks_of(finding.verdict).word);
    json.member("what", finding.what);
    if (!finding.remedy.empty()) json.member("remedy", finding.remedy);
    json.end_object();
  });
  json.end_object();
  return out + "\n";
}

class Doctor final : public Command {
 public:
  [[nodiscard]] std::string_view name() const override { return "doctor"; }
  [[nodiscard]] std::string_view summary() const override { return "Tell what this machine and this Python allow"; }
  [[nodiscard]] std::string examples() const override {
    return "  plimsoll doctor                            exit code 0: programs can be recorded; 1: they cannot\n"
           "  plimsoll doctor --python python3.13        with another interpreter";
  }
  void add_arguments(CLI::App& app) override {
    app.add_option("--python", python_, "The interpreter; by default the one plimsoll is installed beside")
        ->type_name("PYTHON");
    app.add_flag("--json", as_json_, "As JSON");
    app.add_option("--color", color_, "auto (default), always or never")->type_name("WHEN");
  }
  Result<int> run(Console& console) override {
    const Result<ColorChoice> color = parse_color(color_);
    if (!color.ok()) return color.error();
    const Result<std::string> interpreter = find_interpreter(python_);
    if (!interpreter.ok() && !python_.empty()) return interpreter.error();
    const Machine machine =
        interpreter.ok() ? examine(interpreter.value(), "") : examine("", interpreter.error().message);
    const std::vector<Finding> findings = diagnose(machine);
    const Paint paint(wants_color(color.value(), console.environment()));
    PLIMSOLL_TRY(console.print(as_json_ ? as_json(machine, findings) : as_text(machine, findings, paint)));
    const bool can_record = std::none_of(findings.begin(), findings.end(),
                                         [](const Finding& finding) { return finding.verdict == Verdict::kMissing; });
    return can_record ? kFine : kFailed;
  }

 private:
  std::string python_, color_ = "auto";
  bool as_json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_doctor() { return std::make_unique<Doctor>(); }

}  // namespace plimsoll::cli
