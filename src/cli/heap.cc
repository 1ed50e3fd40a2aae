// cli/heap.cc: `plimsoll heap`: one verb for each question, as subcommands of its own; with a process, a snapshot of
// it.
#include "cli/commands.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include "cli/exit_code.h"
#include "cli/heap_export.h"
#include "cli/heap_input.h"
#include "cli/heap_take.h"
#include "cli/process_id.h"
#include "cli/render_answer.h"
#include "cli/render_heap_memory.h"
#include "cli/render_heap_patterns.h"
#include "cli/suggest.h"
#include "heap/survivors.h"
#include "sql/query.h"

namespace plimsoll::cli {
namespace {

constexpr std::uint64_t kMostMegabytes = 1'000'000'000;

class Heap final : public Command {
 public:
  [[nodiscard]] std::string_view name() const override { return "heap"; }
  [[nodiscard]] std::string_view summary() const override {
    return "Take a heap snapshot of a process; show what is alive in one, and what keeps it alive";
  }
  [[nodiscard]] std::string examples() const override {
    return "  plimsoll heap 1234 -o app.heap                         takes a snapshot of process 1234, from outside\n"
           "  plimsoll heap --core core.1234 -o app.heap             the same of a core file: of a process that has "
           "ended\n"
           "  plimsoll heap 1234 -o app.heap --rules 'app.Session: label user'   objects told apart by an attribute\n"
           "  plimsoll.heap.snapshot(\"app.heap\")                     the same, in the program\n"
           "  plimsoll heap show app.heap                            classes: count, size, retained size\n"
           "  plimsoll heap show app.heap tree                       what holds most memory alive\n"
           "  plimsoll heap show app.heap retained --of 'app.*'      what would be freed with all of these classes\n"
           "  plimsoll heap show app.heap paths --of app.Session     why is it alive\n"
           "  plimsoll heap show app.heap paths --all --of app.Session   all the ways, by classes and attributes\n"
           "  plimsoll heap show app.heap tree --view module         the same with a module as one object\n"
           "  plimsoll heap show app.heap suspects                   where memory piles up\n"
           "  plimsoll heap show app.heap duplicates                 str and bytes that are there more than once\n"
           "  plimsoll heap show app.heap waste                      empty containers, and room that they do not need\n"
           "  plimsoll heap show app.heap arenas                     what keeps memory from going back to the system\n"
           "  plimsoll heap show app.heap rss                        what the process's memory is used for\n"
           "  plimsoll heap show app.heap groups --by place          objects by the attribute that holds them\n"
           "  plimsoll heap show app.heap groups --by allocation-site    by what allocated them, if that was recorded\n"
           "  plimsoll heap diff before.heap after.heap              what has grown\n"
           "  plimsoll heap diff 1.heap 2.heap 3.heap                what came before 2.heap and has stayed: leaks\n"
           "  plimsoll heap query app.heap 'select type, count(*), sum(size) from objects where holders = 1 group by "
           "type'\n"
           "  plimsoll heap query app.heap                           the tables, and their columns\n"
           "  plimsoll heap export app.heap -o app.heapsnapshot      for Chrome's DevTools\n"
           "  plimsoll heap export app.heap -o app.pftrace           for Perfetto (ui.perfetto.dev)\n"
           "  plimsoll heap export app.heap -o app.ndjson            a line of JSON for each object";
  }

  void add_arguments(CLI::App& app) override {
    app.require_subcommand(0, 1);
    add_take(app);
    add_show(*app.add_subcommand("show", "Classes, the tree of what retains what, or the paths to an object"));
    add_diff(*app.add_subcommand("diff", "Compare two snapshots class by class"));
    add_query(*app.add_subcommand("query", "Ask in SQL: select ... from objects, edges, types, meta"));
    add_export(
        *app.add_subcommand("export", "Write a snapshot for Chrome's DevTools, for Perfetto, or as lines of JSON"));
  }

