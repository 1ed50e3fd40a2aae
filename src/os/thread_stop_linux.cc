#include "os/thread_stop.h"

#include <elf.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <string>

#include "base/clock.h"
#include "os/ended_calls_linux.h"

namespace plimsoll::os {

#if defined(__x86_64__)
namespace {

constexpr std::int64_t kPatience = 1'000'000'000;
// SIGCHLD says that a thread has stopped; but another thread of ours may get it, or nobody if it is ignored.
constexpr std::int64_t kLookAgain = 1'000'000;

pid_t id(Tid tid) { return static_cast<pid_t>(tid); }

long trace(__ptrace_request request, Tid tid, std::uint64_t data = 0) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): how ptrace takes a number
  return ::ptrace(request, id(tid), nullptr, reinterpret_cast<void*>(data));
}

bool get_registers(Tid tid, user_regs_struct& out) {
  iovec room{&out, sizeof out};
  // NOLINTNEXTLINE(performance-no-int-to-ptr): likewise
  return ::ptrace(PTRACE_GETREGSET, id(tid), reinterpret_cast<void*>(NT_PRSTATUS), &room) == 0 &&
         room.iov_len == sizeof out;
}

bool set_registers(Tid tid, user_regs_struct& from) {
  iovec room{&from, sizeof from};
  // NOLINTNEXTLINE(performance-no-int-to-ptr): likewise
  return ::ptrace(PTRACE_SETREGSET, id(tid), reinterpret_cast<void*>(NT_PRSTATUS), &room) == 0;
}

// Whether a signal waits to be delivered to the thread; true if that cannot be told.
bool has_signal(Pid process, Tid tid) {
  const std::string status = task_status(process, tid);
  const auto mask = [&](std::string_view field, std::uint64_t& out) {
    const std::size_t at = status.find(field);
    return at != std::string::npos &&
           std::from_chars(status.data() + at + field.size(), status.data() + status.size(), out, 16).ec == std::errc{};
  };
  std::uint64_t own = 0;
  std::uint64_t shared = 0;
  std::uint64_t blocked = 0;
  if (!mask("\nSigPnd:\t", own) || !mask("\nShdPnd:\t", shared) || !mask("\nSigBlk:\t", blocked)) return true;
  return ((own | shared) & ~blocked) != 0;
}

// Whether it is a process that this one has started.
bool is_child(Tid tid) {
  const std::string status = task_status(Pid{id(tid)}, tid);
  return status.find("\nPPid:\t" + std::to_string(::getpid()) + "\n") != std::string::npos;
}

}  // namespace

ThreadStopper::ThreadStopper() {
  // A signal that is ignored is not sent at all.
  struct sigaction usual {};
  usual.sa_handler = SIG_DFL;
  ::sigaction(SIGCHLD, nullptr, &action_before_);
  if (action_before_.sa_handler == SIG_IGN) ::sigaction(SIGCHLD, &usual, nullptr);
}

ThreadStopper::~ThreadStopper() {
  let_go();
  let_late_ones_go();
  if (action_before_.sa_handler == SIG_IGN) ::sigaction(SIGCHLD, &action_before_, nullptr);
}

ThreadStopper::Wait ThreadStopper::look_at(Tid tid) {
  int status = 0;
  // The end of a child of ours is for whoever started it to hear of.
  siginfo_t news{};
  if (::waitid(P_PID, static_cast<id_t>(id(tid)), &news, WEXITED | WSTOPPED | __WALL | WNOHANG | WNOWAIT) == 0 &&
      (news.si_code == CLD_EXITED || news.si_code == CLD_KILLED || news.si_code == CLD_DUMPED) && is_child(tid))
    return Wait::kEnded;
  const pid_t got = ::waitpid(id(tid), &status, __WALL | WNOHANG);
  if (got == 0) return Wait::kNothing;
  // (No such thread: it has ended, or called exec, which gave it the process's id.)
  if (got < 0 || !WIFSTOPPED(status)) return Wait::kEnded;
  is_ours_ = status >> 16 == PTRACE_EVENT_STOP;
  signal_ = is_ours_ ? 0 : WSTOPSIG(status);
  return Wait::kStopped;
}

ThreadStopper::Wait ThreadStopper::wait_for(Tid tid, std::int64_t until_ns) {
  sigset_t child{};
  ::sigemptyset(&child);
  ::sigaddset(&child, SIGCHLD);
  while (true) {
    if (const Wait now = look_at(tid); now != Wait::kNothing) return now;
    if (monotonic_ns() >= until_ns) return Wait::kNothing;
    const timespec while_ns = timespec_of(kLookAgain);
    (void)::sigtimedwait(&child, nullptr, &while_ns);
  }
}

