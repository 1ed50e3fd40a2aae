// formats/flamegraph/writer.cc: trees, cut to what can be seen, as columns of JSON within a page.
#include "formats/flamegraph/writer.h"

#include <algorithm>
#include <cmath>
#include <queue>
#include <vector>

#include "formats/flamegraph/page.h"
#include "formats/json.h"
#include "formats/labels.h"
#include "profile/flat.h"
#include "profile/memory.h"
#include "profile/time_kind.h"
#include "profile/tree.h"

namespace plimsoll::formats::flamegraph {
namespace {

using profile::MemoryReport;
using profile::MemoryView;
using profile::Profile;
using profile::Tree;
using profile::TreeNode;

constexpr std::int64_t kRoot = -1, kSmall = -2;  // in the place of functions

// A row of a view's table.
struct Row {
  FunctionId function;
  std::int64_t self = 0, total = 0;
};

// What is shown at a time.
struct View {
  std::string_view name;
  std::string_view unit;
  std::string about;
  Tree tree;
  std::vector<Row> flat;
};

// Which nodes are among the heaviest. A caller weighs at least what its callees do, so they hang together.
std::vector<bool> heaviest(const Tree& tree, std::size_t most) {
  std::vector<bool> is_kept(tree.nodes.size());
  const auto lighter = [&](std::size_t a, std::size_t b) {
    const std::int64_t left = tree.nodes[a].total_ns, right = tree.nodes[b].total_ns;
    return left != right ? left < right : a > b;
  };
  std::priority_queue<std::size_t, std::vector<std::size_t>, decltype(lighter)> next(lighter);
  next.push(0);
  for (; most > 0 && !next.empty(); --most) {
    const std::size_t node = next.top();
    next.pop();
    is_kept[node] = true;
    for (const std::size_t child : tree.nodes[node].children) next.push(child);
  }
  return is_kept;
}

// A row of the columns that a tree becomes.
struct ShownNode {
  std::int64_t depth = 0;
  std::int64_t function = 0;  // or kRoot, kSmall
  std::int64_t total = 0, self = 0;
  std::uint64_t count = 0;
};

ShownNode shown(const TreeNode& node, std::int64_t depth) {
  const std::int64_t function = node.function.is_none() ? kRoot : std::int64_t{node.function.index()};
  return {depth, function, node.total_ns, node.self_ns, node.samples};
}

// Those of a node's callees that are not kept, as one.
ShownNode small_callees(const Tree& tree, const TreeNode& node, const std::vector<bool>& is_kept, std::int64_t depth) {
  ShownNode small{depth, kSmall, 0, 0, 0};
  for (const std::size_t child : node.children) {
    if (is_kept[child]) continue;
    small.total += tree.nodes[child].total_ns;
    small.count += tree.nodes[child].samples;
  }
  small.self = small.total;
  return small;
}

std::vector<ShownNode> shown_nodes(const Tree& tree, std::size_t most) {
  const std::vector<bool> is_kept = heaviest(tree, most);
  struct Open {
    const TreeNode* node;  // null: what is shown has no callees
    ShownNode shown;
  };
  std::vector<Open> open = {{tree.nodes.data(), shown(tree.nodes[0], 0)}};  // the next one last
  std::vector<ShownNode> all;
  while (!open.empty()) {
    const Open next = open.back();
    open.pop_back();
    all.push_back(next.shown);
    if (next.node == nullptr) continue;
    const std::int64_t depth = next.shown.depth + 1;
    if (const ShownNode small = small_callees(tree, *next.node, is_kept, depth); small.total > 0)
      open.push_back({nullptr, small});
    for (auto child = next.node->children.rbegin(); child != next.node->children.rend(); ++child)
      if (is_kept[*child]) open.push_back({&tree.nodes[*child], shown(tree.nodes[*child], depth)});
  }
  return all;
}

View view_of_time(const Profile& profile) {
  // (What threads waited for is on their stacks: formats/registry.cc.)
  const std::string_view name = profile.has_waits()             ? "Wall-clock time"
                                : profile::is_cpu_time(profile) ? "CPU time"
                                                                : "Time";
  View view{name,
            "ns",
            std::to_string(profile.samples.size()) + (profile.samples.size() == 1 ? " sample" : " samples"),
            profile::tree(profile, profile::Granularity::kFunction),
            {}};
  for (const profile::FlatRow& row : profile::flat(profile))
    view.flat.push_back({row.function, row.self_ns, row.total_ns});
  return view;
}

// What an exact recording has.
std::string about_exact(const Profile& profile) {
  if (!profile.complete) return "every allocation, but for the last moments: the recording was cut short, or goes on";
  const std::uint64_t lost = profile::lost_allocations(profile);
  return lost == 0 ? "every allocation" : "every allocation, but for " + std::to_string(lost) + " that were lost";
}

View view_of_memory(const Profile& profile, std::string_view name, MemoryView of) {
  const MemoryReport report = profile::memory_report(profile, of);
  const auto weight_of = [](const profile::MemoryEstimate& estimate) {
    return profile::StackWeight{std::llround(estimate.bytes), estimate.samples};
  };
  profile::StackWeights weights{{}, weight_of(report.no_stack)};
  for (const profile::MemoryEstimate& estimate : report.stack) weights.by_stack.push_back(weight_of(estimate));
  View view{name, "bytes", about_exact(profile), profile::tree(profile, profile::Granularity::kFunction, weights), {}};
  if (!profile.is_exact) {
    const profile::Interval interval = report.all.interval();
    const double part = report.all.bytes > 0 ? 100 * (interval.high - interval.low) / 2 / report.all.bytes : 100;
    view.about = "estimated from " + std::to_string(report.all.samples) + " samples, the sum to within " +
                 std::to_string(std::llround(std::ceil(part))) + " %";
  }
  for (const profile::MemoryRow& row : report.flat)
    view.flat.push_back({row.function, std::llround(row.self.bytes), std::llround(row.total.bytes)});
  return view;
}

std::vector<View> views_of(const Profile& profile) {
  std::vector<View> views;
  if (profile.samples.size() > 0) views.push_back(view_of_time(profile));
  if (!profile.has_allocations()) return views;
  views.push_back(view_of_memory(profile, "Allocated", MemoryView::kAllocated));
  views.push_back(view_of_memory(profile, "Alive at the end", MemoryView::kLive));
  if (profile::check_question(profile, MemoryView::kPeak).ok())
    views.push_back(view_of_memory(profile, "Alive at the peak", MemoryView::kPeak));
  return views;
}

// Functions are numbered as they are met: of a large program most are in no view.
class Functions {
 public:
  explicit Functions(const Profile& profile) : profile_(profile), number_(profile.functions.size(), kNone) {}

