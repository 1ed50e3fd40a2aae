#include "cli/render_dump.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "cli/dumped_frame.h"
#include "cli/dumped_greenlets.h"
#include "cli/json_document.h"
#include "cli/units.h"
#include "cli/utf8.h"

namespace plimsoll::cli {
namespace {

using remote::Dump;
using remote::DumpedFrame;
using remote::DumpedGreenlet;
using remote::DumpedThread;

// What a thread does, in a word; in JSON, too.
std::string_view state_of(const DumpedThread& thread) {
  switch (thread.state) {
    case DumpedThread::State::kStopped: return "stopped";
    case DumpedThread::State::kEnded: return "ended";
    case DumpedThread::State::kUnknown: return "unknown";
    case DumpedThread::State::kGoing: break;
  }
  return text(thread.activity);
}

std::string state_in_words(const DumpedThread& thread) {
  if (thread.state != DumpedThread::State::kGoing) return std::string(state_of(thread));
  switch (thread.activity) {
    case Activity::kRunning: return "running";
    case Activity::kGil: return "waiting for the GIL";
    case Activity::kLock: return "waiting for a lock";
    case Activity::kIo: return "waiting for input or output";
    case Activity::kSleep: return "sleeping";
    default: return "waiting";
  }
}

// "signal 6 (Aborted)"
std::string signal_text(std::int32_t signal) {
  const char* words = ::strsignal(signal);
  return fmt::format("signal {} ({})", signal, words != nullptr ? words : "unknown");
}

// ": running, holds the GIL"
std::string facts_of(const DumpedThread& thread) {
  const bool is_past = thread.state == DumpedThread::State::kUnknown;
  std::string facts;
  const auto add = [&](const std::string& fact) { facts += (facts.empty() ? ": " : ", ") + fact; };
  if (!is_past) add(state_in_words(thread));
  if (thread.signal != 0) add("got " + signal_text(thread.signal));
  if (thread.holds_gil) add(is_past ? "held the GIL" : "holds the GIL");
  if (thread.interpreter > 0) add(fmt::format("interpreter {}", thread.interpreter));
  return facts;
}

std::string place_of(const DumpedFrame& frame, std::string_view directory) {
  if (frame.kind == DumpedFrame::Kind::kNative) return printable(frame.file.substr(frame.file.rfind('/') + 1));
  return frame_place(frame.file, frame.at, directory);
}

class DumpRenderer {
 public:
  DumpRenderer(const Dump& dump, const SourceLookup& source, const Page& page)
      : dump_(dump), source_(source), page_(page) {}

  std::string render() {
    const bool is_core = dump_.source == Dump::Source::kCoreFile;
    add(Style::kStrong, fmt::format("{}process {}: {}", is_core ? "core file of " : "", static_cast<int>(dump_.pid),
                                    printable(dump_.command)));
    add(Style::kDim, fmt::format("Python {}, {}{}; innermost frames first", dump_.version.text(),
                                 plural(count_of_threads(), "thread"), count_of_greenlets()));
    if (dump_.missing_bytes > 0)
      add(Style::kWarning, fmt::format("the core file is cut short: {} of memory are missing",
                                       format_bytes(static_cast<std::int64_t>(dump_.missing_bytes))));
    for (const DumpedThread& thread : dump_.threads) add_thread(thread);
    if (dump_.greenlets) add_greenlets(*dump_.greenlets);
    if (dump_.longest_stop_ns > 0) {
      out_ += "\n";
      add(Style::kDim, fmt::format("no thread was stopped for longer than {}", format_time(dump_.longest_stop_ns)));
    }
    return std::move(out_);
  }

 private:
  static constexpr std::size_t kIndent = 4;

  void add(Style style, const std::string& line, std::size_t indent = 0) {
    out_ += std::string(indent, ' ') + page_.paint(style, cut_right(line, page_.width - indent)) + "\n";
  }