StopOutcome ThreadStopper::stop(Pid process, Tid tid) {
  const Target target{process, tid};
  let_go();
  let_late_ones_go();
  if (std::find(late_.begin(), late_.end(), target) != late_.end()) return StopOutcome::kLate;
  if (!pauses_blocked_) pauses_blocked_.emplace(kPauses);
  const StopOutcome outcome = stop_now(target);
  allow_pauses();
  return outcome;
}

void ThreadStopper::allow_pauses() {
  if (!stopped_ && late_.empty()) pauses_blocked_.reset();
}

StopOutcome ThreadStopper::stop_now(const Target& target) {
  const auto [process, tid] = target;
  if (trace(PTRACE_SEIZE, tid) != 0) return errno == ESRCH ? StopOutcome::kEnded : StopOutcome::kRefused;
  asked_ns_ = monotonic_ns();
  if (trace(PTRACE_INTERRUPT, tid) != 0) {
    (void)look_at(tid);  // it ends: whoever traces a thread must take notice of that
    return StopOutcome::kEnded;
  }
  switch (wait_for(tid, asked_ns_ + kPatience)) {
    case Wait::kNothing: late_.push_back(target); return StopOutcome::kLate;
    case Wait::kEnded:
      // If it called exec, it is the first thread now, and about to stop as that.
      if (static_cast<pid_t>(process) != id(tid)) late_.push_back({process, Tid{static_cast<std::int32_t>(process)}});
      return StopOutcome::kEnded;
    case Wait::kStopped: break;
  }
  stopped_ = target;
  return StopOutcome::kStopped;
}

std::optional<ThreadRegisters> ThreadStopper::registers() {
  user_regs_struct at{};
  if (!stopped_ || !get_registers(stopped_->tid, at)) return std::nullopt;
  return ThreadRegisters{{at.rax, at.rdx, at.rcx, at.rbx, at.rsi, at.rdi, at.rbp, at.rsp, at.r8, at.r9, at.r10, at.r11,
                          at.r12, at.r13, at.r14, at.r15},
                         at.rip};
}

void ThreadStopper::hide_interruption(const Target& target) {
  user_regs_struct at{};
  if (!is_ours_ || !get_registers(target.tid, at) || static_cast<std::int64_t>(at.orig_rax) < 0) return;
  if (static_cast<std::int64_t>(at.rax) != -EINTR || !is_undone_by_a_stop(static_cast<long>(at.orig_rax), at.r8) ||
      has_signal(target.process, target.tid))
    return;
  // (With a limit on the time it waits at most a few microseconds longer, as the thread was seen running just before.)
  constexpr std::uint64_t kInstruction = 2;  // syscall
  at.rip -= kInstruction;
  at.rax = at.orig_rax;
  (void)set_registers(target.tid, at);
}

void ThreadStopper::let_go() {
  if (!stopped_) return;
  hide_interruption(*stopped_);
  // Before it goes on, as it may take our CPU then.
  note_held();
  const bool goes_on = trace(PTRACE_DETACH, stopped_->tid, static_cast<std::uint64_t>(signal_)) == 0;
  if (!goes_on) (void)look_at(stopped_->tid);  // it has been killed
  stopped_.reset();
  allow_pauses();
}

void ThreadStopper::note_held() {
  held_ns_ = std::max<std::int64_t>(monotonic_ns() - asked_ns_, 1);
  longest_held_ns_ = std::max(longest_held_ns_, held_ns_);
  const auto place = static_cast<std::size_t>(kClasses * std::log2(static_cast<double>(held_ns_)));
  ++held_counts_[std::min(place, held_counts_.size() - 1)];
}

void ThreadStopper::let_late_ones_go() {
  std::erase_if(late_, [&](const Target& target) {
    const Wait now = look_at(target.tid);
    if (now == Wait::kStopped) {
      hide_interruption(target);
      (void)trace(PTRACE_DETACH, target.tid, static_cast<std::uint64_t>(signal_));
    }
    return now != Wait::kNothing;
  });
  allow_pauses();
}
#else
ThreadStopper::ThreadStopper() = default;
ThreadStopper::~ThreadStopper() = default;
StopOutcome ThreadStopper::stop(Pid, Tid) { return StopOutcome::kRefused; }
std::optional<ThreadRegisters> ThreadStopper::registers() { return std::nullopt; }
void ThreadStopper::let_go() {}
void ThreadStopper::let_late_ones_go() {}
#endif

std::int64_t ThreadStopper::median_held_ns() const {
  std::uint64_t all = 0;
  for (const std::uint32_t count : held_counts_) all += count;
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < held_counts_.size(); ++i) {
    seen += held_counts_[i];
    if (all > 0 && 2 * seen >= all)
      return static_cast<std::int64_t>(std::exp2((static_cast<double>(i) + 0.5) / kClasses));
  }
  return 0;
}

}  // namespace plimsoll::os
