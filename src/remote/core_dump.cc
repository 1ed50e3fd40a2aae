#include "remote/core_dump.h"

#include <algorithm>
#include <map>

#include "cpython/thread_names.h"
#include "remote/code_copies.h"
#include "remote/core_native.h"
#include "remote/dump_limits.h"
#include "remote/greenlet_dump.h"
#include "remote/local_variables.h"
#include "remote/thread_states.h"
#include "remote/waiting.h"

namespace plimsoll::remote {
namespace {

constexpr std::size_t kMaxDepth = 10'000;

// Fills in what the threads did, one after another.
class CoreDumper {
 public:
  CoreDumper(const CoreFile& core, const cpython::ObjectFields& fields, const DumpOptions& options)
      : core_(core),
        view_(core.image, core.layout, fields, kWordsPerValue),
        variables_(view_, core.code_type, options.locals.value_or(cpython::ValueLimits())),
        has_locals_(options.locals),
        limits_(options.locals),
        room_(kMaxDepth) {
    if (options.native == NativeFrames::kYes) native_.emplace(core);
  }

  Dump run() {
    Dump dump;
    dump.pid = os::Pid{core_.notes.pid};
    dump.version = core_.layout.version;
    dump.command = core_.notes.command;
    dump.source = Dump::Source::kCoreFile;
    dump.missing_bytes = core_.missing_bytes;
    const std::vector<ThreadState> states = thread_states_of(core_);
    for (const ThreadState& state : states)
      if (shown_.takes_state_of(tid_of(state))) dump.threads.push_back(look_at(state));
    for (const os::Task& task : tasks_of(core_)) {
      const auto is_it = [&](const DumpedThread& thread) { return thread.task.tid == task.tid; };
      if (std::any_of(dump.threads.begin(), dump.threads.end(), is_it)) continue;
      DumpedThread& thread = dump.threads.emplace_back();
      thread.task = task;
      thread.state = DumpedThread::State::kUnknown;
      if (native_) native_->add(task.tid, Address{}, {}, cpython::WalkStop::kComplete, thread, [](std::size_t) {});
      // The list of those that do may end where the file does.
      if (core_.missing_bytes > 0) thread.problem = "whether it runs Python is not known: the core file is cut short";
    }
    const std::vector<MappedPart>& parts = core_.notes.parts;
    if (std::any_of(parts.begin(), parts.end(), [](const MappedPart& part) { return is_greenlet_module(part.path); }))
      dump.greenlets = dump_core_greenlets(core_, greenlet_threads(states), limits_);
    for (DumpedThread& thread : dump.threads) thread.signal = signal_of(thread.task.tid);
    return dump;
  }

 private:
  static Tid tid_of(const ThreadState& state) { return Tid{static_cast<std::int32_t>(state.tid())}; }

  static std::vector<GreenletThread> greenlet_threads(const std::vector<ThreadState>& states) {
    std::vector<GreenletThread> threads;
    for (const ThreadState& state : states) threads.push_back({state.address, state.interpreter, tid_of(state)});
    return threads;
  }

  // Of the first thread alone: the kernel writes the one that ended the process to all.
  [[nodiscard]] std::int32_t signal_of(Tid tid) const {
    const std::vector<CoreThread>& threads = core_.notes.threads;
    const bool is_first = !threads.empty() && Tid{threads.front().tid} == tid;
    return is_first ? threads.front().signal : 0;
  }

  // The number of an interpreter, as they are listed from the end: the main one is the oldest.
  std::size_t number_of(Address interpreter) {
    const auto known = std::find(interpreters_.begin(), interpreters_.end(), interpreter);
    const auto number = static_cast<std::size_t>(known - interpreters_.begin());
    if (known == interpreters_.end()) {
      interpreters_.push_back(interpreter);
      names_.push_back(cpython::thread_names(view_, core_.code_type, interpreter));
    }
    return number;
  }