  Result<int> run(Console& console) override {
    const Result<ColorChoice> color = parse_color(color_);
    if (!color.ok()) return color.error();
    const bool has_verb = show_->parsed() || diff_->parsed() || query_->parsed() || export_->parsed();
    if (!has_verb) return run_take(console);
    if (take_.pid != 0 || !take_.core.empty() || !take_.output.empty())
      return Error{ErrorKind::kUsage, "a process and -o are for taking a snapshot: plimsoll heap PID -o FILE"};
    PLIMSOLL_TRY(check());
    const Environment environment = console.environment();
    const Page page{output_width(environment), Paint(wants_color(color.value(), environment)), environment.directory};
    if (diff_->parsed()) return run_diff(console, page);
    if (query_->parsed()) return run_query(console, page);
    if (export_->parsed()) return export_heap(console, file_, seen_as_, {output_, format_});
    return run_show(console, page);
  }

 private:
  void add_common(CLI::App& app) {
    app.add_option("--limit", limit_, "At most N rows (30; as JSON all) or paths (5; 30 with --all); 0 = all")
        ->type_name("N");
    app.add_flag("--json", as_json_, "As JSON (docs/json.md)");
    app.add_option("--color", color_, "auto (default), always or never")->type_name("WHEN");
  }
  void add_take(CLI::App& app) {
    app.add_option("PID", take_.pid, "The process to take a snapshot of; it stands still while its memory is copied")
        ->type_name("")
        ->check(process_id());
    app.add_option("--core", take_.core, "Or a core file, of a process of this kind of machine (x86-64)")
        ->type_name("FILE");
    app.add_option("--exe", take_.program, "With --core: the program's file, if it is not where it was")
        ->type_name("PYTHON");
    app.add_option("-o,--output", take_.output, "Where to write the snapshot")->type_name("FILE");
    app.add_flag("--values", with_values_, "Also record the beginning of each str and bytes, and numbers");
    app.add_option("--rules", rules_,
                   "What is known of some classes, as plimsoll.heap.Rule says it: 'app.Session: label user', "
                   "'mylib.*: native 0 8', or a file of them; may be repeated")
        ->type_name("RULES")
        ->allow_extra_args(false);
    app.add_option("--max-copy", take_.most_megabytes,
                   "Copy at most so much memory of the process (default: what this machine has available, and its "
                   "control group may take)")
        ->type_name("MB")
        ->check(CLI::Range(std::uint64_t{1}, kMostMegabytes));
  }
  void add_show(CLI::App& app) {
    show_ = &app;
    app.add_option("FILE", file_, "A snapshot")->required()->type_name("");
    app.add_option("VIEW", view_,
                   "types (default), tree, paths, retained, suspects, groups, duplicates, waste, arenas or rss")
        ->type_name("");
    app.add_option(
           "--by", by_,
           "groups: by place (default), referrers, module, generation, size; or, of snapshots taken while allocations "
           "were recorded, allocation-site or allocation-stack")
        ->type_name("WHAT");
    app.add_option("--of", object_,
                   "tree, paths: of the object at an address (0x7f...), or of the largest of a class; retained: of the "
                   "object at "
                   "an address, or of all of a class; groups: of a class. There a class may be a pattern ('app.*')")
        ->type_name("OBJECT");
    add_view(app);
    app.add_flag("--raw", is_raw_, "The same as --view raw");
    app.add_flag("--all", is_all_,
                 "paths: all that differ in the classes or attributes that they pass, with how many objects do");
    app.add_option("--sort", sort_, "types, groups: by size (default), retained or count")
        ->type_name("size|retained|count");
    app.add_option("--depth", depth_, "tree: at most N levels (8)")->type_name("N");
    add_common(app);
  }
  void add_view(CLI::App& app) {
    app.add_option(
           "--view", seen_as_,
           "What is one object: raw (default; of tree and suspects: parts), parts (with its __dict__ and other "
           "insides), module (and its classes, functions and constants), memory (libraries, stacks, buffers and free "
           "memory, too, so that all sizes are RSS together), or rules like 'app.Cache: entries, index', "
           "'app.Row: *' (all that only it keeps alive), or a file of them; may be repeated, each on top of the "
           "one before")
        ->type_name("VIEW")
        ->allow_extra_args(false);
  }
  void add_diff(CLI::App& app) {
    diff_ = &app;
    app.add_option("BEFORE", file_, "A snapshot")->required()->type_name("");
    app.add_option("AFTER", after_, "A later one")->required()->type_name("");
    app.add_option("THIRD", third_, "One later still: what came between the first two and is there in this one")
        ->type_name("");
    add_common(app);
  }
  void add_query(CLI::App& app) {
    query_ = &app;
    app.add_option("FILE", file_, "A snapshot")->required()->type_name("");
    add_view(app);
    app.add_option("SQL", statement_, "A select statement; without one, the tables are shown")->type_name("");
    add_common(app);
  }
  void add_export(CLI::App& app) {
    export_ = &app;
    app.add_option("FILE", file_, "A snapshot")->required()->type_name("");
    add_view(app);
    app.add_option("-o,--output", output_, "Where to write; - is standard output")->required()->type_name("OUT");
    app.add_option("--format", format_,
                   "heapsnapshot, perfetto or ndjson; else by the name of OUT: .heapsnapshot, .pftrace, .ndjson")
        ->type_name("FORMAT");
  }

