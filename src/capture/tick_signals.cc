#include "capture/tick_signals.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <span>

#include "capture/cpu_sampler.h"
#include "capture/interrupted_call.h"
#include "memory/local.h"
#include "os/os.h"
#include "os/signal_handler.h"

namespace plimsoll::capture {
namespace {

std::atomic<CpuSampler*> active_sampler{nullptr};
std::atomic<int> running_handlers{0};
std::atomic<int> installed_signal{0};

// What the program has set for signals that are no ticks.
std::atomic<os::SignalHandler> program_on_tick{SIG_DFL};
std::atomic<os::SignalHandler> program_on_trap{SIG_DFL};

// What CpuSampler::tick says: whether there is an end to ticks in the wait that this one may have ended.
bool feed(const siginfo_t& info, const ucontext_t& context) {
  const int saved_errno = errno;
  bool have_end = false;
  {
    const RunningHandler running;
    if (CpuSampler* sampler = active_sampler.load(std::memory_order_seq_cst)) have_end = sampler->tick(info, &context);
  }
  errno = saved_errno;
  return have_end;
}

bool is_tick(const siginfo_t& info) { return os::origin_of(info).kind != os::TickOrigin::Kind::kForeign; }

// A handler of Python's asks for no new beginning of the call that it ends; ours does.
void pass_on(os::SignalHandler handler, int signal, ucontext_t& context) {
  if (handler == SIG_DFL || handler == SIG_IGN) return;
  end_interrupted_call(context);
  handler(signal);
}

void on_tick(int signal, siginfo_t* info, void* context) {
  auto& interrupted = *static_cast<ucontext_t*>(context);
  const os::SignalHandler handler = program_on_tick.load();
  if (is_tick(*info) || handler == SIG_DFL) {
    const bool have_end = feed(*info, interrupted);
    end_call_for_pending(interrupted, signal);
    if (have_end) begin_call_anew(interrupted, signal);
    return;
  }
  pass_on(handler, signal, interrupted);
}

void on_trap(int signal, siginfo_t* info, void* context) {
  auto& interrupted = *static_cast<ucontext_t*>(context);
  if (is_tick(*info)) {
    (void)feed(*info, interrupted);
    return end_interrupted_call(interrupted);
  }
  // A breakpoint, or somebody's kill: what happens without us.
  const os::SignalHandler handler = program_on_trap.load();
  if (handler == SIG_DFL) return os::take_default_action(SIGTRAP);
  pass_on(handler, signal, interrupted);
}

// Of a signal that is blocked; what others have sent is put back.
void take_ticks(int signal) {
  std::array<siginfo_t, 64> others;
  std::size_t count = 0;
  sigset_t only;
  ::sigemptyset(&only);
  ::sigaddset(&only, signal);
  constexpr timespec kNow{};
  while (count < others.size() && ::sigtimedwait(&only, &others[count], &kNow) == signal)
    if (!is_tick(others[count])) ++count;
  for (siginfo_t& other : std::span(others).first(count))
    ::syscall(SYS_rt_tgsigqueueinfo, ::getpid(), static_cast<pid_t>(os::current_tid()), signal, &other);
}

using TickHandler = void (*)(int, siginfo_t*, void*);

Status install(int signal, TickHandler handler) {
  struct sigaction action {};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
  // Others wait: a handler of the program's in the middle of ours would compute without ticks, and by siglongjmp never
  // let ours end, for which the end of the recording waits (see begin_call_anew, too). But faults are what our loads
  // are guarded against. A trap is one of them: it is another tick, and the kernel would end a process that blocks it.
  ::sigfillset(&action.sa_mask);
  for (const int fault : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGABRT, SIGSYS})
    ::sigdelset(&action.sa_mask, fault);
  if (::sigaction(signal, &action, nullptr) != 0)
    return system_error("cannot install the sampling signal's handler", errno);
  return Ok{};
}

bool has_handler(int signal, TickHandler handler) {
  struct sigaction current {};
  return ::sigaction(signal, nullptr, &current) == 0 && (current.sa_flags & SA_SIGINFO) != 0 &&
         current.sa_sigaction == handler;
}

bool is_free_for_traps() { return traps_are_ours() || os::has_handler(SIGTRAP, SIG_DFL); }

}  // namespace

Result<TickSignals> install_tick_handlers() {
  int timer = installed_signal.load();
  if (timer == 0) {
    const Result<int> unused = os::unused_realtime_signal();
    if (!unused.ok()) return unused.error();
    timer = unused.value();
    PLIMSOLL_TRY(install(timer, on_tick));
    installed_signal.store(timer);
  }
  put_tick_handler_back(timer);  // between two recordings it was the program's to set
  if (!is_free_for_traps() || !os::has_trap_ticks()) return TickSignals{timer, timer};
  memory::FaultGuard::expect_traps(on_trap);
  PLIMSOLL_TRY(install(SIGTRAP, on_trap));
  return TickSignals{timer, SIGTRAP};
}

bool traps_are_ours() { return has_handler(SIGTRAP, on_trap); }

bool is_tick_signal(int signal) {
  return signal != 0 && (signal == installed_signal.load() || (signal == SIGTRAP && traps_are_ours()));
}

int interrupting_tick_signal() {
  const os::SignalHandler handler = program_on_tick.load();
  return handler == SIG_DFL || handler == SIG_IGN ? installed_signal.load() : 0;
}

void put_tick_handler_back(int signal) {
  const TickHandler ours = signal == SIGTRAP ? on_trap : on_tick;
  struct sigaction set {};
  if (::sigaction(signal, nullptr, &set) != 0 || (set.sa_flags & SA_SIGINFO) != 0) return;  // ours, or of C code's
  (signal == SIGTRAP ? program_on_trap : program_on_tick).store(set.sa_handler);
  (void)install(signal, ours);
}

SignalsBlocked ticks_blocked() noexcept {
  const int ticks[] = {SIGTRAP, installed_signal.load()};
  return SignalsBlocked(ticks);
}

// Sequentially consistent, like the store of whoever waits for handlers: either that one sees this handler, or this
// handler sees what was stored.
RunningHandler::RunningHandler() noexcept { running_handlers.fetch_add(1, std::memory_order_seq_cst); }
RunningHandler::~RunningHandler() { running_handlers.fetch_sub(1, std::memory_order_acq_rel); }

void take_blocked_ticks() noexcept {
  sigset_t pending, blocked;
  ::sigpending(&pending);
  ::pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
  for (const int signal : {SIGTRAP, installed_signal.load()})
    if (signal != 0 && ::sigismember(&pending, signal) == 1 && ::sigismember(&blocked, signal) == 1) take_ticks(signal);
}

void set_active_sampler(CpuSampler* sampler) { active_sampler.store(sampler, std::memory_order_seq_cst); }

void wait_for_handlers() {
  while (running_handlers.load(std::memory_order_seq_cst) != 0) ::sched_yield();
}

bool no_handler_runs() { return running_handlers.load(std::memory_order_seq_cst) == 0; }

void forget_handlers() { running_handlers.store(0, std::memory_order_release); }

}  // namespace plimsoll::capture
