// remote/sampler.h: samples of all Python threads of another process, a look at a time.
//
// A look at a thread begins with the kernel's count of its turns on a CPU: one that has had none since it was found
// waiting waits still, and nothing of it is read. One that runs is looked at from its own CPU (remote/standing.h), or
// else, without that, it is read while it runs on. What such a thread has used is known to the kernel by its own tick
// only (some milliseconds), or when the thread leaves its CPU. So samples of it wait, too, until the clock has gone on,
// and then share equally what it says: the sum is exact, and each weighs what it stands for.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "capture/code_registry.h"
#include "capture/cpu_sampler.h"
#include "capture/resolve.h"
#include "remote/native_reader.h"
#include "remote/process_cpu.h"
#include "remote/stack_reader.h"
#include "remote/thread_states.h"

namespace plimsoll::remote {

// Whether each look tells who has the lock of the main interpreter, too.
enum class GilLooks : std::uint8_t { kNo, kYes };

// Whether the tasks that await a running one are on its stack (cpython/awaiting.h), of versions that tell.
enum class AwaitingTasks : std::uint8_t { kNo, kYes };

// What a Sampler looks for.
struct SamplerSettings {
  capture::Mode mode = capture::Mode::kCpu;
  GilLooks gil_looks = GilLooks::kNo;
  AwaitingTasks awaiting_tasks = AwaitingTasks::kNo;
  NativeFrames native = NativeFrames::kNo;
  std::size_t max_depth = 2048;
  std::int64_t tell_after_ns = 500'000'000;  // a wait is told of at least so often, unless there are many threads
};

// How many threads may have files of /proc kept open for them.
class ProbeRoom {
 public:
  // `files`: that this process may have open. Half of them are for other things.
  explicit ProbeRoom(std::size_t files) : left_(files / 2 / os::ThreadProbe::kMostFiles) {}
  ProbeRoom(const ProbeRoom&) = delete;
  ProbeRoom& operator=(const ProbeRoom&) = delete;

  // A thread's part of it, as long as it lives.
  class Place {
   public:
    Place() = default;
    explicit Place(ProbeRoom& room) : room_(room.left_ > 0 ? &room : nullptr) {
      if (room_ != nullptr) --room_->left_;
    }
    Place(Place&& other) noexcept : room_(std::exchange(other.room_, nullptr)) {}
    Place& operator=(Place&& other) noexcept {
      std::swap(room_, other.room_);
      return *this;
    }
    ~Place() {
      if (room_ != nullptr) ++room_->left_;
    }
    [[nodiscard]] bool is_there() const { return room_ != nullptr; }
    [[nodiscard]] os::ThreadProbe::Keep keep() const {
      return is_there() ? os::ThreadProbe::Keep::kOpen : os::ThreadProbe::Keep::kClosed;
    }

   private:
    ProbeRoom* room_ = nullptr;
  };

 private:
  std::size_t left_;
};

// What all processes of a recording share.
struct Holds {
  ProbeRoom& probes;
  SharedCpu* shared_cpu = nullptr;       // threads that run stand still by it; null: they are looked at as they run on
  os::ThreadStopper* stopper = nullptr;  // rather than that; native frames need it
};

// Used by one thread at a time.
class Sampler {
 public:
  // All must outlive it. Threads that run are looked at by what `holds` has; with nothing there fast functions can
  // hardly ever be proven.
  Sampler(const Target& target, const SamplerSettings& settings, const Holds& holds, ProcessCpu& cpu,
          capture::SampleSink& sink);

  // Reads the list of threads: who has come, who has gone. To be called often, as threads are born unseen.
  void update_threads();
  // Whether the newest thread is another one than when the list was read last: cheaper than reading it.
  [[nodiscard]] bool has_new_threads();
  // A look at every thread.
  void look();
  // Everything that has been seen is told of, as far as the clocks have come.
  void finish();
  // What is known of the threads goes to the sink; what is known of dead code objects is forgotten.
  void report();

  // Why samples are not there.
  [[nodiscard]] const std::array<capture::DropTotal, capture::kDropReasonCount>& drops() const { return drops_; }
  // Looks at threads in a task's step.
  [[nodiscard]] const capture::TaskCounts& task_counts() const { return reader_.task_counts(); }