  [[nodiscard]] Status check() {
    const std::vector<std::string_view> views{"types",  "tree",       "paths", "retained", "suspects",
                                              "groups", "duplicates", "waste", "arenas",   "rss"};
    if (std::find(views.begin(), views.end(), view_) == views.end())
      return Error{ErrorKind::kUsage, no_such("view", view_, views)};
    if (!heap::group_by(by_)) return Error{ErrorKind::kUsage, no_such("--by", by_, heap::group_names())};
    if (sort_ != "size" && sort_ != "retained" && sort_ != "count")
      return Error{ErrorKind::kUsage, no_such("--sort order", sort_, {"size", "retained", "count"})};
    // Who reads JSON has all rows, but for paths, which may be as many as there are references.
    const std::int64_t limit = limit_.value_or(view_ != "paths" ? (as_json_ ? 0 : 30) : is_all_ ? 30 : 5);
    if (limit < 0) return Error{ErrorKind::kUsage, fmt::format("--limit: {} is less than 0", limit)};
    if (depth_ < 0) return Error{ErrorKind::kUsage, fmt::format("--depth: {} is less than 0", depth_)};
    if (is_all_ && view_ != "paths") return Error{ErrorKind::kUsage, "--all is of paths: heap show FILE paths --all"};
    PLIMSOLL_TRY(check_options_of_views());
    if (view_ == "paths" && object_.empty())
      return Error{ErrorKind::kUsage, "paths to what? Add --of with a class or the address of an object"};
    if (view_ == "retained" && object_.empty())
      return Error{ErrorKind::kUsage, "retained by what? Add --of with a class, a pattern of classes, or an address"};
    options_.limit = static_cast<std::size_t>(limit);
    options_.tree.depth = static_cast<std::uint32_t>(depth_);
    options_.sort = sort_ == "retained" ? HeapSort::kRetained : sort_ == "count" ? HeapSort::kCount : HeapSort::kSize;
    return Ok{};
  }

  // What another view would leave unsaid.
  [[nodiscard]] Status check_options_of_views() const {
    constexpr std::array<std::pair<const char*, std::string_view>, 4> kViewsOf{
        {{"--of", "tree, paths, retained, groups"},
         {"--by", "groups"},
         {"--sort", "types, groups"},
         {"--depth", "tree"}}};
    for (const auto& [option, views] : kViewsOf)
      if (show_->count(option) > 0 && views.find(view_) == std::string_view::npos)
        return Error{ErrorKind::kUsage, fmt::format("{}: not for the view {}, but for {}", option, view_, views)};
    return Ok{};
  }

  Result<int> run_take(Console& console) {
    if (take_.pid != 0 && !take_.core.empty())
      return Error{ErrorKind::kUsage, "a process, or a core file? Leave one of them out"};
    if (take_.pid == 0 && take_.core.empty())
      return Error{
          ErrorKind::kUsage,
          "what of? plimsoll heap PID -o FILE takes a snapshot of a process; show, diff, query and export read "
          "one (plimsoll heap --help)"};
    if (take_.output.empty()) return Error{ErrorKind::kUsage, "where to? Add -o FILE"};
    take_.values = with_values_ ? heap::ImageValues::kShown : heap::ImageValues::kRedacted;
    for (const std::string& words : rules_) {
      const Result<std::vector<heap::TypeRule>> rules = heap::parse_rules(rule_words(words));
      if (!rules.ok()) return rules.error();
      take_.rules.insert(take_.rules.end(), rules.value().begin(), rules.value().end());
    }
    return take_heap(console, take_);
  }

