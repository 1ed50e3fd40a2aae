// cli/show.cc: reads a profile, keeps what was asked for, and hands it to the view that was asked for.
#include "cli/commands.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <limits>
#include <optional>

#include "cli/exit_code.h"
#include "cli/json_output.h"
#include "cli/memory_report.h"
#include "cli/native_frames.h"
#include "cli/profile_input.h"
#include "cli/render_flat.h"
#include "cli/render_lines.h"
#include "cli/render_tree.h"
#include "cli/show_words.h"
#include "cli/tag_report.h"
#include "cli/units.h"

namespace plimsoll::cli {
namespace {

// The arguments as typed.
struct ShowArguments {
  ProfileInput input;
  std::string view = "tree";
  std::string thread, from, to, at, within, function, source_file;
  std::vector<std::string> activities, tags, domains;
  std::string color = "auto", sort;
  std::optional<double> min_percent;
  // Signed, because CLI11 takes "-1" for a large unsigned number.
  std::optional<std::int64_t> depth, limit, context;
  bool as_json = false, by_line = false, no_fold = false, as_flat = false, no_native = false, all_native = false,
       by_type = false, callers = false;
};

// What they mean. Limits stay optional: text has defaults for what fits a screen, JSON is complete unless told
// otherwise.
struct ShowRequest {
  ShowArguments arguments;
  profile::Filter conditions;
  ColorChoice color = ColorChoice::kAuto;
  SortBy sort = SortBy::kSelf;
  std::optional<std::int64_t> at_ns, within_ns;
};

constexpr std::size_t kTagRows = 30;
constexpr std::size_t kMemoryRows = 20;  // moments

Error usage(std::string message) { return {ErrorKind::kUsage, std::move(message)}; }

// Times that only some views of memory have.
Status read_points(const ShowArguments& arguments, ShowRequest& request) {
  if (!arguments.at.empty()) {
    if (arguments.view != "live" && arguments.view != "types")
      return usage("--at: a time for the views live and types");
    const Result<std::int64_t> at = parse_time(arguments.at, "--at");
    if (!at.ok()) return at.error();
    request.at_ns = at.value();
  }
  if (!arguments.within.empty()) {
    if (arguments.view != "temporary") return usage("--within: a time for the view temporary");
    const Result<std::int64_t> within = parse_time(arguments.within, "--within");
    if (!within.ok()) return within.error();
    request.within_ns = within.value();
  }
  return Ok{};
}

bool is_of_memory(std::string_view view) {
  return memory_view_named(view).has_value() || view == "types" || view == "memory";
}

Status check_options(const ShowArguments& arguments) {
  if (arguments.as_flat && !is_of_memory(arguments.view))
    return usage("--flat: for the views of memory; functions by their time are the view flat: plimsoll show FILE flat");
  const ViewShape shape = arguments.as_flat || arguments.by_type ? ViewShape::kTable : ViewShape::kTree;
  return check_view_options(arguments.view, shape,
                            {{"--activity", !arguments.activities.empty()},
                             {"--depth", arguments.depth.has_value()},
                             {"--lines", arguments.by_line},
                             {"--callers", arguments.callers},
                             {"--no-fold", arguments.no_fold},
                             {"--min-percent", arguments.min_percent.has_value()},
                             {"--sort", !arguments.sort.empty()},
                             {"--context", arguments.context.has_value()},
                             {"--limit", arguments.limit.has_value()},
                             {"--flat", arguments.as_flat},
                             {"--types", arguments.by_type},
                             {"--domain", !arguments.domains.empty()}});
}

Status check_least(std::string_view option, const std::optional<std::int64_t>& value, std::int64_t least) {
  if (value.value_or(least) >= least) return Ok{};
  return usage(fmt::format("{}: {} is less than {}", option, *value, least));
}

// The value given, which is not negative, else the default.
template <typename Number>
Number given_or(const std::optional<std::int64_t>& value, Number otherwise) {
  constexpr std::uint64_t kMost = std::numeric_limits<Number>::max();
  return value ? static_cast<Number>(std::min(static_cast<std::uint64_t>(*value), kMost)) : otherwise;
}

Result<ShowRequest> request_of(const ShowArguments& arguments) {
  ShowRequest request;
  request.arguments = arguments;
  PLIMSOLL_TRY(check_view(arguments.view, arguments.input.path()));
  PLIMSOLL_TRY(read_times(arguments.from, arguments.to, request.conditions));
  PLIMSOLL_TRY(read_points(arguments, request));
  request.conditions.thread = arguments.thread;
  request.conditions.function = arguments.function;
  request.conditions.file = arguments.source_file;
  PLIMSOLL_TRY(read_activities(arguments.activities, request.conditions));
  PLIMSOLL_TRY(read_domains(arguments.domains, request.conditions));
  for (const std::string& tag : arguments.tags) request.conditions.tags.push_back(profile::TagCondition::parse(tag));
  const Result<ColorChoice> color = parse_color(arguments.color);
  if (!color.ok()) return color.error();
  request.color = color.value();
  PLIMSOLL_TRY(check_sort(arguments.sort));
  request.sort = arguments.sort == "total" ? SortBy::kTotal : SortBy::kSelf;
  if (const double percent = arguments.min_percent.value_or(0); !(percent >= 0 && percent <= 100))
    return usage("--min-percent: a percentage is a number from 0 to 100");
  PLIMSOLL_TRY(check_least("--depth", arguments.depth, 1));
  PLIMSOLL_TRY(check_least("--limit", arguments.limit, 0));
  PLIMSOLL_TRY(check_least("--context", arguments.context, 0));
  PLIMSOLL_TRY(check_options(arguments));
  // Text has of each function that takes time those who have called it, and not how the program came there.
  constexpr std::int64_t kCallers = 8;
  if (arguments.callers && !arguments.depth && !arguments.as_json) request.arguments.depth = kCallers;
  return request;
}

TreeOptions tree_options(const ShowArguments& arguments, double default_percent) {
  TreeOptions options;
  options.min_percent = arguments.min_percent.value_or(default_percent);
  options.depth = given_or(arguments.depth, options.depth);
  options.folding = arguments.no_fold ? Folding::kOff : Folding::kOn;
  if (arguments.callers) options.direction = Direction::kToCallers;
  return options;
}

// One call more than is shown, so that it is told what is left out.
void turn_round(profile::Profile& profile, const ShowArguments& arguments) {
  constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();
  const std::size_t depth = given_or(arguments.depth, kAll);
  profile::turn_round(profile, arguments.function, depth == kAll ? kAll : depth + 1);
}

profile::Tree tree_of(const profile::Profile& profile, const ShowArguments& arguments) {
  return profile::tree(profile, arguments.by_line ? profile::Granularity::kLine : profile::Granularity::kFunction);
}

LineReport lines_of(const profile::Profile& profile, const ShowRequest& request) {
  LineReport report = line_report(profile);
  keep_asked_for(report, profile, request.conditions);
  return report;
}

std::vector<ThreadRow> threads_of(const profile::Profile& profile, const ShowRequest& request, std::size_t parts) {
  std::vector<ThreadRow> rows = thread_report(profile, parts);
  // A thread without samples is news in a whole session, and noise in a selection.
  if (!is_everything(request.conditions)) std::erase_if(rows, [](const ThreadRow& row) { return row.samples == 0; });
  return rows;
}

// The functions that are asked for, heaviest first.
std::vector<profile::FlatRow> functions_of(const profile::Profile& profile, const ShowRequest& request) {
  std::vector<profile::FlatRow> rows = flat_rows(profile, request.sort);
  const double least_percent = request.arguments.min_percent.value_or(0);
  const std::int64_t all_ns = profile.sampled_ns();
  std::erase_if(rows, [&](const profile::FlatRow& row) {
    return percent_of(request.sort == SortBy::kSelf ? row.self_ns : row.total_ns, all_ns) < least_percent;
  });
  return rows;
}

std::string as_json(const profile::Profile& profile, const Selection& selection, const ShowRequest& request) {
  const ShowArguments& arguments = request.arguments;
  if (arguments.view == "flat") {
    std::vector<profile::FlatRow> rows = functions_of(profile, request);
    const std::size_t limit = given_or(arguments.limit, std::size_t{0});
    if (limit != 0 && limit < rows.size()) rows.resize(limit);
    return flat_json(profile, selection, rows);
  }
  if (arguments.view == "lines") {
    LineReport report = lines_of(profile, request);
    keep_heavy(report, profile, arguments.min_percent.value_or(0), given_or(arguments.limit, std::size_t{0}));
    return lines_json(profile, selection, report);
  }
  if (arguments.view == "threads") return threads_json(profile, selection, threads_of(profile, request, 0));
  if (arguments.view == "tags") {
    std::vector<TagRow> rows = tag_report(profile);
    const std::size_t limit = given_or(arguments.limit, std::size_t{0});
    if (limit != 0 && limit < rows.size()) rows.resize(limit);
    return tags_json(profile, selection, rows);
  }
  return tree_json(profile, selection, tree_of(profile, arguments), tree_options(arguments, 0));
}

std::string view_as_text(const profile::Profile& profile, const ShowRequest& request, const Page& page) {
  const ShowArguments& arguments = request.arguments;
  if (arguments.view == "flat") {
    FlatOptions options;
    options.sort = request.sort;
    options.limit = given_or(arguments.limit, options.limit);
    return render_flat(profile, functions_of(profile, request), options, page);
  }
  if (arguments.view == "lines") {
    LinesOptions options;
    options.min_percent = arguments.min_percent.value_or(options.min_percent);
    options.context = given_or(arguments.context, options.context);
    options.limit = given_or(arguments.limit, options.limit);
    const auto find_source = [&](std::string_view file) { return source_of(profile, file); };
    return render_lines(profile, lines_of(profile, request), find_source, options, page);
  }
  if (arguments.view == "threads") return render_threads(profile, threads_of(profile, request, busy_parts(page)), page);
  if (arguments.view == "tags")
    return render_tags(profile, tag_report(profile), given_or(arguments.limit, kTagRows), page);
  const TreeOptions options = tree_options(arguments, TreeOptions{}.min_percent);
  const profile::Tree tree = tree_of(profile, arguments);
  return render_tree(profile, tree, tree_view(profile, tree, options), options, page);
}

std::string as_text(const profile::Profile& profile, const Selection& selection, const ShowRequest& request,
                    const Environment& environment) {
  const Page page{output_width(environment), Paint(wants_color(request.color, environment)), environment.directory};
  const std::string notes = caveats(profile, selection, page);
  return heading(profile, selection, page) + view_as_text(profile, request, page) + (notes.empty() ? "" : "\n" + notes);
}

MemoryOptions memory_options(const ShowRequest& request) {
  const ShowArguments& arguments = request.arguments;
  MemoryOptions options;
  options.question = memory_view_named(arguments.view).value_or(profile::MemoryView::kLive);
  if (options.question.view == profile::MemoryView::kLeaks) {
    options.question.from_ns = std::max(std::int64_t{0}, request.conditions.from_ns);
    options.question.at_ns = request.conditions.to_ns;
  }
  if (request.at_ns) options.question.at_ns = *request.at_ns;
  if (request.within_ns) options.question.within_ns = *request.within_ns;
  options.shape = arguments.as_flat ? MemoryOptions::Shape::kFlat : MemoryOptions::Shape::kTree;
  if (arguments.by_type || arguments.view == "types") options.shape = MemoryOptions::Shape::kTypes;
  options.tree = tree_options(arguments, TreeOptions{}.min_percent);
  if (arguments.by_line) options.granularity = profile::Granularity::kLine;
  options.limit = given_or(arguments.limit, arguments.as_json ? std::size_t{0} : options.limit);
  return options;
}

// Where times are those at which sums were taken: what is told of a stretch was allocated between two of them. It must
// be asked before all else is left out.
std::optional<profile::MemoryWindow> sums_of(const profile::Profile& profile, const profile::Filter& conditions) {
  const profile::Filter whole;
  const bool is_stretch = conditions.from_ns != whole.from_ns || conditions.to_ns != whole.to_ns;
  if (!is_stretch || !profile::is_in_sums(profile)) return std::nullopt;
  const auto taken_before_ns = [&](std::int64_t ns) { return ns <= 0 ? 0 : profile::sums_taken_ns(profile, ns - 1); };
  return profile::MemoryWindow{taken_before_ns(conditions.from_ns), taken_before_ns(conditions.to_ns)};
}

class Show final : public Command {
 public:
  [[nodiscard]] std::string_view name() const override { return "show"; }
  [[nodiscard]] std::string_view summary() const override { return "Show where the time went, on the terminal"; }
  [[nodiscard]] std::string examples() const override {
    return "  plimsoll show app.plim                             the call tree, callers above callees\n"
           "  plimsoll show app.plim flat --sort total           functions, with what they call\n"
           "  plimsoll show app.plim lines --file model.py       annotated source\n"
           "  plimsoll show app.plim --callers                   what takes time, and who has called it\n"
           "  plimsoll show app.plim --callers --function dumps  who has called dumps\n"
           "  plimsoll show app.plim threads                     who was busy when\n"
           "  plimsoll show app.plim --children                  with those of run --children beside it\n"
           "  plimsoll show app.plim tags                        what the program's own tags took (plimsoll.tag)\n"
           "  plimsoll show app.plim --tag 'request=GET*'        what was done for such requests\n"
           "  plimsoll show app.plim live                        memory that was never freed, by who allocated it\n"
           "  plimsoll show app.plim peak --flat                 functions by their share of the high-water mark\n"
           "  plimsoll show app.plim live --domain malloc        what C libraries hold, of run --native-memory\n"
           "  plimsoll show app.plim leaks --from 10s --to 60s   allocated in these 50 seconds, and alive at their "
           "end\n"
           "  plimsoll show app.plim temporary --flat            who allocates what is freed at once\n"
           "  plimsoll show app.plim types --at 30s              what was alive then, by type\n"
           "  plimsoll show app.plim memory                      memory over time, and who has most of it\n"
           "  plimsoll show app.plim --activity io,lock          what waited for input, output and locks\n"
           "  plimsoll show app.plim --from 1.5s --to 2s         half a second of it\n"
           "  plimsoll show app.plim --function parse --lines    what leads through parse, line by line\n"
           "  plimsoll show app.plim flat --json | jq '.flat[0].function'";
  }

