#include "cli/render_tasks.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/dumped_frame.h"
#include "cli/json_document.h"
#include "cli/task_tree.h"
#include "cli/units.h"
#include "cli/utf8.h"

namespace plimsoll::cli {
namespace {

using remote::DumpedLoop;
using remote::DumpedTask;
using remote::TaskDump;
using remote::TaskFrame;
using State = DumpedTask::State;

constexpr std::string_view kJoint = "├─ ", kLastJoint = "└─ ", kRail = "│  ", kNoRail = "   ", kIndent = "    ";

// "_asyncio.Future" -> "Future".
std::string_view without_module(std::string_view type) { return type.substr(type.rfind('.') + 1); }

// What a task does, in a word; in JSON.
std::string_view word_for(State state) {
  switch (state) {
    case State::kRunning: return "running";
    case State::kStepping: return "stepping";
    case State::kWaiting: return "waiting";
    case State::kNew: return "new";
    case State::kYielded: return "yielded";
    case State::kEnded: return "ended";
    case State::kUnknown: break;
  }
  return "unknown";
}

std::string task_name(const DumpedTask& task) { return fmt::format("[task {}]", printable(task.name)); }

class TaskRenderer {
 public:
  TaskRenderer(const TaskDump& dump, const SourceLookup& source, const Page& page)
      : dump_(dump), source_(source), page_(page) {}

  std::string render() {
    add("", Style::kStrong,
        fmt::format("{}process {}: {}", dump_.is_of_core_file ? "core file of " : "", static_cast<int>(dump_.pid),
                    printable(dump_.command)));
    add("", Style::kDim, summary());
    if (dump_.missing_bytes > 0)
      add("", Style::kWarning,
          fmt::format("the core file is cut short: {} of memory are missing",
                      format_bytes(static_cast<std::int64_t>(dump_.missing_bytes))));
    std::optional<std::size_t> loop;
    for (const TaskRow& row : draw_tasks(dump_)) {
      if (row.loop != loop) add_loop(dump_.loops[*(loop = row.loop)]);
      add_task(row, dump_.tasks[row.task]);
    }
    for (const DumpedLoop& each : dump_.loops)
      if (each.tasks == 0) add_loop(each);
    add_what_is_missing();
    return std::move(out_);
  }

 private:
  void add(const std::string& rails, Style style, const std::string& line) {
    const std::size_t left = std::min(display_width(rails), page_.width - 1);
    out_ += page_.paint(Style::kDim, rails) + page_.paint(style, cut_right(line, page_.width - left)) + "\n";
  }

  [[nodiscard]] std::string summary() const {
    const std::string python = "Python " + dump_.version.text();
    if (!dump_.has_asyncio) return python + ", no asyncio: the module _asyncio is not loaded";
    if (dump_.tasks.empty() && dump_.moved == 0 && dump_.unreadable == 0) return python + ", no asyncio tasks";
    return fmt::format("{}, {} in {}; innermost frames first", python, plural(dump_.tasks.size(), "asyncio task"),
                       plural(dump_.loops.size(), "event loop"));
  }

  void add_loop(const DumpedLoop& loop) {
    std::string line = "an event loop that does not run";
    if (loop.thread)
      line = fmt::format("event loop in thread {} \"{}\"", static_cast<int>(loop.thread->tid),
                         printable(loop.thread->name));
    if (loop.running_task)
      line += fmt::format(": runs {}", task_name(dump_.tasks[*loop.running_task]));
    else if (loop.tasks == 0)
      line += ": no tasks";
    else if (loop.thread)
      line += ": runs no task";
    out_ += "\n";
    add("", Style::kStrong, line);
  }

  [[nodiscard]] std::string state_in_words(const DumpedTask& task) const {
    switch (task.state) {
      case State::kRunning: return "running";
      case State::kStepping: return "in a step, in which it began another task";
      case State::kNew: return "not begun";
      case State::kYielded: return "yields to its event loop";
      case State::kEnded: return "ended";
      case State::kUnknown: return "its innermost frames could not be read";
      case State::kWaiting: break;
    }
    if (task.awaited_task) return "waits for " + task_name(dump_.tasks[*task.awaited_task]);
    if (task.awaited_type.empty()) return "waits";
    return fmt::format("waits for a {}", printable(without_module(task.awaited_type)));
  }

  // All who await it, but for the one that it is drawn below.
  [[nodiscard]] std::string others_in_words(const TaskRow& row, const DumpedTask& task) const {
    constexpr std::size_t kMostNamed = 5;
    const std::size_t all = task.awaited_by.size() + task.other_awaiters;
    if (all <= (row.is_root ? 0 : 1)) return "";
    std::string out = ", awaited by ";
    for (std::size_t i = 0; i < std::min(task.awaited_by.size(), kMostNamed); ++i)
      out += (i > 0 ? ", " : "") + task_name(dump_.tasks[task.awaited_by[i]]);
    const std::size_t rest = all - std::min(task.awaited_by.size(), kMostNamed);
    if (rest > 0) out += fmt::format("{}{} other{}", rest == all ? "" : " and ", rest, rest == 1 ? "" : "s");
    return out;
  }

