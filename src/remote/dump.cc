#include "remote/dump.h"

#include <algorithm>
#include <map>

#include "capture/native_resolver.h"
#include "os/os.h"
#include "remote/dump_limits.h"
#include "remote/greenlet_dump.h"
#include "remote/local_variables.h"
#include "remote/program_names.h"
#include "remote/stack_reader.h"
#include "remote/thread_states.h"
#include "remote/waiting.h"

namespace plimsoll::remote {
namespace {

constexpr std::size_t kMaxDepth = 10'000;
// Where a thread that runs cannot be stood beside, it moves on between two looks, but hardly so often.
constexpr int kTries = 200;
// So many of these with its variables, which take longer.
constexpr int kTriesWithLocals = 50;
// One that is stopped may be at an instruction where its Python frames make no sense, but hardly so often.
constexpr int kNativeTries = 20;
constexpr std::size_t kMostStack = std::size_t{16} << 20U;

// What it takes to look at machine code, too.
struct NativeSide {
  explicit NativeSide(const Target& target)
      : reader(target, stopper, kMaxDepth, kMostStack),
        registry(target.layout, capture::CodeRegistry::Source::kTaught),
        names(reader.modules(), registry) {}

  os::ThreadStopper stopper;
  NativeReader reader;
  capture::CodeRegistry registry;
  capture::NativeResolver names;
};

const char* reason_of(NativeReader::Outcome outcome) {
  using Outcome = NativeReader::Outcome;
  switch (outcome) {
    case Outcome::kRefused: return "it may not be stopped: another program traces it, or ptrace is forbidden here";
    case Outcome::kLate: return "it did not come out of the kernel to be looked at";
    default: return "it never stood still for long enough";
  }
}

// Fills in what threads do, one after another.
class Dumper {
 public:
  Dumper(const Target& target, const DumpOptions& options)
      : target_(target),
        reader_(target_, kMaxDepth, options.native == NativeFrames::kYes ? Marks::kYes : Marks::kNo),
        memory_(target.memory()),
        limits_(options.locals) {
    if (options.native == NativeFrames::kYes) native_.emplace(target_);
    if (options.locals) locals_.emplace(target_.layout, *options.locals);
  }

  Result<Dump> run() {
    std::optional<os::Haste> haste;  // who stops others should not wait long for a CPU
    if (native_) {
      haste.emplace();
      PLIMSOLL_TRY(native_->reader.refresh());
    }
    const std::vector<os::Task> tasks = os::tasks_of(target_.pid);
    memory::PagedReader pages(memory_);
    std::vector<ThreadState> states = thread_states(pages, target_.layout, target_.runtime);
    learn_ids(pages, tasks, states);
    if (is_null(target_.code_type)) target_.code_type = find_code_type(pages, target_.layout, states);
    std::reverse(states.begin(), states.end());  // the interpreter's newest thread comes first
    if (locals_) PLIMSOLL_TRY(locals_->begin(target_.code_type, reader_));

    Dump dump{target_.pid,
              target_.layout.version,
              os::command_line(target_.pid),
              os::working_directory(target_.pid),
              {},
              {},
              0,
              Dump::Source::kProcess,
              0};
    for (const ThreadState& state : states) note_interpreter(state.interpreter);
    for (const Address interpreter : interpreters_) names_.push_back(program_names(target_, interpreter));
    for (const ThreadState& state : states)
      if (const os::Task* task = task_of(tasks, state); task != nullptr && shown_.takes_state_of(task->tid)) {
        DumpedThread thread = look_at(*task, &state);
        // (The state of a thread that was being made, and runs by now, is not its maker's.)
        if (names_once(states, state) || is_still_its(memory_, target_.layout, state))
          dump.threads.push_back(std::move(thread));
      }
    for (const os::Task& task : tasks) {
      const auto is_it = [&](const DumpedThread& thread) { return thread.task.tid == task.tid; };
      if (std::none_of(dump.threads.begin(), dump.threads.end(), is_it)) dump.threads.push_back(look_at(task, nullptr));
    }
    if (target_.has_greenlets) dump.greenlets = dump_greenlets(target_, greenlet_threads(tasks, states), limits_);
    if (native_) dump.longest_stop_ns = native_->stopper.longest_held_ns();
    return dump;
  }

 private:
  static std::vector<GreenletThread> greenlet_threads(std::span<const os::Task> tasks,
                                                      std::span<const ThreadState> states) {
    std::vector<GreenletThread> threads;
    for (const ThreadState& state : states)
      if (const os::Task* task = task_of(tasks, state))
        threads.push_back({state.address, state.interpreter, task->tid});
    return threads;
  }

  // Whether no other state says that it is of the same thread.
  static bool names_once(std::span<const ThreadState> states, const ThreadState& state) {
    const auto is_its = [&](const ThreadState& other) { return other.tid() == state.tid(); };
    return std::count_if(states.begin(), states.end(), is_its) == 1;
  }