  // What it is to be seen through, if nothing is said.
  [[nodiscard]] Result<std::vector<std::string>> views() const {
    if (is_raw_ && !seen_as_.empty()) return Error{ErrorKind::kUsage, "--raw is --view raw: leave one of them out"};
    std::vector<std::string> views = seen_as_;
    const bool is_of_parts = view_ == "suspects" || view_ == "tree";
    if (is_of_parts && !is_raw_ && show_->parsed()) views.insert(views.begin(), "parts");
    return views;
  }
  [[nodiscard]] Result<heap::Snapshot> read_view(Console& console) const {
    const Result<std::vector<std::string>> through = views();
    if (!through.ok()) return through.error();
    return read_heap(console, file_, through.value());
  }

  Result<int> run_show(Console& console, const Page& page) {
    const Result<heap::Snapshot> snapshot = read_view(console);
    if (!snapshot.ok()) return snapshot.error();
    if (snapshot.value().object_count == 0) {
      console.notice(file_ + (snapshot.value().complete ? " holds no objects" : " ends early: it holds no objects"));
      return kNoSamples;
    }
    const bool says_so = !as_json_ && (view_ == "types" || view_ == "tree" || view_ == "suspects");
    if (!says_so) notice_if_incomplete(console, snapshot.value(), file_);
    if (view_ == "duplicates" || view_ == "waste" || view_ == "arenas" || view_ == "rss")
      return show_memory(console, snapshot.value(), page);
    const heap::Dominance dominance = heap::dominance(snapshot.value());
    const HeapView view{snapshot.value(), dominance};
    const bool is_of_one = view_ == "tree" || view_ == "paths";
    const Result<std::string> text = is_of_one ? text_of_one(view, page) : text_of_all(view, page);
    if (!text.ok()) return text.error();
    PLIMSOLL_TRY(console.print(text.value()));
    return kFine;
  }

  // What tells of all objects, or of those of some classes.
  [[nodiscard]] Result<std::string> text_of_all(const HeapView& view, const Page& page) const {
    if (view_ == "types") return as_json_ ? heap_types_json(view, options_) : render_heap_types(view, options_, page);
    if (view_ == "suspects") {
      constexpr double kTenth = 0.1;
      const auto found = heap::suspects(view.snapshot, view.dominance, kTenth);
      return as_json_ ? heap_suspects_json(view, found) : render_heap_suspects(view, found, page);
    }
    const heap::NodeSet chosen = chosen_objects(view);
    if (chosen.count() == 0) return Error{ErrorKind::kUsage, no_object()};
    if (view_ == "groups") {
      const heap::GroupBy by = *heap::group_by(by_);
      return as_json_ ? heap_groups_json(view, by, chosen, options_)
                      : render_heap_groups(view, by, chosen, options_, page);
    }
    return as_json_ ? heap_retained_json(view, chosen, object_, options_)
                    : render_heap_retained(view, chosen, object_, options_, page);
  }
  // The tree below a node, or the paths to it.
  [[nodiscard]] Result<std::string> text_of_one(const HeapView& view, const Page& page) {
    heap::Node node = view.snapshot.root();
    if (!object_.empty()) {
      const auto found = heap::find_object(view.snapshot, view.dominance, object_);
      if (!found) return Error{ErrorKind::kUsage, no_object()};
      node = *found;
    }
    options_.tree.least_retained = 1 + view.dominance.retained[node] / 1000;
    if (view_ == "paths" && is_all_)
      return as_json_ ? heap_patterns_json(view, node, options_) : render_heap_patterns(view, node, options_, page);
    if (view_ == "paths")
      return as_json_ ? heap_paths_json(view, node, options_) : render_heap_paths(view, node, options_, page);
    return as_json_ ? heap_tree_json(view, node, options_) : render_heap_tree(view, node, options_, page);
  }

  Result<int> show_memory(Console& console, const heap::Snapshot& snapshot, const Page& page) {
    if (as_json_) {
      const Result<std::string> text = heap_table_json(snapshot, view_, view_, options_.limit);
      if (!text.ok()) return text.error();
      PLIMSOLL_TRY(console.print(text.value()));
      return kFine;
    }
    PLIMSOLL_TRY(console.print(view_ == "duplicates" ? render_heap_duplicates(snapshot, options_, page)
                               : view_ == "waste"    ? render_heap_waste(snapshot, options_, page)
                               : view_ == "arenas"   ? render_heap_arenas(snapshot, options_, page)
                                                     : render_heap_rss(snapshot, page)));
    return kFine;
  }