  DumpedThread look_at(const ThreadState& state) {
    DumpedThread thread;
    const Tid tid = tid_of(state);
    thread.interpreter = number_of(state.interpreter);
    const auto& names = names_[thread.interpreter];
    const auto name = names.find(state.pthread);
    thread.task = {tid, tid, name != names.end() ? name->second : std::string(), '?'};
    thread.state = DumpedThread::State::kUnknown;
    thread.has_python = true;
    thread.holds_gil = holds_gil(core_.image, core_.layout, core_.runtime, state);
    if (!shown_.has_room()) {
      thread.problem = kTooManyFrames;
      return thread;
    }
    const cpython::Walk walk =
        native_ ? cpython::walk_thread(core_.image, core_.layout, core_.code_type, state.address, std::span(room_),
                                       cpython::EntryMarks{})
                : cpython::walk_thread(core_.image, core_.layout, core_.code_type, state.address, std::span(room_));
    if (cpython::is_proven(walk.stop))
      add_frames(state, std::span(room_).first(walk.count), walk.stop, thread);
    else
      thread.problem = std::string("its stack could not be read: ") + cpython::text(walk.stop);
    thread.is_truncated = walk.stop == cpython::WalkStop::kTruncated;
    if (walk.leaf_skipped) thread.problem = "its innermost frame is missing: it was not made yet, or is damaged";
    shown_.count(thread);
    return thread;
  }

  void add_frames(const ThreadState& state, std::span<const cpython::PyFrame> walked, cpython::WalkStop stop,
                  DumpedThread& thread) {
    std::vector<cpython::PyFrame> frames(walked.begin(), walked.end());
    std::erase_if(frames, [](const cpython::PyFrame& frame) { return frame.position == cpython::kEntryMark; });
    std::vector<Address> addresses;
    if (has_locals_)
      addresses = cpython::frame_addresses(core_.image, core_.layout, core_.code_type, state.address, frames);
    const auto add = [&](std::size_t i) {
      add_frame(frames[i], i < addresses.size() ? addresses[i] : Address{}, thread);
    };
    if (native_) {
      native_->add(thread.task.tid, state.address, walked, stop, thread, add);
    } else {
      for (std::size_t i = 0; i < frames.size(); ++i) add(i);
    }
    if (has_locals_ && addresses.size() != frames.size())
      thread.locals_problem = "no variables: they could not be read";
  }

  // `address`: of the frame, if its variables are wanted.
  void add_frame(const cpython::PyFrame& frame, Address address, DumpedThread& thread) {
    const cpython::CodeInfo* info = info_of(frame.code);
    if (info == nullptr) {
      thread.problem = "some of its frames are missing: their code objects could not be read";
      return;
    }
    if (info->is_init_cleanup()) return;
    thread.frames.push_back(python_frame(core_.layout, *info, frame.position));
    if (!is_null(address)) thread.frames.back().locals = variables_.read(address, frame.code);
  }

  // Null if it cannot be read.
  const cpython::CodeInfo* info_of(Address code) { return codes_.find(core_.image, core_.layout, code).get(); }

  using View = cpython::ObjectView<memory::Image>;
  const CoreFile& core_;
  const View view_;
  cpython::VariablesReader<memory::Image> variables_;
  const bool has_locals_;
  const std::optional<cpython::ValueLimits> limits_;
  std::optional<CoreNativeReader> native_;
  DumpLimits shown_;
  std::vector<cpython::PyFrame> room_;
  std::vector<Address> interpreters_;
  std::vector<std::map<std::uint64_t, std::string>> names_;  // of threads, by interpreter
  CodeCopies codes_;
};

}  // namespace

Result<Dump> take_core_dump(const CoreFile& core, const DumpOptions& options) {
  const Result<cpython::ObjectFields> fields = cpython::object_fields(core.layout.version);
  if (!fields.ok()) return fields.error();
  return CoreDumper(core, fields.value(), options).run();
}

}  // namespace plimsoll::remote