  void add_thread(const DumpedThread& thread) {
    const std::string name = thread.task.name.empty() ? "" : fmt::format(" \"{}\"", printable(thread.task.name));
    out_ += "\n";
    add(Style::kStrong, fmt::format("thread {}{}{}", static_cast<int>(thread.task.tid), name, facts_of(thread)));
    if (!thread.has_python && thread.problem.empty()) add(Style::kDim, "no Python thread", kIndent);
    if (!thread.problem.empty()) add(Style::kWarning, thread.problem, kIndent);
    if (thread.has_python && thread.problem.empty() && thread.frames.empty())
      add(Style::kDim, "no Python code", kIndent);
    for (const DumpedFrame& frame : thread.frames) add_frame(frame);
    if (thread.is_truncated) add(Style::kDim, "... and more frames outside", kIndent);
    if (!thread.native_frames.empty()) add(Style::kDim, "native frames:", kIndent);
    for (const DumpedFrame& frame : thread.native_frames) add_frame(frame);
    if (!thread.native_problem.empty()) add(Style::kWarning, thread.native_problem, kIndent);
    if (!thread.locals_problem.empty()) add(Style::kWarning, thread.locals_problem, kIndent);
  }

  // One that has been in several interpreters is shown with each, and is one.
  [[nodiscard]] std::size_t count_of_threads() const {
    std::set<std::int32_t> seen;
    for (const DumpedThread& thread : dump_.threads) seen.insert(static_cast<std::int32_t>(thread.task.tid));
    return seen.size();
  }

  [[nodiscard]] std::string count_of_greenlets() const {
    if (!dump_.greenlets || dump_.greenlets->greenlets.empty()) return "";
    return ", " + plural(dump_.greenlets->greenlets.size(), "greenlet");
  }

  void add_greenlets(const remote::GreenletDump& dump) {
    for (const GreenletGroup& group : groups_of(dump)) {
      const DumpedGreenlet& first = dump.greenlets[group.members.front()];
      out_ += "\n";
      add(Style::kStrong, heading_of(group, dump));
      if (group.members.size() > 1) add(Style::kDim, names_of(group, dump), kIndent);
      if (first.state == DumpedGreenlet::State::kSuspended && first.frames.empty() && !first.is_truncated)
        add(Style::kDim, "no Python code", kIndent);
      for (const DumpedFrame& frame : first.frames) add_frame(frame);
      if (first.is_truncated) add(Style::kDim, "... and more frames outside", kIndent);
    }
    if (dump.problem.empty()) return;
    out_ += "\n";
    add(Style::kWarning, dump.problem);
  }

  void add_frame(const DumpedFrame& frame) {
    const bool is_python = frame.kind == DumpedFrame::Kind::kPython;
    add(is_python ? Style::kPlain : Style::kDim,
        fmt::format("{}  {}", printable(frame.function), place_of(frame, dump_.directory)), kIndent);
    if (!is_python) return;
    const std::string_view line = without_indent(source_(frame.file).line(frame.at.line));
    if (!line.empty()) add(Style::kDim, std::string(line), 2 * kIndent);
    add_locals(frame.locals);
  }

  // Not cut to the width: how much is shown of a value is what the user has asked for.
  void add_locals(const cpython::FrameVariables& locals) {
    const std::string indent(3 * kIndent, ' ');
    for (const cpython::Variable& each : locals.variables)
      out_ += fmt::format("{}{} = {}\n", indent, printable(each.name), printable(each.value.text));
    if (locals.left_out > 0) add(Style::kDim, fmt::format("... {} more variables", locals.left_out), 3 * kIndent);
  }

