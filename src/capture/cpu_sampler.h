// capture/cpu_sampler.h: the signal engine. Every thread gets a tick of its own on its own CPU time; the tick's signal
// handler, running on that thread, walks the thread's own frames into the ring.
//
// A sample's weight is measured: the thread's CPU clock now, minus the clock up to which its time is accounted for
// already. A thread's first tick comes at a phase of its own within the first period, and is credited with the rest of
// that period, as if the thread had ticked one period before. On average that is what the thread will have used between
// its last tick and its end: so threads that live for less than a period get the right time together, whether they
// live one after another or at once. What late ticks have paid too much, or too little when their thread ended
// before them, the next thread that starts settles. (Systematic sampling with a random start; the phases are a
// Kronecker sequence of the golden ratio, which spreads any number of them more evenly than chance does.)
#pragma once

#include <array>
#include <atomic>
#include <boost/unordered/unordered_flat_map.hpp>
#include <csignal>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/sample_ring.h"
#include "capture/code_registry.h"
#include "capture/raw_sample.h"
#include "capture/tags.h"
#include "capture/thread_slots.h"
#include "capture/tick_costs.h"
#include "capture/tick_signals.h"
#include "cpython/awaiting.h"
#include "cpython/layout.h"
#include "native/modules.h"
#include "os/doorbell.h"

namespace plimsoll::capture {

// What the engine must know of the interpreter it runs in.
struct Interpreter {
  cpython::Layout layout;
  Address code_type{};  // PyCode_Type
  Address runtime{};    // _PyRuntime
  // The thread state of the calling thread, or null.
  struct ThreadState {
    Address address{};
    bool is_attached = false;  // it holds the GIL; in free-threaded builds, it may touch objects
  };
  // Called in the signal handler: must be async-signal-safe and must never fail; python/interpreter.cc says why
  // CPython's own functions are.
  ThreadState (*thread_state_of_caller)() = nullptr;
  TagSource tags{};
  // Where asyncio keeps its tasks, of recordings that tell them apart, in versions that say so.
  std::optional<cpython::TaskLayout> tasks{};
  // The thread state of the calling thread, if it is attached; else null. For who asks very often.
  Address (*attached_state_of_caller)() = nullptr;
};

// Which time is recorded.
enum class Mode : std::uint8_t {
  kCpu,   // CPU time of all threads
  kWall,  // all time of all Python threads, running or waiting
  kGil,   // CPU time of threads that hold the GIL
};

// One word: "cpu", "wall" or "gil".
constexpr const char* text(Mode mode) {
  constexpr std::array<const char*, 3> kTexts{"cpu", "wall", "gil"};
  return kTexts[static_cast<std::size_t>(mode)];
}

// How often and by which clock.
struct TickSettings {
  double rate_hz = 1000;               // ticks per second of a thread's CPU time
  std::optional<os::TickClock> clock;  // none = the best that works here
  std::size_t max_depth = 2048;        // frames kept of one stack, innermost first
  bool measures_itself = false;        // whether handler_ns() counts
  Mode mode = Mode::kCpu;
  // A RunReader takes the samples of threads that it can prove samples of; see there. Their ticks come seldom then.
  bool by_reader = false;
  // Whose code is unwound, too, and put into the samples of ticks; null: Python frames only.
  const native::Modules* modules = nullptr;
  // With `modules`, wakes who keeps them and empties the ring.
  os::Doorbell* bell = nullptr;
};

// The engine. At most one is active in a process. All members are thread-safe unless they say otherwise; none but
// tick() may be called from a signal handler.
class CpuSampler {
 public:
  // A kUsage error if the settings make no sense. Touches nothing.
  static Status check(const TickSettings& settings);
  // Picks a clock and a signal and installs the handler. No thread is sampled yet.
  static Result<std::unique_ptr<CpuSampler>> create(const TickSettings& settings, const Interpreter& interpreter,
                                                    SampleRing& ring, SeenFilter& seen);
  CpuSampler(const CpuSampler&) = delete;
  CpuSampler& operator=(const CpuSampler&) = delete;
  ~CpuSampler();  // stops

  // Samples all threads of the process but those in `except`, from now on.
  void start(std::array<Tid, 2> except);
  // Those are others now.
  void except(std::array<Tid, 2> threads);
  // Ends all ticks and waits until no handler is running. The ring may still hold samples.
  void stop();
  // The child of a fork has none of our ticks, and its copies of the descriptors are closed: no syscalls on timers.
  void abandon();

