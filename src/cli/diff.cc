// cli/diff.cc: what has changed between two profiles.
#include "cli/commands.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>

#include "cli/exit_code.h"
#include "cli/memory_report.h"
#include "cli/render_diff.h"
#include "cli/show_words.h"
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
           "  plimsoll diff before.plim after.plim --from 5s     without what each does first\n"
           "  plimsoll diff before.plim after.plim --memory live   bytes alive at the end, by who allocated them\n"
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
    app.add_option("--activity", activities_,
                   "Only time spent so: running, ready, gil, lock, io, sleep, other, or waiting")
        ->type_name("WHAT")
        ->delimiter(',')
        ->allow_extra_args(false);
    app.add_option("--tag", tags_,
                   "Only samples with this tag: NAME or NAME=PATTERN (* and ?); NAME= for those without it")
        ->type_name("TAG")
        ->allow_extra_args(false);
    app.add_option("--from", from_, "Only samples from TIME on, since each one's own start (1.5, 1.5s, 200ms)")
        ->type_name("TIME");
    app.add_option("--to", to_, "Only samples before TIME")->type_name("TIME");
    app.add_option(
           "--memory", memory_,
           "Of recordings with --alloc, bytes in place of time: alive at the end (live), at the peak (peak), or "
           "all that was allocated (alloc)")
        ->type_name("live|peak|alloc");
    app.add_flag("--cpu", only_cpu_, "Of recordings of wall-clock time, CPU time only: --activity running");
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
    PLIMSOLL_TRY(read_conditions());
    Result<Input> before = console.read_profile(before_);
    if (!before.ok()) return before.error();
    narrow(before_, before.value(), console);
    Result<Input> after = console.read_profile(after_);
    if (!after.ok()) return after.error();
    if (is_of_memory()) return compare_memory(before.value().profile, after.value(), color.value(), console);
    // A run that was killed before it recorded anything is no faster one.
    if (after.value().profile.samples.size() == 0) {
      const bool has_memory = before.value().profile.has_allocations() && after.value().profile.has_allocations();
      console.notice(nothing_to_show(after.value().profile, whole_session(after.value().profile), after_) +
                     (has_memory ? "; --memory live compares allocations" : ""));
      return kNoSamples;
    }
    narrow(after_, after.value(), console);
    if (before.value().profile.samples.size() + after.value().profile.samples.size() == 0) {
      console.notice("there is nothing to compare: neither profile has a sample that was asked for");
      return kNoSamples;
    }
    if (const bool is_known = !mode_of(before.value()).empty() && !mode_of(after.value()).empty();
        is_known && mode_of(before.value()) != mode_of(after.value()) && conditions_.activities.empty())
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
  [[nodiscard]] bool is_of_memory() const { return !memory_.empty(); }
  [[nodiscard]] Status check() {
    const std::vector<std::string_view> kMemory{"live", "peak", "alloc"};
    const auto is_kind = [&](const std::string& word) {
      return std::find(kMemory.begin(), kMemory.end(), word) != kMemory.end();
    };
    if (is_of_memory() && !is_kind(memory_)) return Error{ErrorKind::kUsage, no_such("memory", memory_, kMemory)};
    if (is_of_memory() && (only_cpu_ || !activities_.empty()))
      return Error{ErrorKind::kUsage,
                   fmt::format("{} is of time, --memory of memory: choose one", only_cpu_ ? "--cpu" : "--activity")};
    if (only_cpu_ && !activities_.empty())
      return Error{ErrorKind::kUsage, "--cpu is --activity running: choose one of the two"};
    if (is_kind(view_))
      return Error{ErrorKind::kUsage, fmt::format("{} is no view here: --memory {} compares memory, as flat, tree or "
                                                  "lines",
                                                  view_, view_)};
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

  Status read_conditions() {
    PLIMSOLL_TRY(read_times(from_, to_, conditions_));
    PLIMSOLL_TRY(read_activities(activities_, conditions_));
    for (const std::string& tag : tags_) conditions_.tags.push_back(profile::TagCondition::parse(tag));
    if (only_cpu_) conditions_.activities = {Activity::kRunning};
    return Ok{};
  }

  Result<int> compare_memory(profile::Profile& before, Input& other, ColorChoice color, Console& console) {
    narrow(after_, other, console);
    profile::Profile& after = other.profile;
    const profile::MemoryQuestion question = *memory_view_named(memory_);
    std::size_t rows = 0;
    for (const profile::Profile* profile : {&before, &after}) {
      if (!profile->has_allocations())
        return Error{ErrorKind::kUsage, no_allocations(*profile, profile == &before ? before_ : after_)};
      PLIMSOLL_TRY(profile::check_question(*profile, question));
      rows += profile::allocations_of(*profile, question).size();
    }
    // What one could see and the other could not is no change.
    if (before.allocation_distance != after.allocation_distance)
      return Error{ErrorKind::kUsage, fmt::format("{} is of {}, and {} of {}: record both alike (--alloc)", before_,
                                                  kind_of(before), after_, kind_of(after))};
    if (rows == 0) {
      console.notice("there is nothing to compare: neither profile has an allocation that was asked for");
      return kNoSamples;
    }
    if (before.meta_value("native_memory").empty() != after.meta_value("native_memory").empty())
      console.notice("one profile has what C libraries take from malloc, and the other has not");
    if (!after.is_exact && question.view == profile::MemoryView::kPeak)
      console.notice("a sampled peak is the highest of many estimates, and so rather too high");
    options_.is_exact = before.is_exact && after.is_exact;
    const profile::Comparison comparison =
        profile::compare_memory(std::move(before), std::move(after), question,
                                {.functions = view_ == "flat", .lines = view_ == "lines", .tree = view_ == "tree"});
    options_.quantity = Quantity::kBytes;
    PLIMSOLL_TRY(console.print(as_json_ ? diff_json(comparison, view_, memory_) : as_text(comparison, color, console)));
    return verdict(comparison.total, console);
  }

  static std::string kind_of(const profile::Profile& profile) {
    if (profile.allocation_distance == 0) return "all allocations";
    return fmt::format("samples of them, one in {}",
                       format_bytes(static_cast<std::int64_t>(profile.allocation_distance)));
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
    std::string out = render_change(comparison.total, options_, page);
    if (view_ == "tree") return out + render_changed_tree(comparison.tree, options_, page);
    const auto& rows = view_ == "flat" ? comparison.functions : comparison.lines;
    return out + render_changed_rows(comparison.total, rows, options_, page);
  }

  [[nodiscard]] int verdict(const profile::TimeChange& total, Console& console) const {
    if (!fail_over_ || !total.is_beyond_chance) return kFine;
    const double percent = percent_of(total.change_ns(), total.before_ns);
    if (total.before_ns > 0 && percent <= *fail_over_) return kFine;
    if (total.change_ns() <= 0) return kFine;
    const std::string_view what = is_of_memory() ? "memory" : "time";
    console.notice(total.before_ns > 0
                       ? fmt::format("the {} has grown by {:.1f} %, more than {} %", what, percent, *fail_over_)
                       : fmt::format("there is {} where there was none before", what));
    return kFailed;
  }

  std::string before_, after_, view_ = "flat", memory_, from_, to_, sort_ = "self", color_ = "auto";
  std::vector<std::string> activities_, tags_;
  profile::Filter conditions_;
  DiffOptions options_;
  std::int64_t limit_ = 30;
  std::optional<double> fail_over_;
  bool only_cpu_ = false, as_json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_diff() { return std::make_unique<Diff>(); }

}  // namespace plimsoll::cli