  const Dump& dump_;
  const SourceLookup& source_;
  const Page& page_;
  std::string out_;
};

void put_variable(formats::JsonWriter& json, const cpython::Variable& variable) {
  json.begin_object();
  json.member("name", variable.name);
  json.member("type", variable.value.type);
  json.member("value", variable.value.text);
  json.key("argument");
  json.boolean(variable.is_argument);
  json.end_object();
}

void put_frame(formats::JsonWriter& json, const DumpedFrame& frame, const SourceLookup& source) {
  json.begin_object();
  if (frame.kind == DumpedFrame::Kind::kPython) {
    put_python_frame(json, frame.function, frame.file, frame.at, source);
    const cpython::FrameVariables& locals = frame.locals;
    if (!locals.variables.empty())
      json.column("locals", locals.variables, [&](const cpython::Variable& each) { put_variable(json, each); });
    if (locals.left_out > 0) json.member("more_locals", static_cast<std::int64_t>(locals.left_out));
  } else {
    json.member("function", frame.function);
    json.member("file", frame.file);
    json.member("kind", "native");
  }
  json.end_object();
}

void put_thread(formats::JsonWriter& json, const DumpedThread& thread, const SourceLookup& source) {
  json.begin_object();
  json.member("tid", std::int64_t{static_cast<int>(thread.task.tid)});
  json.member("name", thread.task.name);
  json.member("state", state_of(thread));
  json.key("python");
  json.boolean(thread.has_python);
  json.key("holds_gil");
  json.boolean(thread.holds_gil);
  if (thread.interpreter > 0) json.member("interpreter", static_cast<std::int64_t>(thread.interpreter));
  if (!thread.problem.empty()) json.member("problem", thread.problem);
  json.key("truncated");
  json.boolean(thread.is_truncated);
  const auto put = [&](const DumpedFrame& frame) { put_frame(json, frame, source); };
  json.column("frames", thread.frames, put);
  if (!thread.native_frames.empty()) json.column("native_frames", thread.native_frames, put);
  if (!thread.native_problem.empty()) json.member("native_problem", thread.native_problem);
  if (!thread.locals_problem.empty()) json.member("locals_problem", thread.locals_problem);
  if (thread.signal != 0) json.member("signal", std::int64_t{thread.signal});
  json.end_object();
}

void put_greenlet(formats::JsonWriter& json, const DumpedGreenlet& greenlet, const SourceLookup& source) {
  json.begin_object();
  json.member("address", fmt::format("{:#x}", raw(greenlet.address)));
  json.member("type", greenlet.type);
  if (!greenlet.name.empty()) json.member("name", greenlet.name);
  json.member("state", text(greenlet.state));
  json.key("main");
  json.boolean(greenlet.is_main);
  if (greenlet.thread) json.member("tid", std::int64_t{static_cast<int>(*greenlet.thread)});
  if (greenlet.parent) json.member("parent", static_cast<std::int64_t>(*greenlet.parent));
  json.key("truncated");
  json.boolean(greenlet.is_truncated);
  json.column("frames", greenlet.frames, [&](const DumpedFrame& frame) { put_frame(json, frame, source); });
  json.end_object();
}

}  // namespace

std::string render_dump(const Dump& dump, const SourceLookup& source, const Page& page) {
  return DumpRenderer(dump, source, page).render();
}

std::string dump_json(const Dump& dump, const SourceLookup& source) {
  std::string out;
  formats::JsonWriter json(out);
  begin_document(json);
  json.member("pid", std::int64_t{static_cast<int>(dump.pid)});
  json.member("python", dump.version.text());
  json.member("command", dump.command);
  if (dump.longest_stop_ns > 0) json.member("longest_stop_ns", dump.longest_stop_ns);
  if (dump.missing_bytes > 0) json.member("missing_bytes", static_cast<std::int64_t>(dump.missing_bytes));
  json.column("threads", dump.threads, [&](const DumpedThread& thread) { put_thread(json, thread, source); });
  if (dump.greenlets) {
    json.column("greenlets", dump.greenlets->greenlets,
                [&](const DumpedGreenlet& greenlet) { put_greenlet(json, greenlet, source); });
    if (!dump.greenlets->problem.empty()) json.member("greenlets_problem", dump.greenlets->problem);
  }
  json.end_object();
  return out + "\n";
}

}  // namespace plimsoll::cli
