// os/os.h: what Plimsoll needs of an operating system. Implemented for each system by files of its own: os_linux.cc
// and what else is called _linux.cc.
#pragma once

#include <signal.h>
#include <time.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace plimsoll::os {

// How a per-thread tick is made. Chosen once per session; the number of a slot's mechanism may differ only when the
// session runs out of descriptors.
enum class TickClock : std::uint8_t {
  kPerf,       // perf_event task-clock: fires every N ns of the thread's own CPU time, in user and kernel mode
  kMonotonic,  // timer on CLOCK_MONOTONIC; fires while the thread sleeps, too
  kThreadCpu,  // timer on the thread's CPU clock; fires on scheduler ticks only (CONFIG_HZ), never in a sleep
};

// For example "perf task-clock"; as shown in a profile's "engine".
const char* text(TickClock clock);

// The kernel's id of the calling thread. Async-signal-safe.
Tid current_tid();

// Ids of all threads of this process, in no particular order. Empty if /proc is not readable.
std::vector<Tid> list_threads();

// How many there are, for one system call; 0 if that cannot be told.
std::size_t count_threads();

// The thread's name as the kernel knows it, at most 15 bytes; empty if the thread has ended.
std::string thread_name(Tid tid);

// Whether a thread of this process blocks a signal; false if it cannot be told.
bool blocks_signal(Tid tid, int signal);

// The CPU clock of a thread of this process, for clock_ns(). Async-signal-safe. Reading it fails when the thread ends.
clockid_t thread_cpu_clock(Tid tid);
// What it says now; 0 if the thread has ended. Async-signal-safe.
inline std::int64_t thread_cpu_ns(Tid tid) { return clock_ns(thread_cpu_clock(tid)); }
// Whether the thread has ended. (The clock of one that has waited for a CPU since it was made says 0, too.)
inline bool has_ended(Tid tid) {
  timespec ignored{};
  return ::clock_gettime(thread_cpu_clock(tid), &ignored) != 0;
}

// What a thread of this process is in, by the kernel's word: the system call that it waits in, if any.
struct KernelWait {
  // The kinds that matter to a reader of a profile.
  enum class Kind : std::uint8_t {
    kUnknown,   // it could not be asked
    kRunnable,  // it is in no call that waits: it runs, or waits for a CPU
    kFutex,     // a lock, a condition, a semaphore
    kFileLock,
    kIo,
    kSleep,
    kOther,
  } kind = Kind::kUnknown;
  Address futex{};  // what a kFutex waits on
  // Where it is in its own code: the call has not returned to that instruction. Null if it runs.
  Address instruction{}, stack_pointer{};
  // Whether the thread does not notice if it is stopped (ThreadStopper) and let go: the call has done nothing yet, and
  // begins again with the limit on its time, if it has one, where it was.
  bool is_resumable = false;
};

// From the line of /proc/PID/task/TID/syscall; kUnknown if it is damaged. Pure. `function`: of a call that goes on, the
// kernel's in which it waits (/proc/PID/task/TID/wchan), as the line does not say which call that is.
KernelWait parse_wait(std::string_view line, std::string_view function = {});
// Whether a thread goes on with a wait for a limited time that a stop, or the freezing of its container or the machine,
// has broken off. Pure.
bool goes_on_waiting(std::string_view line);

// What the scheduler has counted of a thread, as far as it has come: the time of a thread that runs now is added on
// the next tick of the scheduler, or when it leaves its CPU.
struct Schedule {
  std::int64_t cpu_ns = 0;
  std::int64_t ready_ns = 0;  // it could have run but had no CPU
  std::uint64_t turns =
      0;  // how often it has come to a CPU: a thread that is off its CPU does not run unless it counts
  bool operator==(const Schedule&) const = default;
};

// How often a thread has left a CPU: to wait, or because another one was put there.
struct Departures {
  std::uint64_t voluntary = 0, involuntary = 0;
  bool operator==(const Departures&) const = default;
};