  void add_arguments(CLI::App& app) override {
    ShowArguments& to = arguments_;
    to.input.add_arguments(app);
    app.add_option("VIEW", to.view,
                   "tree (default), flat, lines, threads, tags; of allocations: alloc, live, peak, leaks, temporary, "
                   "types, memory")
        ->type_name("");
    app.add_option("--thread", to.thread, "Only threads whose name holds TEXT, in any case, or with this id")
        ->type_name("TEXT");
    app.add_option("--function", to.function, "Only stacks with a function whose name holds TEXT, in any case")
        ->type_name("TEXT");
    app.add_option("--file", to.source_file, "Only stacks with a function whose file name holds TEXT, in any case")
        ->type_name("TEXT");
    app.add_option("--activity", to.activities,
                   "Only time spent so: running, ready, gil, lock, io, sleep, other, or waiting")
        ->type_name("WHAT")
        ->delimiter(',')
        ->allow_extra_args(false);
    app.add_option("--tag", to.tags,
                   "Only samples with this tag: NAME or NAME=PATTERN (* and ?); NAME= for those without it")
        ->type_name("TAG")
        ->allow_extra_args(false);
    to.input.add_tasks_flag(app);
    app.add_flag("--native", to.all_native,
                 "Every native frame (recorded with --native), not only where a library was entered");
    app.add_flag("--no-native", to.no_native, "Native functions' time goes to the Python functions that called them");
    app.add_option("--from", to.from, "Only samples from TIME on since the start (1.5, 1.5s, 200ms)")
        ->type_name("TIME");
    app.add_option("--to", to.to, "Only samples before TIME")->type_name("TIME");
    app.add_option("--min-percent", to.min_percent, "Trees, lines, flat: leave out what is below (default 1; flat 0)")
        ->type_name("P");
    app.add_option("--depth", to.depth, "Trees: at most N calls deep (--callers: 8)")->type_name("N");
    app.add_flag("--callers", to.callers,
                 "Trees: from where time is spent, or from --function, to those who have called that");
    app.add_flag("--lines", to.by_line, "Trees: tell the lines of a function apart");
    app.add_flag("--no-fold", to.no_fold, "Trees: a line for every frame of recursion, libraries and imports");
    app.add_option("--sort", to.sort, "flat: by self (default) or total time")->type_name("self|total");
    app.add_option("--limit", to.limit,
                   "At most N functions (flat, --flat: 30), files (lines: 10), tags (30), types (30), moments (memory: "
                   "20); 0 = all")
        ->type_name("N");
    app.add_option("--context", to.context, "lines: lines around those with time (default 2)")->type_name("N");
    app.add_flag("--flat", to.as_flat, "alloc, live, peak, leaks, temporary: functions by what they allocate");
    app.add_flag("--types", to.by_type, "likewise: types of objects");
    app.add_option("--domain", to.domains,
                   "Memory: only from these allocators: object, memory, raw (together: python), malloc, mmap "
                   "(together: native)")
        ->type_name("NAME")
        ->delimiter(',')
        ->allow_extra_args(false);
    app.add_option("--at", to.at, "live, types: what was alive at TIME, not at the end")->type_name("TIME");
    app.add_option("--within", to.within, "temporary: freed no later than TIME after (default 1ms)")->type_name("TIME");
    app.add_flag("--json", to.as_json, "As JSON, with nothing left out unless asked for (docs/json.md)");
    app.add_option("--color", to.color, "auto (default), always or never")->type_name("WHEN");
  }