  // All that --of means: one object, or all of some classes; without it all.
  [[nodiscard]] heap::NodeSet chosen_objects(const HeapView& view) const {
    if (object_.empty()) return heap::all_objects(view.snapshot);
    if (!object_.starts_with("0x")) return heap::objects_of(view.snapshot, object_);
    heap::NodeSet one(view.snapshot.object_count);
    if (const auto found = heap::find_object(view.snapshot, view.dominance, object_)) one.insert(*found);
    return one;
  }
  [[nodiscard]] std::string no_object() const {
    if (object_.starts_with("0x")) return fmt::format("there is no object at {} in {}", object_, file_);
    return fmt::format("there is no object of class \"{}\" in {} (plimsoll heap show {} lists the classes)", object_,
                       file_, file_);
  }

  Result<int> run_diff(Console& console, const Page& page) {
    const Result<heap::Snapshot> before = read_heap(file_);
    if (!before.ok()) return before.error();
    const Result<heap::Snapshot> after = read_heap(after_);
    if (!after.ok()) return after.error();
    notice_if_incomplete(console, before.value(), file_);
    notice_if_incomplete(console, after.value(), after_);
    if (!third_.empty()) return run_survivors(console, page, before.value(), after.value());
    PLIMSOLL_TRY(console.print(as_json_ ? heap_changes_json(before.value(), after.value(), options_)
                                        : render_heap_changes(before.value(), after.value(), options_, page)));
    return kFine;
  }

  Result<int> run_survivors(Console& console, const Page& page, const heap::Snapshot& first,
                            const heap::Snapshot& second) {
    const Result<heap::Snapshot> third = read_heap(third_);
    if (!third.ok()) return third.error();
    notice_if_incomplete(console, third.value(), third_);
    for (const heap::Snapshot* one : {&first, &second})
      if (!heap::are_of_one_process(*one, third.value()))
        return Error{ErrorKind::kBadInput, fmt::format("{}: no object can be followed from one to the next",
                                                       heap::why_not_of_one_process(*one, third.value()))};
    const heap::Dominance dominance = heap::dominance(third.value());
    const HeapView view{third.value(), dominance};
    const auto rows = heap::types(third.value(), dominance, heap::survivors(first, second, third.value()));
    PLIMSOLL_TRY(console.print(as_json_ ? heap_survivors_json(view, rows, options_)
                                        : render_heap_survivors(view, rows, options_, page)));
    return kFine;
  }

  Result<int> run_query(Console& console, const Page& page) {
    const Result<heap::Snapshot> snapshot = read_view(console);
    if (!snapshot.ok()) return snapshot.error();
    notice_if_incomplete(console, snapshot.value(), file_);
    const auto database = sql::HeapDatabase::open(snapshot.value());
    if (!database.ok()) return database.error();
    if (statement_.empty()) {
      PLIMSOLL_TRY(console.print(database.value()->schema()));
      return kFine;
    }
    const std::size_t most = options_.limit == 0 ? SIZE_MAX : options_.limit;
    const Result<sql::Answer> answer = database.value()->ask(statement_, most);
    if (!answer.ok()) return answer.error();
    PLIMSOLL_TRY(console.print(as_json_ ? answer_json(answer.value()) : render_answer(answer.value(), page)));
    return kFine;
  }

  CLI::App *show_ = nullptr, *diff_ = nullptr, *export_ = nullptr, *query_ = nullptr;
  HeapTake take_;
  std::string file_, after_, third_, statement_, output_, object_, view_ = "types", sort_ = "size", color_ = "auto",
                                                                   by_ = "place", format_;
  HeapOptions options_;
  std::vector<std::string> seen_as_, rules_;
  std::optional<std::int64_t> limit_;
  std::int64_t depth_ = 8;
  bool as_json_ = false, is_raw_ = false, is_all_ = false, with_values_ = false;
};

}  // namespace

std::unique_ptr<Command> make_heap() { return std::make_unique<Heap>(); }

}  // namespace plimsoll::cli