// Where a thread is.
struct Place {
  bool is_ready = false;     // it runs, or would if it had its CPU
  bool is_realtime = false;  // it does not make room for threads of the usual kind
  int cpu = -1;              // the one that it runs on, stands in the queue of, or ran on last
};
// From a line of /proc/PID/task/TID/stat; none if it is damaged. Pure.
std::optional<Place> parse_place(std::string_view line);

// Keeps the calling thread on one CPU, from the first move on until it is destroyed. Used by that thread only.
class CpuSeat {
 public:
  CpuSeat() = default;
  CpuSeat(const CpuSeat&) = delete;
  CpuSeat& operator=(const CpuSeat&) = delete;
  ~CpuSeat();
  // False if the thread may not run there; it stays where it is.
  bool move_to(int cpu);
  // Where it has been moved to; -1 if it is not there, because nobody has moved it, or somebody else has since.
  [[nodiscard]] int cpu() const;

 private:
  int cpu_ = -1;
  std::vector<std::byte> before_;  // the CPUs that were allowed, as the kernel writes them
};

// Which one the calling thread is on, or was a moment ago; -1 if the system does not say.
int current_cpu();

// While it lives the calling thread comes to its CPU before others of the usual kind when it wakes, if it is allowed to
// ask for that. Used by that thread only.
class Haste {
 public:
  Haste();
  Haste(const Haste&) = delete;
  Haste& operator=(const Haste&) = delete;
  ~Haste();

 private:
  int before_;
};

// Sleeps until a CLOCK_MONOTONIC time, whatever signals come.
void sleep_until(std::int64_t time_ns);

// Asks the kernel about one thread, time and again. Movable. Used by one thread at a time.
class ThreadProbe {
 public:
  // Whether files of /proc stay open between questions, which costs two descriptors, or, if a process is named, up to
  // five, and makes a question two to three times cheaper.
  enum class Keep : std::uint8_t { kOpen, kClosed };
  static constexpr std::size_t kMostFiles = 5;
  ThreadProbe() = default;
  // `process`: the one that the thread belongs to, 0 for this one.
  ThreadProbe(Tid tid, Keep keep, std::int32_t process = 0);

  // What it waits in. The answer is a moment old: the thread's CPU clock tells whether it has moved since.
  [[nodiscard]] KernelWait wait() const;
  // For how long, since its start, it could have run but had no CPU; -1 if the kernel does not count.
  [[nodiscard]] std::int64_t ready_ns() const;
  // None if the thread has ended, or the kernel does not count; or if no more files can be opened.
  [[nodiscard]] std::optional<Schedule> schedule() const;
  // None likewise.
  [[nodiscard]] std::optional<Departures> departures() const;
  // None likewise.
  [[nodiscard]] std::optional<Place> place() const;
  // Until when its time on a CPU has been counted, by that CPU's clock, which is no other's: of a thread that was put
  // aside, when that was. None where the kernel does not tell (/proc/PID/sched).
  [[nodiscard]] std::optional<std::int64_t> counted_ns() const;
  // Which of these it was. Opens nothing.
  [[nodiscard]] bool has_ended() const;

 private:
  [[nodiscard]] UniqueFd keep_open(const char* name) const;
  [[nodiscard]] std::string_view read(const UniqueFd& open, const char* name, std::span<char> buffer) const;

  Tid tid_{};
  std::int32_t process_ = 0;
  UniqueFd syscall_;
  UniqueFd schedstat_;
  UniqueFd status_;  // these three if the process is named
  UniqueFd stat_;
  mutable UniqueFd sched_;  // from the first question on: it is asked on busy machines only
};

// The resident set size of this process in bytes; 0 if unknown.
std::int64_t resident_bytes();

// CPU time in ns of child processes that have ended and were waited for, and of those that they waited for.
std::int64_t ended_children_cpu_ns();

// The scheduler tick in Hz (CONFIG_HZ), as far as the coarse clock's resolution tells.
unsigned scheduler_hz();

// A real-time signal whose action is the default, and so not one that the program uses. kUnsupported if all are taken.
Result<int> unused_realtime_signal();

// Random bits for phases and jitter; from the kernel, else from the clock.
std::uint64_t random_seed();