  Result<int> run(Console& console) override {
    const Result<ShowRequest> request = request_of(arguments_);
    if (!request.ok()) return request.error();
    Result<Input> input = arguments_.input.read(console);
    if (!input.ok()) return input.error();
    profile::Profile& profile = input.value().profile;
    PLIMSOLL_TRY(fold(profile, console));
    if (is_of_memory(arguments_.view)) return show_memory(profile, request.value(), console);
    const Selection selection = select(profile, request.value().conditions);
    if (arguments_.callers) turn_round(profile, request.value().arguments);
    if (selection.shown_samples == 0) {
      console.notice(nothing_to_show(profile, selection, arguments_.input.path()));
      return kNoSamples;
    }
    PLIMSOLL_TRY(console.print(arguments_.as_json
                                   ? as_json(profile, selection, request.value())
                                   : as_text(profile, selection, request.value(), console.environment())));
    return kFine;
  }

 private:
  // Native frames of our own recordings are folded as Python's libraries are: in text, where nobody says otherwise.
  [[nodiscard]] Status fold(profile::Profile& profile, Console& console) const {
    if (arguments_.no_native && arguments_.all_native)
      return usage("--native and --no-native: every native frame, or none? Choose one of them");
    const bool is_of_ours = !profile.meta_value("native").empty();
    const bool is_folded = is_of_ours && !arguments_.all_native && !arguments_.as_json;
    choose_native_frames(profile,
                         arguments_.no_native ? NativeFrames::kNone
                         : is_folded          ? NativeFrames::kEntries
                                              : NativeFrames::kAll,
                         console);
    return Ok{};
  }