  // The calling thread has just begun, or is about to end; `name` may be empty.
  void thread_started(const std::string& name) noexcept;
  void thread_ending(const std::string& name) noexcept;
  void name_thread(Tid tid, const std::string& name);
  // Where the thread state of a thread is that may not have ticked yet.
  void set_thread_state(Tid tid, Address thread_state);
  // The calling thread, which is sampled from now on if it was not; none if it cannot be.
  ThreadSerial serial_of_caller();
  // Calls visit(ThreadSlot&) for each sampled thread. No thread is added or retired meanwhile.
  template <typename Visit>
  void for_each_thread(Visit visit) {
    const std::lock_guard guard(mutex_);
    slots_.for_each(visit);
  }

  // With settings.by_reader, for for_each_thread's visitor: the thread's samples are taken by its own ticks from now
  // on, at the rate that was asked for, or by the reader.
  void take_by_ticks(ThreadSlot& slot, bool by_ticks);

  // No tick of the calling thread is pending or comes until the silence is ended.
  void silence_caller();
  void end_silence_of_caller();

  // Ticks pause when `pause` has been called more often than `resume`. CPU time passed in a pause is not accounted.
  void pause();
  void resume();
  Status set_rate(double rate_hz);

  // The periodic look at all threads: finds new ones, retires ended ones, and holds the ticks of threads that block
  // our signal, since a signal queue that overflows would kill the program. Costs about a microsecond a thread.
  void poll();
  // Finds new ones, if there are more or fewer threads than at the last such look. A system call if not.
  void look_for_threads();

  // Threads that are new or have changed since the last call.
  std::vector<ThreadInfo> take_thread_changes();
  [[nodiscard]] std::array<DropTotal, kDropReasonCount> drops() const;
  void count_drop(DropReason reason, std::int64_t cpu_ns);
  // How looks at threads in a task's step went. The second is async-signal-safe.
  [[nodiscard]] TaskCounts task_counts() const;
  void count_tasks(cpython::AwaitingStack::Outcome outcome);
  // What ticks have cost the program so far: measured in the handler, and for what happens before and after it what
  // that took at the start. 0 unless settings ask for it, as the measurement costs as much as several frames.
  [[nodiscard]] std::int64_t handler_ns() const {
    return tick_costs_.undisturbed_ns() + static_cast<std::int64_t>(tick_costs_.count()) * empty_tick_ns_;
  }
  // What a tick costs whose handler does nothing; 0 unless that was measured, as it is for handler_ns() and above 10
  // kHz.
  [[nodiscard]] std::int64_t empty_tick_ns() const { return empty_tick_ns_; }
  // What the handler itself took, tick by tick, likewise.
  [[nodiscard]] const TickCosts& tick_costs() const { return tick_costs_; }
  // CPU time of the process that passed while paused.
  [[nodiscard]] std::int64_t paused_cpu_ns() const;
  // What takes the samples of threads that run, in words.
  [[nodiscard]] const char* engine() const { return by_reader_ ? "reader" : os::text(clock_); }
  [[nodiscard]] std::size_t thread_count() const;
  // As set, of samples; of ticks no more than this machine bears.
  [[nodiscard]] double rate_hz() const;
  // That limit, if it is lower than the rate that was set; else 0.
  [[nodiscard]] double most_ticks_hz() const;
  [[nodiscard]] bool is_paused() const { return paused_.load(std::memory_order_relaxed); }

  // 100 kHz: beyond that a signal costs more than the period, in nanoseconds.
  static constexpr std::int64_t kShortestPeriod = 10'000;

  // The handler's work. Async-signal-safe: no allocation, no lock, no system call but the thread's CPU clock where it
  // cannot be inferred and, every few ticks, the change of the period. noexcept, as is all that it calls: the way of an
  // exception out of a handler would be the unwinder, which locks and allocates. `context` is what the signal
  // interrupted: where native frames are to be found. True if there is an end to ticks, should it be that the
  // thread waits: at most one comes then before it has run again.
  bool tick(const siginfo_t& info, const ucontext_t* context = nullptr) noexcept;

 private:
  CpuSampler(const TickSettings& settings, const Interpreter& interpreter, SampleRing& ring, SeenFilter& seen,
             os::TickClock clock, const TickSignals& signals);

  // Signal side.
  ThreadSlot* slot_of(const siginfo_t& info) const noexcept;
  void count_foreign(const siginfo_t& info) noexcept;
  // `now_ns` is when the tick's handler began.
  void take_sample(ThreadSlot& slot, std::int64_t now_ns, const ucontext_t* context) noexcept;
  // The thread's CPU clock, as exact as its weights need it.
  static std::int64_t cpu_ns_at_tick(ThreadSlot& slot, std::int64_t now_ns) noexcept;
  void take_native_sample(ThreadSlot& slot, Address thread_state, std::int64_t weight,
                          const ucontext_t& context) noexcept;
  bool is_due(ThreadSlot& slot, std::int64_t now_ns, std::int64_t cpu_ns, bool is_in_wait) const noexcept;
  void rest(ThreadSlot& slot, std::int64_t cpu_left_ns) const noexcept;
  static void vary_period(ThreadSlot& slot) noexcept;  // perf: of the next ticks