  std::int64_t number(std::int64_t function) {
    if (function < 0) return function;
    std::int64_t& number = number_[static_cast<std::size_t>(function)];
    if (number == kNone) {
      number = static_cast<std::int64_t>(met_.size());
      met_.push_back(FunctionId{static_cast<std::size_t>(function)});
    }
    return number;
  }
  void write(JsonWriter& json) const {
    json.column("functions", met_, [&](FunctionId id) {
      const profile::Function& function = profile_.functions[id];
      const std::string_view name = profile_.strings[function.name];
      json.begin_array();
      json.text(name.empty() ? "?" : name);
      json.text(function.file.is_none() ? std::string_view{} : profile_.strings[function.file]);
      json.integer(function.first_line);
      json.text(function_kind_name(function.kind));
      json.end_array();
    });
  }

 private:
  static constexpr std::int64_t kNone = -1;
  const Profile& profile_;
  std::vector<std::int64_t> number_;
  std::vector<FunctionId> met_;
};

// Of rows by own weight those that are among the first by either number.
std::vector<Row> heaviest_rows(std::vector<Row> rows) {
  const auto by_total = [](const Row& a, const Row& b) { return a.total > b.total; };
  if (rows.size() <= kMostFunctions) return rows;
  const auto middle = rows.begin() + std::ptrdiff_t{kMostFunctions};
  std::stable_sort(middle, rows.end(), by_total);
  rows.resize(std::min(rows.size(), 2 * kMostFunctions));
  return rows;
}

void write_view(JsonWriter& json, const View& view, std::size_t most_nodes, Functions& functions) {
  const std::vector<ShownNode> nodes = shown_nodes(view.tree, most_nodes);
  const auto column = [&](std::string_view name, auto value_of) {
    json.column(name, nodes, [&](const ShownNode& node) { json.integer(value_of(node)); });
  };
  json.begin_object();
  json.member("name", view.name);
  json.member("unit", view.unit);
  json.member("about", view.about);
  column("depth", [](const ShownNode& node) { return node.depth; });
  column("function", [&](const ShownNode& node) { return functions.number(node.function); });
  column("total", [](const ShownNode& node) { return node.total; });
  column("self", [](const ShownNode& node) { return node.self; });
  column("count", [](const ShownNode& node) { return static_cast<std::int64_t>(node.count); });
  json.column("flat", heaviest_rows(view.flat), [&](const Row& row) {
    json.begin_array();
    json.integer(functions.number(std::int64_t{row.function.index()}));
    json.integer(row.self);
    json.integer(row.total);
    json.end_array();
  });
  json.end_object();
}

std::vector<std::string> facts_of(const Profile& profile) {
  std::vector<std::string> facts;
  if (const std::string_view python = profile.meta_value("python"); !python.empty())
    facts.push_back("Python " + valid_utf8(python));
  if (const std::string_view rate = profile.meta_value("rate_hz"); !rate.empty())
    facts.push_back(valid_utf8(rate) + " Hz");
  if (!profile.complete) facts.emplace_back("the recording did not come to its end");
  return facts;
}

// In the place of `mark`, which the page has once.
void put(std::string& page, std::string_view mark, std::string_view text) {
  page.replace(page.find(mark), mark.size(), text);
}

}  // namespace

std::string profile_json(const Profile& profile, std::size_t most_nodes) {
  std::string out;
  JsonWriter json(out);
  Functions functions(profile);
  json.begin_object();
  json.member("title", profile_title(profile));
  json.column("facts", facts_of(profile), [&](const std::string& fact) { json.text(fact); });
  json.member("started_ns", profile.start_realtime_ns);
  json.column("views", views_of(profile), [&](const View& view) { write_view(json, view, most_nodes, functions); });
  functions.write(json);
  json.end_object();
  return out;
}

std::string write(const Profile& profile) {
  // Names are whatever a program calls its functions: nothing of them may end the element that they stand in.
  std::string json;
  for (const char c : profile_json(profile)) {
    if (c == '<')
      json += "\\u003c";
    else
      json += c;
  }
  std::string page(kPageHtml);
  put(page, "/* page.css */", kPageCss);
  put(page, "/* page.js */", kPageJs);
  put(page, "null /* profile */", json);
  return page;
}

}  // namespace plimsoll::formats::flamegraph
