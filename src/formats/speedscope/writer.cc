// formats/speedscope/writer.cc: frames, then the samples of each thread in order of time.
#include "formats/speedscope/writer.h"

#include <algorithm>

#include "formats/json.h"
#include "formats/labels.h"
#include "formats/thread_rows.h"

namespace plimsoll::formats::speedscope {
namespace {

// A stack with lines forgotten: a node of a prefix tree of functions.
struct FunctionNode {
  StackId parent;
  FunctionId function;
  bool operator==(const FunctionNode&) const = default;
  friend std::size_t hash_value(const FunctionNode& node) {
    return std::size_t{node.parent.index()} * 0x9e3779b97f4a7c15U + node.function.index();
  }
};

// The stacks of a profile by function. The ids are of this table, not of Profile::stacks.
class FunctionStacks {
 public:
  explicit FunctionStacks(const profile::Profile& profile) {
    // A parent's id is smaller than its children's, so one pass in id order suffices.
    by_stack_.reserve(profile.stacks.size());
    for (const profile::StackNode& node : profile.stacks.rows())
      by_stack_.push_back(nodes_.intern({of(node.parent), profile.frames[node.frame].function}));
  }

  [[nodiscard]] StackId of(StackId stack) const { return stack.is_none() ? stack : by_stack_[stack.index()]; }

  // The functions of a stack by function, outermost call first, into `out`.
  void functions_of(StackId at, std::vector<FunctionId>& out) const {
    out.clear();
    for (; !at.is_none(); at = nodes_[at].parent) out.push_back(nodes_[at].function);
    std::reverse(out.begin(), out.end());
  }

 private:
  profile::InternTable<FunctionNode, StackId> nodes_;
  std::vector<StackId> by_stack_;
};

// Adjacent samples with one stack.
struct Run {
  StackId stack;  // of FunctionStacks
  std::int64_t cpu_ns = 0;
};

// A thread that has samples.
struct ThreadProfile {
  std::string name;
  std::int64_t cpu_ns = 0;
  std::vector<Run> runs;
};

std::vector<Run> runs_of(const profile::Profile& profile, const FunctionStacks& stacks,
                         const std::vector<std::uint32_t>& rows) {
  std::vector<Run> runs;
  for (const std::uint32_t row : rows) {
    const StackId stack = stacks.of(profile.samples.stack[row]);
    if (runs.empty() || runs.back().stack != stack) runs.push_back({stack, 0});
    runs.back().cpu_ns += profile.samples.weight_ns[row];
  }
  return runs;
}

std::vector<ThreadProfile> thread_profiles(const profile::Profile& profile, const FunctionStacks& stacks) {
  const std::vector<std::vector<std::uint32_t>> rows = rows_by_thread(profile);
  const std::vector<std::string> titles = thread_titles(profile);
  std::vector<ThreadProfile> result;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].empty()) continue;
    const profile::Process& process = profile.processes[profile.threads[i].process.index()];
    const std::string prefix = profile.processes.size() > 1 ? process_title(process) + ": " : std::string{};
    result.push_back({prefix + titles[i], cpu_ns_of_rows(profile, rows[i]), runs_of(profile, stacks, rows[i])});
  }
  // Viewers need one profile to open.
  if (result.empty()) result.push_back({"no samples", 0, {}});
  return result;
}

void write_frame(JsonWriter& json, const profile::Profile& profile, const profile::Function& function) {
  const std::string_view name = profile.strings[function.name];
  json.begin_object();
  json.member("name", name.empty() ? "?" : name);
  if (!function.file.is_none()) json.member("file", profile.strings[function.file]);
  if (function.first_line != 0) json.member("line", std::int64_t{function.first_line});
  json.end_object();
}

// The frame of a function has the function's index; after the last one comes the frame of the empty stack.
void write_shared(JsonWriter& json, const profile::Profile& profile) {
  json.key("shared");
  json.begin_object();
  json.key("frames");
  json.begin_array();
  for (const profile::Function& function : profile.functions.rows()) write_frame(json, profile, function);
  if (has_empty_stack(profile)) {
    json.begin_object();
    json.member("name", kNoStack);
    json.end_object();
  }
  json.end_array();
  json.end_object();
}

void write_profile(JsonWriter& json, const FunctionStacks& stacks, const ThreadProfile& thread,
                   std::size_t no_stack_frame) {
  json.begin_object();
  json.member("type", "sampled");
  json.member("name", thread.name);
  json.member("unit", "nanoseconds");
  json.member("startValue", 0);
  json.member("endValue", thread.cpu_ns);
  std::vector<FunctionId> functions;
  json.column("samples", thread.runs, [&](const Run& run) {
    stacks.functions_of(run.stack, functions);
    json.begin_array();
    if (functions.empty()) json.integer(static_cast<std::int64_t>(no_stack_frame));
    for (const FunctionId function : functions) json.integer(function.index());
    json.end_array();
  });
  json.column("weights", thread.runs, [&](const Run& run) { json.integer(run.cpu_ns); });
  json.end_object();
}

}  // namespace

std::string write(const profile::Profile& profile) {
  const FunctionStacks stacks(profile);
  const std::vector<ThreadProfile> threads = thread_profiles(profile, stacks);
  const auto busiest = std::max_element(threads.begin(), threads.end(),
                                        [](const auto& a, const auto& b) { return a.cpu_ns < b.cpu_ns; });

  std::string out;
  JsonWriter json(out);
  json.begin_object();
  json.member("$schema", "https://www.speedscope.app/file-format-schema.json");
  json.member("exporter", kProductAtVersion);
  json.member("name", profile_title(profile));
  json.member("activeProfileIndex", busiest - threads.begin());
  write_shared(json, profile);
  const std::size_t no_stack_frame = profile.functions.size();
  json.column("profiles", threads,
              [&](const ThreadProfile& thread) { write_profile(json, stacks, thread, no_stack_frame); });
  json.end_object();
  return out;
}

}  // namespace plimsoll::formats::speedscope