  // With mutex_ held.
  void meet_caller(const std::string& name);
  // What a thread used between our first look at its clock and its first tick is measured, for threads that were there
  // before us; for others it is estimated, by a credit.
  enum class Head { kMeasured, kCredited };
  // `start_cpu_ns`: from where on that clock its time is recorded.
  void adopt(Tid tid, std::int64_t start_cpu_ns, Head head);
  std::int64_t next_phase();
  // What a tick costs although its handler does nothing.
  std::int64_t measure_empty_tick();
  void set_period(std::int64_t asked_ns);
  [[nodiscard]] std::int64_t tick_period(const ThreadSlot& slot) const;
  // The next tick comes a whole period from now, or after `first_ns`. False if the thread is gone.
  static void restart_tick(ThreadSlot& slot);
  static bool restart_tick(ThreadSlot& slot, std::int64_t first_ns);
  // What the thread's samples should have paid for, but did not; negative if a late one has paid too much.
  std::int64_t missed_ns(const ThreadSlot& slot, std::int64_t final_cpu_ns) const;
  // How soon the first tick of a thread may be asked for.
  [[nodiscard]] std::int64_t soonest_ns() const;
  // Of what ended threads have left unpaid, what a new thread's first sample may pay.
  [[nodiscard]] std::int64_t carried_share() const;
  bool make_room(ThreadSlot& slot);  // for all that is kept of a thread, but its ticks
  bool arm(ThreadSlot& slot, std::int64_t first_ns);
  void disarm(ThreadSlot& slot);
  void retire(ThreadSlot& slot, std::int64_t final_cpu_ns, DropReason reason);
  void poll_slot(ThreadSlot& slot);
  // The program has taken SIGTRAP for itself: perf events send the other signal from now on.
  void give_up_traps();
  [[nodiscard]] int signal_of(const ThreadSlot& slot) const;
  static void hold_ticks(ThreadSlot& slot);
  void hold_ticks();
  void find_new_threads(Head head);  // as far as there is memory for it: else the next look finds them
  void adopt_new_threads(Head head);
  void adopt_late(Tid tid, Head head);
  void report(const ThreadSlot& slot) noexcept;
  [[nodiscard]] os::TickClock clock_for_next_thread() const;

  const Interpreter interpreter_;
  const std::size_t max_depth_;
  const std::size_t stack_slots_;  // of a record without native frames
  const bool only_attached_;
  const bool by_reader_;
  const bool measures_itself_;
  const native::Modules* const modules_;
  os::Doorbell* const bell_;
  std::atomic<const native::ModuleMap*> rang_for_{nullptr};  // the map in which unknown code was met
  TickCosts tick_costs_;
  const os::TickClock clock_;
  std::int64_t empty_tick_ns_ = 0;
  TickSignals signals_;
  SampleRing& ring_;
  SeenFilter& seen_;
  ThreadSlots slots_;
  std::int64_t shortest_period_ns_ = 0;     // of ticks; 0: not known yet
  std::atomic<std::int64_t> period_ns_{0};  // of ticks
  std::atomic<std::int64_t> asked_period_ns_{0};
  std::atomic<bool> paused_{false};
  std::int64_t carried_ns_ = 0;
  std::array<std::atomic<std::uint64_t>, kDropReasonCount> drop_counts_{};
  std::array<std::atomic<std::int64_t>, kDropReasonCount> drop_cpu_ns_{};
  std::atomic<std::uint64_t> tasks_found_{0}, tasks_unreadable_{0};

  mutable std::mutex mutex_;
  std::array<Tid, 2> except_{};
  bool is_running_ = false;
  int pauses_ = 0;
  std::int64_t pause_began_cpu_ns_ = 0;
  std::int64_t paused_cpu_ns_ = 0;
  std::size_t perf_ticks_ = 0;
  std::size_t threads_at_look_ = 0;
  std::size_t next_serial_ = 0;
  boost::unordered_flat_map<std::int32_t, ThreadSlot*> by_tid_;
  boost::unordered_flat_map<std::int32_t, std::int64_t> ended_;  // threads that Python is done with: CPU ns then
  std::vector<ThreadInfo> changes_;
  std::uint64_t random_;
  std::uint64_t phase_;  // of 2^64
};

}  // namespace plimsoll::capture
