// cli/json_output.cc: reports -> JSON.
#include "cli/json_output.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "cli/json_document.h"
#include "cli/place.h"
#include "formats/json.h"
#include "formats/labels.h"

namespace plimsoll::cli {
namespace {

using formats::JsonWriter;
using profile::Profile;

std::int64_t as_integer(std::uint64_t count) { return static_cast<std::int64_t>(count); }

// A decimal fraction with six places, which is what the writer has for milliseconds.
void put_decimal(JsonWriter& json, std::string_view name, double value) {
  json.key(name);
  json.milliseconds(std::llround(std::clamp(value, -1e12, 1e12) * 1e6));
}
void put_boolean(JsonWriter& json, std::string_view name, bool value) {
  json.key(name);
  json.boolean(value);
}

void put_function(JsonWriter& json, const Profile& profile, FunctionId id) {
  if (id.is_none()) {
    json.member("function", formats::kNoStack);
    json.member("kind", "synthetic");
    return;
  }
  const profile::Function& function = profile.functions[id];
  json.member("function", profile.strings[function.name]);
  if (!function.file.is_none()) json.member("file", profile.strings[function.file]);
  if (function.first_line != 0) json.member("first_line", std::int64_t{function.first_line});
  json.member("kind", profile::function_kind_name(function.kind));
}

void put_weights(JsonWriter& json, std::int64_t self_ns, std::int64_t total_ns, std::uint64_t self_samples,
                 std::uint64_t samples) {
  json.member("self_ns", self_ns);
  json.member("total_ns", total_ns);
  json.member("self_samples", as_integer(self_samples));
  json.member("samples", as_integer(samples));
}

void put_activities(JsonWriter& json, const std::array<std::int64_t, kActivityCount>& by_activity) {
  json.key("activities");
  json.begin_object();
  for (std::size_t i = 0; i < kActivityCount; ++i)
    if (by_activity[i] != 0) json.member(kActivityNames[i], by_activity[i]);
  json.end_object();
}

void put_drops(JsonWriter& json, const Profile& profile) {
  json.column("drops", profile.drops, [&](const profile::Drop& drop) {
    json.begin_object();
    json.member("reason", drop.reason);
    json.member("samples", as_integer(drop.count));
    json.member("cpu_ns", drop.cpu_ns);
    json.end_object();
  });
}

void put_meta(JsonWriter& json, const Profile& profile) {
  json.key("meta");
  json.begin_object();
  for (const auto& [name, value] : profile.meta) {
    json.text_key(name);
    json.text(value);
  }
  json.end_object();
}

// Of `selection`, what it says of the whole session.
void put_session(JsonWriter& json, const Profile& profile, const Selection& selection) {
  json.key("session");
  json.begin_object();
  put_meta(json, profile);
  json.member("start_realtime_ns", profile.start_realtime_ns);
  json.member("elapsed_ns", profile.end_ns);
  put_boolean(json, "complete", profile.complete);
  json.member("process_cpu_ns", profile.process_cpu_ns);
  json.member("sampled_ns", selection.session_ns);
  json.member("sampled_cpu_ns", selection.session_cpu_ns);
  json.member("samples", as_integer(selection.session_samples));
  put_drops(json, profile);
  json.end_object();
}

void put_selection(JsonWriter& json, const Selection& selection) {
  const profile::Filter& conditions = selection.conditions;
  json.key("shown");
  json.begin_object();
  json.member("time_ns", selection.shown_ns);
  json.member("samples", as_integer(selection.shown_samples));
  if (!conditions.thread.empty()) json.member("thread", conditions.thread);
  if (!conditions.function.empty()) json.member("function", conditions.function);
  if (!conditions.file.empty()) json.member("file", conditions.file);
  if (!conditions.activities.empty())
    json.column("activities", conditions.activities, [&](Activity activity) { json.text(text(activity)); });
  if (!conditions.tags.empty())
    json.column("tags", conditions.tags,
                [&](const profile::TagCondition& tag) { json.text(tag.name + "=" + tag.pattern); });
  if (conditions.from_ns > 0) json.member("from_ns", conditions.from_ns);
  if (conditions.to_ns != std::numeric_limits<std::int64_t>::max()) json.member("to_ns", conditions.to_ns);
  json.end_object();
}

// {"schema":1,"view":...,"session":...,"shown":...,"<view>":[...]}
template <typename WriteRows>
std::string document(const Profile& profile, const Selection& selection, std::string_view view, WriteRows write_rows) {
  std::string out;
  JsonWriter json(out);
  begin_document(json);
  json.member("view", view);
  put_session(json, profile, selection);
  put_selection(json, selection);
  json.key(view);
  json.begin_array();
  write_rows(json);
  json.end_array();
  json.end_object();
  return out + "\n";
}

// A node of the tree that is due, and the number of its parent's row; -1 = it has none.
struct DueNode {
  std::size_t node;
  std::int64_t parent;
  std::size_t depth;
};

// Rows refer to their parent by number, and are not nested: a recursion of some thousand calls would be more than a
// reader of JSON takes.
void put_tree(JsonWriter& json, const Profile& profile, const profile::Tree& tree, const TreeOptions& options) {
  const double threshold = options.min_percent / 100 * static_cast<double>(tree.nodes[0].total_ns);
  std::int64_t row = 0;
  std::vector<DueNode> due;
  const auto push_callees = [&](std::size_t node, std::int64_t parent, std::size_t depth) {
    if (depth >= options.depth) return;
    const std::vector<std::size_t>& callees = tree.nodes[node].children;
    for (auto callee = callees.rbegin(); callee != callees.rend(); ++callee) {
      const profile::TreeNode& candidate = tree.nodes[*callee];
      if (candidate.samples > 0 && static_cast<double>(candidate.total_ns) >= threshold)
        due.push_back({*callee, parent, depth});
    }
  };
  const auto put_row = [&](const profile::TreeNode& node, std::int64_t parent, std::int64_t total_ns,
                           std::uint64_t samples) {
    json.begin_object();
    json.key("parent");
    parent < 0 ? json.null() : json.integer(parent);
    put_function(json, profile, node.function);
    if (node.line != 0) json.member("line", std::int64_t{node.line});
    put_weights(json, node.self_ns, total_ns, node.self_samples, samples);
    json.end_object();
    ++row;
  };
  const profile::TreeNode& root = tree.nodes[0];
  if (root.self_samples > 0) put_row(root, -1, root.self_ns, root.self_samples);
  push_callees(0, -1, 0);
  while (!due.empty()) {
    const DueNode next = due.back();
    due.pop_back();
    const profile::TreeNode& node = tree.nodes[next.node];
    const std::int64_t own_row = row;
    put_row(node, next.parent, node.total_ns, node.samples);
    push_callees(next.node, own_row, next.depth + 1);
  }
}

void put_markers(JsonWriter& json, const SessionFacts& facts) {
  json.column("markers", facts.markers, [&](const MarkerSum& marker) {
    json.begin_object();
    json.member("name", marker.name);
    json.member("count", as_integer(marker.count));
    json.member("total_ns", marker.total_ns);
    json.member("longest_ns", marker.longest_ns);
    json.end_object();
  });
}

void put_counters(JsonWriter& json, const Profile& profile, const SessionFacts& facts) {
  json.column("counters", facts.counters, [&](const CounterSum& counter) {
    json.begin_object();
    json.member("name", counter.name);
    json.member("unit", counter.unit);
    if (!counter.process.is_none()) json.member("pid", profile.processes[counter.process.index()].pid);
    json.member("points", as_integer(counter.points));
    json.member("least", counter.least);
    json.member("most", counter.most);
    json.member("last", counter.last);
    json.end_object();
  });
}

void put_sizes(JsonWriter& json, const Profile& profile) {
  json.key("tables");
  json.begin_object();
  const std::pair<std::string_view, std::size_t> sizes[] = {
      {"strings", profile.strings.size()}, {"functions", profile.functions.size()}, {"frames", profile.frames.size()},
      {"stacks", profile.stacks.size()},   {"processes", profile.processes.size()}, {"threads", profile.threads.size()},
      {"sources", profile.sources.size()}};
  for (const auto& [name, size] : sizes) json.member(name, as_integer(size));
  json.end_object();
}

}  // namespace

std::string tree_json(const Profile& profile, const Selection& selection, const profile::Tree& tree,
                      const TreeOptions& options) {
  return document(profile, selection, "tree", [&](JsonWriter& json) { put_tree(json, profile, tree, options); });
}

std::string flat_json(const Profile& profile, const Selection& selection, const std::vector<profile::FlatRow>& rows) {
  return document(profile, selection, "flat", [&](JsonWriter& json) {
    for (const profile::FlatRow& row : rows) {
      json.begin_object();
      put_function(json, profile, row.function);
      put_weights(json, row.self_ns, row.total_ns, row.self_samples, row.total_samples);
      json.end_object();
    }
  });
}

std::string lines_json(const Profile& profile, const Selection& selection, const LineReport& report) {
  return document(profile, selection, "lines", [&](JsonWriter& json) {
    for (const FileReport& file : report.files) {
      for (const LineWeight& line : file.lines) {
        if (!line.is_asked_for) continue;
        json.begin_object();
        json.member("file", profile.strings[file.file]);
        json.member("line", std::int64_t{line.line});
        json.member("function", profile.strings[profile.functions[line.function].name]);
        put_weights(json, line.self_ns, line.total_ns, line.self_samples, line.total_samples);
        json.end_object();
      }
    }
  });
}

std::string threads_json(const Profile& profile, const Selection& selection, const std::vector<ThreadRow>& rows) {
  return document(profile, selection, "threads", [&](JsonWriter& json) {
    for (const ThreadRow& row : rows) {
      const profile::Thread& thread = profile.threads[row.thread.index()];
      json.begin_object();
      json.member("thread", thread.name);
      json.member("tid", thread.os_tid);
      if (!thread.process.is_none()) json.member("pid", profile.processes[thread.process.index()].pid);
      put_boolean(json, "is_main", thread.is_main);
      json.member("cpu_ns", thread.cpu_ns);
      json.member("sampled_ns", row.sampled_ns);
      put_activities(json, row.by_activity);
      json.member("samples", as_integer(row.samples));
      json.member("first_ns", row.first_ns);
      json.member("last_ns", row.last_ns);
      json.end_object();
    }
  });
}

std::string tags_json(const Profile& profile, const Selection& selection, const std::vector<TagRow>& rows) {
  return document(profile, selection, "tags", [&](JsonWriter& json) {
    for (const TagRow& row : rows) {
      json.begin_object();
      if (!row.tag.name.is_none()) {
        json.member("tag", profile.strings[row.tag.name]);
        json.member("value", profile.strings[row.tag.value]);
      }
      json.member("sampled_ns", row.sampled_ns);
      put_activities(json, row.by_activity);
      json.member("samples", as_integer(row.samples));
      json.end_object();
    }
  });
}

std::string info_json(const Profile& profile, const SessionFacts& facts, std::string_view path) {
  std::string out;
  JsonWriter json(out);
  begin_document(json);
  json.member("path", path);
  put_session(json, profile, whole_session(profile));
  put_decimal(json, "covered_percent", facts.covered_percent);
  put_decimal(json, "delivered_hz", facts.delivered_hz);
  json.member("child_cpu_ns", facts.child_cpu_ns);
  put_markers(json, facts);
  put_counters(json, profile, facts);
  put_sizes(json, profile);
  json.member("file_bytes", as_integer(facts.file_bytes));
  put_decimal(json, "bytes_per_sample", facts.bytes_per_sample);
  json.end_object();
  return out + "\n";
}

}  // namespace plimsoll::cli