 private:
  // A stack of a running thread that its clock has not paid for yet.
  struct Pending {
    std::int64_t time_ns = 0;
    std::int64_t stands_for_ns = 0;  // since the look before
    bool is_wanted = true;           // false: in mode gil, of a thread that does not hold it
    cpython::WalkStop stop{};
    std::vector<cpython::PyFrame> frames;
    // With native frames, if they could be had.
    bool has_native = false;
    capture::RawNative native;
    std::vector<native::NativeFrame> native_frames;
  };
  // A thread as far as it is known.
  struct Thread {
    ThreadState state;                // of the interpreter that it is in, as far as is known
    std::vector<ThreadState> states;  // one for each interpreter that it has been in, the newest first
    capture::ThreadInfo info;
    ProbeRoom::Place place;
    os::ThreadProbe probe;
    os::Schedule looked;               // at the last look
    os::Departures left;               // when it seemed to run last
    std::optional<os::Schedule> paid;  // what samples have been weighed with; none before its first look
    std::int64_t looked_ns = 0;
    // In mode wall: its time up to here is accounted for.
    os::Schedule settled;
    std::int64_t settled_ns = 0;     // the time of day that fits its CPU clock
    std::int64_t held_ns = 0;        // since then, by us
    std::int64_t open_ready_ns = 0;  // for so long it stood in the queue; not told of yet
    bool is_waiting = false;         // since the last look, and in mode wall on a stack that has been told of
    Activity activity{};
    std::int64_t open_ns = 0;  // of that wait, not told of yet
    std::vector<Pending> pending;
    std::size_t pending_count = 0, pending_seen = 0;
    bool was_met = false;  // by the last look, while it computed
    std::uint64_t times_met = 0, times_queued = 0;
    std::int64_t born_within_ns = 0;  // so long before it was found; 0: it may be older
    os::Schedule known;               // what it had used before that is not ours to tell
    bool is_alone = false;            // what is pending: nothing else was used than between it and the next look
    std::int64_t unmet_ns = 0;        // used since what is pending began, where it was not met at both ends
    int times_missed = 0;             // so often it was not in the list
    int times_named = 0;              // so often it was asked what the program calls it
    bool is_gone = false;             // as the last look has found
    bool has_ended = false;           // and has been told of
  };

