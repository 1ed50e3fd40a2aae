// cli/jitlog.cc: a log, the traces that were asked for, and one of them in full.
#include "cli/commands.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>

#include "cli/exit_code.h"
#include "cli/render_jitlog.h"
#include "cli/suggest.h"
#include "jitlog/query.h"
#include "jitlog/reader.h"
#include "profile/plim_reader.h"

namespace plimsoll::cli {
namespace {

using jitlog::Forest;
using jitlog::StageKind;
using jitlog::Trace;

class Jitlog final : public Command {
 public:
  [[nodiscard]] std::string_view name() const override { return "jitlog"; }
  [[nodiscard]] std::string_view summary() const override { return "Show the loops and bridges of PyPy's JIT"; }
  [[nodiscard]] std::string examples() const override {
    return "  plimsoll jitlog app.prof.jit                       loops and bridges, the busiest first\n"
           "  plimsoll jitlog app.prof.jit -q 'bridges & op(\"int_add_ovf\") | func(\"schedule\")'\n"
           "  plimsoll jitlog app.prof.jit -q 'loops & count > 1000 & ~file(\"lib-python\")'\n"
           "  plimsoll jitlog app.prof.jit --trace 48            its operations, as they were optimised\n"
           "  plimsoll jitlog app.prof.jit --trace 48 --stage noopt,opt,asm\n"
           "  plimsoll jitlog app.prof.jit --json | jq '.traces[0].place'\n"
           "\n"
           "Queries: loops, bridges, op(\"NAME\"), func(\"NAME\"), file(\"NAME\"), count > N (>= < <= == !=);\n"
           "  ~ is not, & is and, | is or, in this order; ( ) group.";
  }

  void add_arguments(CLI::App& app) override {
    app.add_option("FILE", file_, "The log, plain or gzipped, or a profile that has one; - reads standard input")
        ->required()
        ->type_name("");
    app.add_option("-q,--query", query_, "Only traces that match, see below")->type_name("QUERY");
    app.add_option("--trace", trace_, "One trace with its operations")->type_name("ID");
    app.add_option("--stage", stages_, "With --trace: noopt (as recorded), opt (default), asm, or several")
        ->type_name("STAGE")
        ->delimiter(',')
        ->allow_extra_args(false);
    app.add_option("--limit", limit_, "At most N traces (30); 0 = all")->type_name("N");
    app.add_flag("--json", as_json_, "As JSON");
    app.add_flag("--operations", has_operations_, "With --json: the operations of all traces, too");
    app.add_flag("--raw", is_raw_, "The log itself, unpacked, taken out of a profile if it is in one");
    app.add_option("--color", color_, "auto (default), always or never")->type_name("WHEN");
  }

  Result<int> run(Console& console) override {
    const Result<ColorChoice> color = parse_color(color_);
    if (!color.ok()) return color.error();
    const Result<std::vector<StageKind>> stages = chosen_stages();
    if (!stages.ok()) return stages.error();
    if (!stages_.empty() && !trace_) return Error{ErrorKind::kUsage, "--stage: of one trace, which --trace ID names"};
    if (limit_ < 0) return Error{ErrorKind::kUsage, fmt::format("--limit: {} is less than 0", limit_)};
    const Result<jitlog::Query> query = jitlog::Query::parse(query_);
    if (!query.ok()) return query.error();
    const Result<std::string> bytes = read_log(console);
    if (!bytes.ok()) return bytes.error();
    if (is_raw_) {
      PLIMSOLL_TRY(console.print(bytes.value()));
      return kFine;
    }
    const Result<Forest> forest = jitlog::read(bytes.value());
    if (!forest.ok()) return Error{forest.error().kind, file_ + ": " + forest.error().message};
    const Environment environment = console.environment();
    const Page page{output_width(environment), Paint(wants_color(color.value(), environment)), environment.directory};
    if (trace_) return one_trace(forest.value(), stages.value(), page, console);
    return all_traces(forest.value(), query.value(), page, console);
  }

 private:
  // The bytes of a log, or of the one that is attached to a profile.
  [[nodiscard]] Result<std::string> read_log(Console& console) const {
    Result<std::string> bytes = console.read_file(file_);
    if (!bytes.ok() || jitlog::is_jitlog(bytes.value())) return bytes;
    Result<profile::Profile> profile = profile::read_plim(bytes.value());
    if (!profile.ok()) return bytes;  // the reader of logs says what it is not
    if (profile::Attachment* log = profile.value().attachment("jitlog")) return std::move(log->bytes);
    return Error{ErrorKind::kBadInput, file_ + ": the profile has no jitlog: record one with plimsoll run --jitlog"};
  }

  [[nodiscard]] Result<std::vector<StageKind>> chosen_stages() const {
    const auto& names = jitlog::kStageNames;
    std::vector<StageKind> kinds;
    for (const std::string& name : stages_) {
      const auto found = std::find(names.begin(), names.end(), name);
      if (found == names.end()) return Error{ErrorKind::kUsage, no_such("stage", name, {names.begin(), names.end()})};
      kinds.push_back(static_cast<StageKind>(found - names.begin()));
    }
    return kinds;
  }

  Result<int> one_trace(const Forest& forest, std::vector<StageKind> stages, const Page& page, Console& console) const {
    const auto found = *trace_ < 0 ? forest.by_id.end() : forest.by_id.find(static_cast<std::uint64_t>(*trace_));
    if (found == forest.by_id.end())
      return Error{ErrorKind::kUsage,
                   fmt::format("there is no trace {} in {}; without --trace it lists them", *trace_, file_)};
    const Trace& trace = forest.traces[found->second];
    if (stages.empty()) stages.push_back(best_stage(trace));
    PLIMSOLL_TRY(console.print(as_json_ ? jitlog_json(forest, {found->second}, TraceDetail::kOperations)
                                        : render_trace(forest, trace, stages, page)));
    return kFine;
  }
  // As optimised; else the last stage there is.
  static StageKind best_stage(const Trace& trace) {
    for (const StageKind kind : {StageKind::kOptimised, StageKind::kAssembled})
      if (!trace.stage(kind).operations.empty()) return kind;
    return StageKind::kRecorded;
  }

  Result<int> all_traces(const Forest& forest, const jitlog::Query& query, const Page& page, Console& console) const {
    TraceList traces;
    for (jitlog::TraceIndex i = 0; i < forest.traces.size(); ++i)
      if (query.matches(forest, forest.traces[i])) traces.push_back(i);
    std::stable_sort(traces.begin(), traces.end(), [&](jitlog::TraceIndex a, jitlog::TraceIndex b) {
      return forest.traces[a].runs() > forest.traces[b].runs();
    });
    if (traces.empty() && !query_.empty()) console.notice("no trace matches " + query_);
    const TraceDetail detail = has_operations_ ? TraceDetail::kOperations : TraceDetail::kNumbers;
    PLIMSOLL_TRY(console.print(as_json_ ? jitlog_json(forest, traces, detail)
                                        : render_traces(forest, traces, static_cast<std::size_t>(limit_), page)));
    return kFine;
  }

  std::string file_, query_, color_ = "auto";
  std::optional<std::int64_t> trace_;  // signed, because CLI11 takes "-1" for a large unsigned number; so is limit_
  std::vector<std::string> stages_;
  std::int64_t limit_ = 30;
  bool as_json_ = false, has_operations_ = false, is_raw_ = false;
};

}  // namespace

std::unique_ptr<Command> make_jitlog() { return std::make_unique<Jitlog>(); }

}  // namespace plimsoll::cli
