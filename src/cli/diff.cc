// cli/diff.cc: what has changed between two profiles.
#include "cli/commands.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <optional>

#include "cli/exit_code.h"
#include "cli/render_diff.h"
#include "cli/suggest.h"
#include "cli/summary.h"
#include "cli/units.h"
#include "profile/filter.h"

namespace plimsoll::cli {
namespace {

class Diff final : public Command {
 public:
  [[nodiscard]] std::string_view name() const override { return "diff"; }
  [[nodiscard]] std::string_view summary() const override { return "Compare two profiles; noise is not reported"; }
  [[nodiscard]] std::string examples() const override {
    return "  plimsoll diff before.plim after.plim               functions whose own time has changed\n"
           "  plimsoll diff before.plim after.plim tree          where in the call tree\n"
           "  plimsoll diff before.plim after.plim lines         line by line\n"
           "  plimsoll diff before.plim after.plim --function parse --fail-over 5\n"
           "      exit code 1 if what leads through parse takes 5 % longer, and that is no chance";
  }

  void add_arguments(CLI::App& app) override {
    app.add_option("BEFORE", before_, "A profile")->required()->type_name("");
    app.add_option("AFTER", after_, "A later one of the same work")->required()->type_name("");
    app.add_option("VIEW", view_, "flat (default), tree or lines")->type_name("");
    app.add_option("--thread", conditions_.thread, "Only threads whose name holds TEXT")->type_name("TEXT");
    app.add_option("--function", conditions_.function, "Only stacks with a function whose name holds TEXT")
        ->type_name("TEXT");
    app.add_option("--file", conditions_.file, "Only stacks with a function whose file name holds TEXT")
        ->type_name("TEXT");
    app.add_option("--tag", tags_,
                   "Only samples with this tag: NAME or NAME=PATTERN (* and ?); NAME= for those without it")
        ->type_name("TAG")
        ->allow_extra_args(false);
    app.add_flag("--cpu", only_cpu_, "Of recordings of wall-clock time, CPU time only");
    app.add_option("--sort", sort_, "flat, lines: by the change of self (default) or total time")
        ->type_name("self|total");
    app.add_flag("--all", options_.show_all, "Show what may be chance, too");
    app.add_option("--limit", limit_, "At most N rows (30); 0 = all")->type_name("N");
    app.add_option("--fail-over", fail_over_,
                   "Exit code 1 if the total has grown by more than P percent, beyond chance")
        ->type_name("P");
    app.add_flag("--json", as_json_, "As JSON, with nothing left out (docs/json.md)");
    app.add_option("--color", color_, "auto (default), always or never")->type_name("WHEN");
  }

  Result<int> run(Console& console) override {
    const Result<ColorChoice> color = parse_color(color_);
    if (!color.ok()) return color.error();
    PLIMSOLL_TRY(check());
    for (const std::string& tag : tags_) conditions_.tags.push_back(profile::TagCondition::parse(tag));
    if (only_cpu_) conditions_.activities = {Activity::kRunning};
    Result<Input> before = console.read_profile(before_);
    if (!before.ok()) return before.error();
    narrow(before_, before.value(), console);
    Result<Input> after = console.read_profile(after_);
    if (!after.ok()) return after.error();
    // A run that was killed before it recorded anything is no faster one.
    if (after.value().profile.samples.size() == 0) {
      console.notice(nothing_to_show(after.value().profile, whole_session(after.value().profile), after_));
      return kNoSamples;
    }
    narrow(after_, after.value(), console);
    if (before.value().profile.samples.size() + after.value().profile.samples.size() == 0) {
      console.notice("there is nothing to compare: neither profile has a sample that was asked for");
      return kNoSamples;
    }
    if (const bool is_known = !mode_of(before.value()).empty() && !mode_of(after.value()).empty();
        is_known && mode_of(before.value()) != mode_of(after.value()) && !only_cpu_)
      console.notice("one profile is of CPU time and the other is not: --cpu compares CPU time");
    const profile::Extent extent = is_everything(conditions_) ? profile::Extent::kWhole : profile::Extent::kSelection;
    const profile::Comparison comparison =
        profile::compare(std::move(before.value().profile), std::move(after.value().profile), extent,
                         {.functions = view_ == "flat", .lines = view_ == "lines", .tree = view_ == "tree"});
    say_assumed(before_, comparison.before_period, console);
    say_assumed(after_, comparison.after_period, console);
    PLIMSOLL_TRY(console.print(as_json_ ? diff_json(comparison, view_) : as_text(comparison, color.value(), console)));
    return verdict(comparison.total, console);
  }

 private:
  [[nodiscard]] Status check() {
    if (view_ != "flat" && view_ != "tree" && view_ != "lines")
      return Error{ErrorKind::kUsage, no_such("view", view_, {"flat", "tree", "lines"})};
    if (sort_ != "self" && sort_ != "total")
      return Error{ErrorKind::kUsage, no_such("--sort order", sort_, {"self", "total"})};
    if (limit_ < 0) return Error{ErrorKind::kUsage, fmt::format("--limit: {} is less than 0", limit_)};
    if (!(fail_over_.value_or(0) >= 0))
      return Error{ErrorKind::kUsage, "--fail-over: a percentage of growth is not negative"};
    options_.by_total = sort_ == "total";
    options_.limit = static_cast<std::size_t>(limit_);
    return Ok{};
  }

  static std::string_view mode_of(const Input& input) { return input.profile.meta_value("mode"); }

  void narrow(const std::string& path, Input& input, Console& console) {
    if (!input.profile.complete)
      console.notice(fmt::format("{} ends early: the program was killed or is still running", path));
    if (!is_everything(conditions_)) profile::filter(input.profile, conditions_);
  }

  static void say_assumed(const std::string& path, const profile::SamplingPeriod& period, Console& console) {
    if (!period.is_assumed) return;
    console.notice(
        fmt::format("{} does not tell its sampling rate: what chance may do is judged as if it had a sample "
                    "every {}",
                    path, format_time(period.ns)));
  }

  [[nodiscard]] std::string as_text(const profile::Comparison& comparison, ColorChoice color,
                                    const Console& console) const {
    const Environment environment = console.environment();
    const Page page{output_width(environment), Paint(wants_color(color, environment)), environment.directory};
    std::string out = render_change(comparison.total, page);
    if (view_ == "tree") return out + render_changed_tree(comparison.tree, options_, page);
    const auto& rows = view_ == "flat" ? comparison.functions : comparison.lines;
    return out + render_changed_rows(comparison.total, rows, options_, page);
  }

  [[nodiscard]] int verdict(const profile::TimeChange& total, Console& console) const {
    if (!fail_over_ || !total.is_beyond_chance) return kFine;
    const double percent = percent_of(total.change_ns(), total.before_ns);
    if (total.before_ns > 0 && percent <= *fail_over_) return kFine;
    if (total.change_ns() <= 0) return kFine;
    console.notice(total.before_ns > 0
                       ? fmt::format("the time has grown by {:.1f} %, more than {} %", percent, *fail_over_)
                       : std::string("there is time where there was none before"));
    return kFailed;
  }

  std::string before_, after_, view_ = "flat", sort_ = "self", color_ = "auto";
  std::vector<std::string> tags_;
  profile::Filter conditions_;
  DiffOptions options_;
  std::int64_t limit_ = 30;
  std::optional<double> fail_over_;
  bool only_cpu_ = false, as_json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_diff() { return std::make_unique<Diff>(); }

}  // namespace plimsoll::cli
