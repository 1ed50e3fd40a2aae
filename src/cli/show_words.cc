// cli/show_words.cc: names, and a table of options and views.
#include "cli/show_words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "cli/output_path.h"
#include "cli/suggest.h"
#include "cli/units.h"
#include "profile/memory.h"

namespace plimsoll::cli {
namespace {

using Views = std::vector<std::string_view>;

const std::vector<std::string_view>& view_names() {
  static const std::vector<std::string_view> names = {"tree", "flat", "lines", "threads",   "tags",  "alloc",
                                                      "live", "peak", "leaks", "temporary", "types", "memory"};
  return names;
}

Error wrong_word(std::string message) { return {ErrorKind::kUsage, std::move(message)}; }

bool is_view(std::string_view word) {
  return std::find(view_names().begin(), view_names().end(), word) != view_names().end();
}

// The views of an option. Those of memory are trees, or with --flat and --types tables.
struct OptionViews {
  std::string_view name;
  Views views;
  Views trees_of_memory = {}, tables_of_memory = {};
};

std::vector<OptionViews> views_of_options() {
  const Views shapely = {"alloc", "live", "peak", "leaks", "temporary"};
  const Views of_time = {"tree", "flat", "lines", "threads", "tags"};
  return {
      {"--activity", of_time},
      {"--depth", {"tree"}, shapely},
      {"--lines", {"tree"}, shapely},
      {"--callers", {"tree"}, shapely},
      {"--no-fold", {"tree"}, shapely},
      {"--min-percent", {"tree", "flat", "lines"}, shapely},
      {"--sort", {"flat"}},
      {"--context", {"lines"}},
      {"--limit", {"flat", "lines", "tags", "types", "memory"}, {}, shapely},
      {"--flat", {}, shapely, shapely},
      {"--types", {}, shapely, shapely},
      {"--domain", {"types", "memory"}, shapely, shapely},
  };
}

bool has(const Views& views, std::string_view view) {
  return std::find(views.begin(), views.end(), view) != views.end();
}

Status refuse(const OptionViews& option, std::string_view view) {
  const bool of_trees = has(option.trees_of_memory, view), of_tables = has(option.tables_of_memory, view);
  Error error{ErrorKind::kUsage, fmt::format("{}: not for the view {}", option.name, view)};
  if (of_trees || of_tables) {  // only not in this shape
    error.message += of_trees ? " with --flat or --types" : " without --flat or --types";
    return error;
  }
  Views all = option.views;
  const Views& of_memory = option.trees_of_memory.empty() ? option.tables_of_memory : option.trees_of_memory;
  all.insert(all.end(), of_memory.begin(), of_memory.end());
  error.message += fmt::format(", but for {}", fmt::join(all, ", "));
  return error;
}

}  // namespace

Status check_view(std::string_view view, const std::string& path) {
  if (is_view(view)) return Ok{};
  if (is_view(path))
    return wrong_word(fmt::format("the file comes first: plimsoll show {} {}", shell_word(std::string(view)), path));
  return wrong_word(no_such("view", view, view_names()));
}

Status check_sort(std::string_view word) {
  if (word.empty() || word == "self" || word == "total") return Ok{};
  return wrong_word(no_such("--sort order", word, {"self", "total"}));
}

Status read_times(const std::string& from, const std::string& to, profile::Filter& conditions) {
  if (!from.empty()) {
    const Result<std::int64_t> from_ns = parse_time(from, "--from");
    if (!from_ns.ok()) return from_ns.error();
    conditions.from_ns = from_ns.value();
  }
  if (!to.empty()) {
    const Result<std::int64_t> to_ns = parse_time(to, "--to");
    if (!to_ns.ok()) return to_ns.error();
    conditions.to_ns = to_ns.value();
  }
  if (conditions.from_ns >= conditions.to_ns)
    return wrong_word(fmt::format("--from {} is not before --to {}: no time is left", from.empty() ? "0" : from, to));
  return Ok{};
}

Status read_activities(const std::vector<std::string>& names, profile::Filter& conditions) {
  for (const std::string& name : names) {
    if (name == "waiting") {
      for (std::size_t i = 1; i < kActivityCount; ++i) conditions.activities.push_back(static_cast<Activity>(i));
      continue;
    }
    const std::optional<Activity> activity = activity_named(name);
    if (!activity) {
      std::vector<std::string_view> known(kActivityNames.begin(), kActivityNames.end());
      known.emplace_back("waiting");
      return wrong_word(no_such("activity", name, known));
    }
    conditions.activities.push_back(*activity);
  }
  return Ok{};
}

Status read_domains(const std::vector<std::string>& names, profile::Filter& conditions) {
  for (const std::string& name : names) {
    if (name == "python" || name == "native") {
      for (std::uint8_t domain = 0; std::string_view(profile::domain_name(domain)) != "?"; ++domain)
        if (profile::is_pythons(domain) == (name == "python")) conditions.domains.push_back(domain);
      continue;
    }
    const std::optional<std::uint8_t> domain = profile::domain_named(name);
    if (!domain)
      return wrong_word(no_such("allocator", name, {"object", "memory", "raw", "malloc", "mmap", "python", "native"}));
    conditions.domains.push_back(*domain);
  }
  return Ok{};
}

Status check_view_options(std::string_view view, ViewShape shape, const std::vector<ViewOption>& options) {
  for (const OptionViews& known : views_of_options()) {
    const auto is_it = [&](const ViewOption& option) { return option.name == known.name && option.is_given; };
    if (std::none_of(options.begin(), options.end(), is_it) || has(known.views, view)) continue;
    if (!has(shape == ViewShape::kTree ? known.trees_of_memory : known.tables_of_memory, view))
      return refuse(known, view);
  }
  return Ok{};
}

}  // namespace plimsoll::cli