  // asyncio may be imported at any time: looked for ever more seldom, as all that is loaded is looked into.
  void find_tasks();
  // Gives each thread what it has of the list; the others that are there.
  std::vector<ThreadState> sort_states(const std::vector<ThreadState>& states);
  void add_state(const ThreadState& state, const os::Task& task);
  // So many states are of no thread, or not of their own, yet: the list is read again soon.
  void expect_strangers(std::size_t count, std::int64_t now_ns);
  void add_thread(const ThreadState& state, const os::Task& task);
  // A thread that was not there a moment ago is known from its beginning on.
  void know_from_birth(Thread& thread, std::int64_t now_ns) const;
  // Gives the threads that have been there for a moment the names that the program has for them.
  void name_threads();
  // Likewise, if there are new ones: a thread may be gone before the next report.
  void name_new_threads();
  // Which of a thread's states is that of the interpreter that it runs in. To be asked while it stands still.
  [[nodiscard]] ThreadState current_state(const Thread& thread) const;
  // Whether the state whose stack has just been read is the thread's, still: of several it may be one that is on its
  // way to another thread, which runs already.
  [[nodiscard]] bool was_its_own(const Thread& thread) const;
  void look_at(Thread& thread);
  void look_at_those_from(std::size_t serial);
  // Whether there is any.
  bool end_those_gone();
  void look_at_gil();
  void found_waiting(Thread& thread, const os::KernelWait& wait, const os::Schedule& schedule, std::int64_t now_ns);
  // `before`: at the last look.
  void found_running(Thread& thread, const os::Schedule& before, const os::Schedule& schedule,
                     const std::optional<os::Place>& place);
  // Likewise, by stopping it. False if it may not be stopped.
  bool stop_running(Thread& thread, const os::Schedule& before, const os::Schedule& schedule,
                    const std::optional<os::Place>& place);
  // A thread whose clocks were as known at `looked_ns` has been stopped, when they were as `at_stop` says, and let go.
  void note_held(Thread& thread, std::int64_t looked_ns, const os::Schedule& at_stop) const;
  // Whether a thread that seems to run does, or did until a moment ago: one that stands in the queue looks the same.
  bool has_run(Thread& thread, const os::Schedule& looked, const os::Schedule& schedule,
               const std::optional<Standing>& standing);
  // Whether it has had a CPU since the last look but for moments.
  static bool computes_on(const Thread& thread, std::int64_t used_ns);
  // Whether a thread that we stand beside ran until we came. One that was put aside before, for others, does not stand
  // where it spends its time: the kernel puts it aside in its calls, which notice that its turn is over.
  bool ran_until_now(Thread& thread, std::int64_t used_ns);
  // Of the calling thread.
  const os::ThreadProbe& own_probe();
  // Whether a thread that is ready to run slept until a moment ago. (It may be woken by the very tick that wakes us:
  // sleeps end up to 50 us late, whenever the kernel has something to do.)
  static bool was_woken(Thread& thread);
  // A thread without memory: since the last look it has ended, and what it may have waited for is not known any more.
  static void was_gone_since(Thread& thread, const os::Schedule& before, const os::Schedule& schedule);
  // Whether the process has not given up its memory, as it does when it ends or calls exec.
  [[nodiscard]] bool has_memory() const;
  void found_queued(Thread& thread, const cpython::Snapshot& snapshot, bool has_native);
  // Between looks the thread has used so much.
  void account(Thread& thread, std::int64_t cpu_ns, bool is_running);
  static bool is_due(const Thread& thread, std::int64_t now_ns);
  static bool is_overdue(const Thread& thread, std::int64_t now_ns);
  // Gives what the thread has used to the stacks that wait for it.
  void pay(Thread& thread, const os::Schedule& schedule);
  void keep(Thread& thread, const cpython::Snapshot& snapshot, bool is_wanted, bool has_native);
  // The stack of the last look.
  void fill(Pending& stack, const cpython::Snapshot& snapshot, bool is_wanted, bool has_native);
  void put(const Thread& thread, const Pending& stack, Activity activity, std::int64_t weight_ns);
  // Of a wait that goes on.
  void put_same(Thread& thread, capture::RawSample::Stack stack);
  // On the stack of the thread's last wait.
  void put_same(const Thread& thread, capture::RawSample::Stack stack, Activity activity, std::int64_t weight_ns);
  // How long a wait may go on without being told of.
  [[nodiscard]] std::int64_t tell_after_ns() const;
  void end_thread(Thread& thread);
  // What a thread that ends has stood in the queue and was not told of. `has_last`: what it ran last is known.
  void put_open_ready(Thread& thread, bool has_last);
  // What a thread has used that no stack can be given.
  void drop_unpaid(std::int64_t cpu_ns);
  // What a thread that is gone has used since it was seen last, as far as can be told.
  std::int64_t unseen_end(const Thread& thread);
  // CPU time of the process that is known to be this or that thread's.
  [[nodiscard]] std::int64_t known_cpu_ns() const;
  cpython::Snapshot read(Thread& thread, const std::optional<Standing>& standing);
  void learn_codes(std::int64_t time_ns);
  void drop(capture::DropReason reason) { ++drops_[static_cast<std::size_t>(reason)].count; }

  const Target& target_;
  const SamplerSettings settings_;
  capture::SampleSink& sink_;
  const memory::RemoteReader memory_;
  std::uint32_t times_asked_ = 0;  // for tasks that were not found
  StackReader reader_;
  ProbeRoom& probes_;
  ProcessCpu& cpu_;
  SharedCpu* const shared_cpu_;
  std::optional<NativeReader> stopping_;  // with a stopper only
  [[nodiscard]] bool has_native() const { return stopping_ && stopping_->has_native(); }
  capture::CodeRegistry registry_;
  capture::Resolver resolver_;
  Tid own_tid_{};  // whose own_probe_ is
  ProbeRoom::Place own_place_;
  os::ThreadProbe own_probe_;
  std::vector<std::unique_ptr<Thread>> threads_;
  std::size_t next_serial_ = 0;
  Address interpreter_{}, newest_{};  // the first ones of the lists
  Address main_interpreter_{};
  std::int64_t strangers_since_ns_ = 0;   // there were states of no thread in the list; 0: there are none
  std::int64_t nameless_since_ns_ = 0;    // the first thread came that was not asked for its name; 0: there is none
  std::int64_t listed_ns_ = 0;            // when the threads were known to be those that are known
  std::int64_t forgotten_before_ns_ = 0;  // code that died before that may be another's address now
  std::int64_t ended_cpu_ns_ = 0;         // of threads that have ended
  std::int64_t unpaid_ns_ = 0;            // of these, what no stack has been given, and was not told of yet
  std::uint64_t random_;
  std::array<capture::DropTotal, capture::kDropReasonCount> drops_{};
};

}  // namespace plimsoll::remote