// `bytes` random bytes that nobody can guess, as twice as many hexadecimal digits. Fails where the kernel has none.
Result<std::string> random_hex(std::size_t bytes);

// The calling thread's waits with a time limit end on time, not when it suits the kernel (by default, 50 us later).
void wake_on_time();

// Whether perf events can be made to come as traps: as SIGTRAP on the thread's way back to user mode, which never ends
// a system call early.
bool has_trap_ticks();
// A counter that counts nothing. The first perf event of any thread, on a machine where nobody has one, takes the
// kernel up to 20 ms: it patches itself, and waits for all CPUs to have noticed. While this one is open, they take
// microseconds. Empty where there are no perf events.
UniqueFd open_idle_counter();
// Makes room for our descriptors, which are kept at the end of the table. Where threads share it, the kernel waits for
// all CPUs when it grows, some 15 ms: a recording does so before it has threads, and without the GIL.
void grow_descriptor_table();
// Lets this process have as many files open as it may have (the hard limit), but no more than any program needs, and
// tells how many that is. For programs that start no others, which would inherit it.
std::size_t raise_descriptor_limit();

// A per-thread tick: while armed, the signal is sent to exactly that thread. Movable; disarms when destroyed.
class ThreadTick {
 public:
  // Whom to tick, how, and when.
  struct Settings {
    Tid tid{};
    int signal = 0;              // SIGTRAP, with kPerf only: a trap; see has_trap_ticks
    std::uint32_t slot = 0;      // comes back in the signal's siginfo; see slot_of
    std::int64_t first_ns = 0;   // until the first tick
    std::int64_t period_ns = 0;  // between ticks after it
  };
  ThreadTick() = default;
  ThreadTick(ThreadTick&& other) noexcept;
  ThreadTick& operator=(ThreadTick&& other) noexcept;
  ThreadTick(const ThreadTick&) = delete;
  ThreadTick& operator=(const ThreadTick&) = delete;
  ~ThreadTick();

  // Creates a tick for a thread of this process, which restart() starts. kPermission when the kernel forbids the clock.
  static Result<ThreadTick> create(TickClock clock, const Settings& settings);

  [[nodiscard]] bool is_armed() const { return kind_ != Kind::kNone; }
  [[nodiscard]] TickClock clock() const { return clock_; }
  // The descriptor behind a perf tick, else -1.
  [[nodiscard]] int descriptor() const { return fd_.get(); }

  // Starts over with the next tick in first_ns and then every period_ns. Async-signal-safe. False if it failed.
  bool restart(std::int64_t first_ns, std::int64_t period_ns) const;
  // Changes the period of a running tick as cheaply as the system allows. Async-signal-safe.
  bool set_period(std::int64_t period_ns) const;
  // Stops ticking without giving the tick up. Async-signal-safe.
  bool pause() const;
  // Drops the handle without a system call on a timer: in the child of a fork the timer does not exist, and its id may
  // come to name another one. The descriptor is closed.
  void forget();
  // Gives the tick up. No signal is sent after this; one may still be pending on another thread.
  void disarm();

 private:
  // What is behind the tick.
  enum class Kind : std::uint8_t { kNone, kPerfEvent, kPosixTimer };
  Kind kind_ = Kind::kNone;
  TickClock clock_{};
  UniqueFd fd_;
  timer_t timer_{};
};

// Which tick a signal came from.
struct TickOrigin {
  // How the tick is named by `value`.
  enum class Kind : std::uint8_t { kSlot, kDescriptor, kForeign } kind = Kind::kForeign;
  std::uint32_t value = 0;  // the slot, or the perf descriptor
};

// Reads a siginfo; kForeign for signals that somebody else sent. Async-signal-safe.
TickOrigin origin_of(const siginfo_t& info);
// As far as the signal and its si_code tell: whether nobody but a tick sends it so.
bool is_sent_by_ticks(int signal, int code);

// Each thread of the process passes a memory barrier before this returns: what it wrote before that is seen here, and
// what it reads after it is as we have written it. False if the system does not do that for us. For any thread.
bool pass_barriers() noexcept;

}  // namespace plimsoll::os