  Result<int> show_memory(profile::Profile& profile, const ShowRequest& request, Console& console) const {
    if (!profile.has_allocations()) return usage(no_allocations(profile, arguments_.input.path()));
    MemoryOptions options = memory_options(request);
    const bool is_timeline = arguments_.view == "memory";
    profile::Filter conditions = request.conditions;
    if (is_timeline && arguments_.limit == 0) return usage("memory: --limit is the number of moments, at least 1");
    // Points of time that are part of the question.
    if (is_timeline || options.question.view == profile::MemoryView::kLeaks) {
      conditions.from_ns = profile::Filter{}.from_ns;
      conditions.to_ns = profile::Filter{}.to_ns;
    }
    options.is_of_part = !is_everything(conditions);
    if (!is_timeline) options.sums_of = sums_of(profile, conditions);
    select(profile, conditions);
    if (arguments_.callers) turn_round(profile, request.arguments);
    PLIMSOLL_TRY(profile::check_question(profile, options.question));
    if (request.at_ns.value_or(0) > profile.end_ns)
      console.notice(fmt::format("--at {} is after the end of {}, at {}: this is how it was then", arguments_.at,
                                 arguments_.input.path(), format_time(profile.end_ns)));
    if (is_timeline ? profile.allocations.empty() : profile::allocations_of(profile, options.question).empty()) {
      console.notice(no_allocation_left(profile, request.conditions, arguments_.input.path()));
      return kNoSamples;
    }
    const Environment& environment = console.environment();
    const Page page{output_width(environment), Paint(wants_color(request.color, environment)), environment.directory};
    const TimelineOptions timeline{std::clamp<std::size_t>(given_or(arguments_.limit, kMemoryRows), 1, 10'000),
                                   {std::max(std::int64_t{0}, request.conditions.from_ns), request.conditions.to_ns}};
    if (is_timeline)
      PLIMSOLL_TRY(console.print(arguments_.as_json ? timeline_json(profile, timeline)
                                                    : timeline_text(profile, timeline, page)));
    else
      PLIMSOLL_TRY(
          console.print(arguments_.as_json ? memory_json(profile, options) : memory_text(profile, options, page)));
    return kFine;
  }

  ShowArguments arguments_;
};

}  // namespace

std::unique_ptr<Command> make_show() { return std::make_unique<Show>(); }

}  // namespace plimsoll::cli
