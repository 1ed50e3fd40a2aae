#include "remote/dump.h"

#include <algorithm>
#include <map>

#include "os/os.h"
#include "remote/stack_reader.h"
#include "remote/thread_states.h"
#include "remote/waiting.h"

namespace plimsoll::remote {
namespace {

constexpr std::size_t kMaxDepth = 10'000;
// Where a thread that runs cannot be stood beside, it moves on between two looks, but hardly so often.
constexpr int kTries = 200;

// Fills in what threads do, one after another.
class Dumper {
 public:
  explicit Dumper(const Target& target) : target_(target), reader_(target_, kMaxDepth), memory_(target.memory()) {}

  Result<Dump> run() {
    const std::vector<os::Task> tasks = os::tasks_of(target_.pid);
    memory::PagedReader pages(memory_);
    std::vector<ThreadState> states = thread_states(pages, target_.layout, target_.runtime);
    if (target_.layout.tstate.native_thread_id == cpython::kNoField) learn_native_ids(pages, tasks, states);
    if (is_null(target_.code_type)) target_.code_type = find_code_type(pages, target_.layout, states);
    std::reverse(states.begin(), states.end());  // the interpreter's newest thread comes first

    Dump dump{
        target_.pid, target_.layout.version, os::command_line(target_.pid), os::working_directory(target_.pid), {}};
    for (const ThreadState& state : states) note_interpreter(state.interpreter);
    for (const ThreadState& state : states)
      if (const auto task = task_of(tasks, state); task != tasks.end()) dump.threads.push_back(look_at(*task, &state));
    for (const os::Task& task : tasks) {
      const auto is_it = [&](const DumpedThread& thread) { return thread.task.tid == task.tid; };
      if (std::none_of(dump.threads.begin(), dump.threads.end(), is_it)) dump.threads.push_back(look_at(task, nullptr));
    }
    return dump;
  }

 private:
  using Tasks = std::vector<os::Task>;
  static Tasks::const_iterator task_of(const Tasks& tasks, const ThreadState& state) {
    return std::find_if(tasks.begin(), tasks.end(), [&](const os::Task& task) {
      return static_cast<std::uint64_t>(task.inner_tid) == state.native_id;
    });
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
    if (state == nullptr) return thread;
    thread.has_python = true;
    const auto number = std::find(interpreters_.begin(), interpreters_.end(), state->interpreter);
    thread.interpreter = static_cast<std::size_t>(number - interpreters_.begin());
    read_frames(*state, probe, thread);
    return thread;
  }

  void read_frames(const ThreadState& state, const os::ThreadProbe& probe, DumpedThread& thread) {
    cpython::Snapshot snapshot;
    bool is_sure = true;
    for (int tried = 0; tried < kTries && !snapshot.is_proven; ++tried) {
      std::optional<Standing> standing = standing_still(probe);
      shared_cpu_.begin_look();
      if (!standing) standing = shared_cpu_.stand_beside(probe);
      is_sure = standing || can_prove_running(target_.layout);
      snapshot = reader_.read(state.address, standing);
      thread.holds_gil = holds_gil(memory_, target_.layout, target_.runtime, state);
    }
    if (!snapshot.is_proven) {
      const bool is_readable = snapshot.walk.stop == cpython::WalkStop::kComplete;
      thread.problem = is_readable ? "it runs on too fast for its stack to be read"
                                   : std::string("its stack could not be read: ") + cpython::text(snapshot.walk.stop);
      return;
    }
    if (!is_sure) thread.problem = "it runs: up to Python 3.10 its frames may be of two moments";
    thread.is_truncated = snapshot.walk.stop == cpython::WalkStop::kTruncated;
    for (const cpython::PyFrame& frame : reader_.frames()) {
      const cpython::CodeInfo& info = *reader_.code_of(frame).info;
      if (info.is_init_cleanup()) continue;
      thread.frames.push_back(
          {info.name, info.file,
           cpython::locate_near(target_.layout.line_table_style, info.line_table, info.first_line, frame.position)});
    }
  }

  Target target_;
  StackReader reader_;
  SharedCpu shared_cpu_;
  const memory::RemoteReader memory_;
  std::vector<Address> interpreters_;
};

}  // namespace

Result<Dump> take_dump(const Target& target) {
  Result<Dump> dump = Dumper(target).run();
  if (dump.ok() && dump.value().threads.empty())
    return Error{ErrorKind::kBadInput, "process " + std::to_string(static_cast<int>(target.pid)) + " has ended"};
  return dump;
}

}  // namespace plimsoll::remote