  // The interpreters' numbers, as they are listed from the end: the main one is the oldest.
  void note_interpreter(Address interpreter) {
    if (std::find(interpreters_.begin(), interpreters_.end(), interpreter) == interpreters_.end())
      interpreters_.push_back(interpreter);
  }

  DumpedThread look_at(const os::Task& task, const ThreadState* state) {
    DumpedThread thread;
    thread.task = task;
    const os::ThreadProbe probe(task.tid, os::ThreadProbe::Keep::kOpen, static_cast<std::int32_t>(target_.pid));
    if (task.state == 'T' || task.state == 't') thread.state = DumpedThread::State::kStopped;
    if (task.state == 'Z' || task.state == 'X') thread.state = DumpedThread::State::kEnded;
    thread.activity = task.state == 'R' ? Activity::kRunning
                                        : activity_of(memory_, target_.layout, target_.runtime,
                                                      state != nullptr ? *state : ThreadState{}, probe.wait());
    if (state != nullptr) {
      thread.has_python = true;
      const auto number = std::find(interpreters_.begin(), interpreters_.end(), state->interpreter);
      thread.interpreter = static_cast<std::size_t>(number - interpreters_.begin());
      const auto& names = names_[thread.interpreter];
      if (const auto name = names.find(state->pthread); name != names.end()) thread.task.name = name->second;
    }
    if (!shown_.has_room() && (state != nullptr || native_)) {
      thread.problem = kTooManyFrames;
      return thread;
    }
    if (locals_) locals_->begin_thread();
    const bool has_native = native_ && thread.state != DumpedThread::State::kEnded && read_native(state, probe, thread);
    if (state != nullptr && !has_native) read_frames(*state, probe, thread);
    if (locals_ && !thread.frames.empty() && state != nullptr) thread.locals_problem = locals_->problem();
    shown_.count(thread);
    return thread;
  }

  // What it does at the moment that its stack is of: it may have waited when all were listed, and run now. (Unless the
  // kernel does not say: then it does what it did.)
  void note_moment(const ThreadState* state, const os::KernelWait& wait, DumpedThread& thread) const {
    if (wait.kind != os::KernelWait::Kind::kUnknown)
      thread.activity =
          activity_of(memory_, target_.layout, target_.runtime, state != nullptr ? *state : ThreadState{}, wait);
    if (state != nullptr) thread.holds_gil = holds_gil(memory_, target_.layout, target_.runtime, *state);
  }

  // Both kinds of frames. False if there are no Python frames although there is a state.
  bool read_native(const ThreadState* state, const os::ThreadProbe& probe, DumpedThread& thread) {
    using Outcome = NativeReader::Outcome;
    const Address address = state != nullptr ? state->address : Address{};
    NativeReader::Look look;
    for (int tried = 0; tried < kNativeTries && look.outcome == Outcome::kMoved; ++tried)
      look = look_once(thread, state, address, probe);
    if (look.outcome == Outcome::kEnded) thread.state = DumpedThread::State::kEnded;
    const bool has_both = look.outcome == Outcome::kRead;
    // At least its machine code.
    if (look.outcome == Outcome::kMoved) look = look_once(thread, state, Address{}, probe);
    if (look.outcome == Outcome::kRead)
      put_native(look.snapshot, has_both && state != nullptr, thread);
    else if (look.outcome != Outcome::kEnded)
      thread.native_problem = std::string("no native frames: ") + reason_of(look.outcome);
    return has_both;
  }

  // `address`: of the state, or null for its machine code alone.
  NativeReader::Look look_once(DumpedThread& thread, const ThreadState* state, Address address,
                               const os::ThreadProbe& probe) {
    NativeReader& reader = native_->reader;
    const os::Task& task = thread.task;
    const std::optional<os::Schedule> schedule = probe.schedule();
    const os::KernelWait wait = probe.wait();
    note_moment(state, wait, thread);
    // One that was stopped by a signal is in no call that could be disturbed.
    if (task.state == 'T') {
      const NativeReader::Look look = reader.read_stopped(task.tid, probe, address, reader_);
      if (look.outcome != NativeReader::Outcome::kRefused) return look;
    }
    using Kind = os::KernelWait::Kind;
    if (schedule && wait.kind != Kind::kRunnable && wait.kind != Kind::kUnknown) {
      const NativeReader::Look look = reader.read_waiting(Standing{&probe, *schedule}, wait, address, reader_);
      // Its registers would help; and it would not notice.
      const bool is_short = look.outcome == NativeReader::Outcome::kRead && wait.is_resumable &&
                            reader.unwind().head.stop == native::UnwindStop::kRegister;
      if (!is_short) return look;
      const NativeReader::Look stopped = reader.read_stopped(task.tid, probe, address, reader_);
      if (stopped.outcome != NativeReader::Outcome::kRefused) return stopped;
      return reader.read_waiting(Standing{&probe, *schedule}, wait, address, reader_);
    }
    // (Where the kernel does not say what it is in, it might be a call that a stop would end.)
    if (wait.kind == Kind::kUnknown && task.state != 'R') return {NativeReader::Outcome::kRefused, {}, {}};
    // It is to stop where it computes; from another CPU it would be met at the end of a system call too often.
    shared_cpu_.begin_look();
    (void)shared_cpu_.stand_beside(probe);
    note_moment(state, probe.wait(), thread);  // it has gone on meanwhile
    return reader.read_stopped(task.tid, probe, address, reader_);
  }