  void add_task(const TaskRow& row, const DumpedTask& task) {
    std::string rails;
    for (const char rail : row.rails) rails += rail == '|' ? kRail : kNoRail;
    const std::string joint(row.is_root ? "" : row.has_more ? kJoint : kLastJoint);
    if (row.is_root) out_ += "\n";
    if (row.kind != TaskRow::Kind::kWhole) {
      add(rails + joint, Style::kPlain,
          task_name(task) + (row.kind == TaskRow::Kind::kCycle ? ": again: it awaits itself" : ": see above"));
      return;
    }
    const Style style = task.state == State::kRunning ? Style::kWarning : Style::kStrong;
    add(rails + joint, style,
        fmt::format("{}: {}{}", task_name(task), state_in_words(task), others_in_words(row, task)));
    if (!row.is_root) rails += row.has_more ? kRail : kNoRail;
    rails += row.has_callees ? kRail : kNoRail;
    if (task.is_truncated && !task.frames.empty()) add(rails, Style::kDim, "...");
    for (const TaskFrame& frame : task.frames) add_frame(rails, frame);
  }

  void add_frame(const std::string& rails, const TaskFrame& frame) {
    const std::string place = frame_place(frame.code->file, frame.at, dump_.directory);
    add(rails, Style::kPlain, fmt::format("{}  {}", printable(frame.code->name), place));
    const std::string_view line = without_indent(source_(frame.code->file).line(frame.at.line));
    if (!line.empty()) add(rails + std::string(kIndent), Style::kDim, std::string(line));
  }

  void add_what_is_missing() {
    const auto note = [&](const std::string& line) {
      out_ += "\n";
      add("", Style::kWarning, line);
    };
    if (dump_.moved > 0) note(plural(dump_.moved, "task") + " left out: they ran on while they were read");
    if (dump_.unreadable > 0) note(plural(dump_.unreadable, "task") + " left out: they could not be read");
    if (dump_.is_cut) note("there are more tasks: their list could not be followed to its end");
  }

  const TaskDump& dump_;
  const SourceLookup& source_;
  const Page& page_;
  std::string out_;
};

void put_frame(formats::JsonWriter& json, const TaskFrame& frame, const SourceLookup& source) {
  json.begin_object();
  put_python_frame(json, frame.code->name, frame.code->file, frame.at, source);
  json.end_object();
}

void put_task(formats::JsonWriter& json, const DumpedTask& task, const SourceLookup& source) {
  json.begin_object();
  json.member("name", task.name);
  json.member("loop", static_cast<std::int64_t>(task.loop));
  json.member("state", word_for(task.state));
  if (!task.awaited_type.empty()) json.member("awaits", task.awaited_type);
  if (task.awaited_task) json.member("awaits_task", static_cast<std::int64_t>(*task.awaited_task));
  json.column("awaited_by", task.awaited_by,
              [&](std::size_t awaiter) { json.integer(static_cast<std::int64_t>(awaiter)); });
  if (task.other_awaiters > 0) json.member("other_awaiters", static_cast<std::int64_t>(task.other_awaiters));
  json.key("truncated");
  json.boolean(task.is_truncated);
  json.column("frames", task.frames, [&](const TaskFrame& frame) { put_frame(json, frame, source); });
  json.end_object();
}

void put_loop(formats::JsonWriter& json, const DumpedLoop& loop) {
  json.begin_object();
  if (loop.thread) {
    json.member("tid", std::int64_t{static_cast<int>(loop.thread->tid)});
    json.member("thread", loop.thread->name);
  }
  if (loop.running_task) json.member("running_task", static_cast<std::int64_t>(*loop.running_task));
  json.end_object();
}

}  // namespace

std::string render_tasks(const TaskDump& dump, const SourceLookup& source, const Page& page) {
  return TaskRenderer(dump, source, page).render();
}

std::string tasks_json(const TaskDump& dump, const SourceLookup& source) {
  std::string out;
  formats::JsonWriter json(out);
  begin_document(json);
  json.member("pid", std::int64_t{static_cast<int>(dump.pid)});
  json.member("python", dump.version.text());
  json.member("command", dump.command);
  json.key("asyncio");
  json.boolean(dump.has_asyncio);
  json.column("loops", dump.loops, [&](const DumpedLoop& loop) { put_loop(json, loop); });
  json.column("tasks", dump.tasks, [&](const DumpedTask& task) { put_task(json, task, source); });
  if (dump.missing_bytes > 0) json.member("missing_bytes", static_cast<std::int64_t>(dump.missing_bytes));
  json.member("moved", static_cast<std::int64_t>(dump.moved));
  json.member("unreadable", static_cast<std::int64_t>(dump.unreadable));
  json.key("complete");
  json.boolean(!dump.is_cut && dump.moved == 0 && dump.unreadable == 0);
  json.end_object();
  return out + "\n";
}

}  // namespace plimsoll::cli