  // The frames of the last look. `has_python`: those of Python, too.
  void put_native(const cpython::Snapshot& snapshot, bool has_python, DumpedThread& thread) {
    const capture::NativeStack stack = native_->reader.unwind();
    const auto all = [&](std::vector<DumpedFrame>& to) {
      for (const native::NativeFrame& frame : stack.frames) add_native(frame, snapshot.time_ns, to);
    };
    if (stack.head.stop != native::UnwindStop::kComplete)
      thread.native_problem = std::string("native frames further out are missing: ") + text(stack.head.stop);
    if (!has_python) return all(thread.has_python ? thread.native_frames : thread.frames);
    thread.is_truncated = snapshot.walk.stop == cpython::WalkStop::kTruncated;
    std::vector<capture::StackItem> items;
    if (native_->reader.interleave(stack, reader_, snapshot.walk.stop, items)) {
      for (const capture::StackItem& item : items)
        if (item.kind == capture::StackItem::Kind::kNative)
          add_native(stack.frames[item.index], snapshot.time_ns, thread.frames);
        else
          add_python(reader_.frames()[item.index], thread);
      return;
    }
    if (thread.native_problem.empty()) thread.native_problem = kCountsDisagree;
    for (const cpython::PyFrame& frame : reader_.frames()) add_python(frame, thread);
    all(thread.native_frames);
  }

  void add_native(const native::NativeFrame& frame, std::int64_t time_ns, std::vector<DumpedFrame>& to) {
    if (const auto found = native_->names.frame_at(frame.instruction, time_ns))
      to.push_back(native_frame(native_->names.function(found->code)));
  }

  void add_python(const cpython::PyFrame& frame, DumpedThread& thread) const {
    if (frame.position == cpython::kEntryMark) return;
    const cpython::CodeInfo& info = *reader_.code_of(frame).info;
    if (info.is_init_cleanup()) return;
    thread.frames.push_back(python_frame(target_.layout, info, frame.position));
    if (locals_) thread.frames.back().locals = locals_->of(static_cast<std::size_t>(&frame - reader_.frames().data()));
  }

  void read_frames(const ThreadState& state, const os::ThreadProbe& probe, DumpedThread& thread) {
    cpython::Snapshot snapshot;
    bool is_sure = true;
    for (int tried = 0; tried < kTries && !snapshot.is_proven; ++tried) {
      if (locals_)
        locals_->begin_look(tried < kTriesWithLocals ? LocalVariables::Wanted::kYes : LocalVariables::Wanted::kNo);
      StackReader::let_pass(snapshot);
      std::optional<Standing> standing = standing_still(probe);
      shared_cpu_.begin_look();
      if (!standing) standing = shared_cpu_.stand_beside(probe);
      is_sure = standing || can_prove_running(target_.layout);
      note_moment(&state, probe.wait(), thread);
      snapshot = reader_.read(state.address, standing);
    }
    if (!snapshot.is_proven) {
      const bool is_readable = snapshot.walk.stop == cpython::WalkStop::kComplete;
      thread.problem = is_readable ? "it runs on too fast for its stack to be read"
                                   : std::string("its stack could not be read: ") + cpython::text(snapshot.walk.stop);
      return;
    }
    if (!is_sure) thread.problem = "it runs: up to Python 3.10 its frames may be of two moments";
    thread.is_truncated = snapshot.walk.stop == cpython::WalkStop::kTruncated;
    for (const cpython::PyFrame& frame : reader_.frames()) add_python(frame, thread);
  }

  Target target_;
  StackReader reader_;
  std::optional<NativeSide> native_;
  std::optional<LocalVariables> locals_;
  SharedCpu shared_cpu_;
  const memory::RemoteReader memory_;
  const std::optional<cpython::ValueLimits> limits_;
  DumpLimits shown_;
  std::vector<Address> interpreters_;
  std::vector<std::map<std::uint64_t, std::string>> names_;  // of their threads
};

}  // namespace

Result<Dump> take_dump(const Target& target, const DumpOptions& options) {
  if (options.native == NativeFrames::kYes && !os::kCanStopThreads)
    return Error{ErrorKind::kUnsupported, "native frames can be looked at on x86-64 only, so far"};
  Result<Dump> dump = Dumper(target, options).run();
  if (dump.ok() && dump.value().threads.empty())
    return Error{ErrorKind::kBadInput, "process " + std::to_string(static_cast<int>(target.pid)) + " has ended"};
  return dump;
}

}  // namespace plimsoll::remote
