#include "capture/tick_signals.h"

#include <sched.h>

#include <atomic>
#include <cerrno>
#include <csignal>

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

void on_tick(int, siginfo_t* info, void* context) {
  const int saved_errno = errno;
  {
    const RunningHandler running;
    if (CpuSampler* sampler = active_sampler.load(std::memory_order_seq_cst))
      sampler->tick(*info, static_cast<const ucontext_t*>(context));
  }
  errno = saved_errno;
}

void on_trap(int signal, siginfo_t* info, void* context) {
  if (os::origin_of(*info).kind != os::TickOrigin::Kind::kForeign) {
    on_tick(signal, info, context);
    return end_interrupted_call(*static_cast<ucontext_t*>(context));
  }
  // A breakpoint, or somebody's kill: what happens without us is that the program dies of it.
  os::take_default_action(SIGTRAP);
}

Status install(int signal, void (*handler)(int, siginfo_t*, void*)) {
  struct sigaction action {};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
  ::sigemptyset(&action.sa_mask);
  if (::sigaction(signal, &action, nullptr) != 0)
    return system_error("cannot install the sampling signal's handler", errno);
  return Ok{};
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
  if (!is_free_for_traps() || !os::has_trap_ticks()) return TickSignals{timer, timer};
  memory::FaultGuard::expect_traps(on_trap);
  PLIMSOLL_TRY(install(SIGTRAP, on_trap));
  return TickSignals{timer, SIGTRAP};
}

bool traps_are_ours() {
  struct sigaction current {};
  return ::sigaction(SIGTRAP, nullptr, &current) == 0 && (current.sa_flags & SA_SIGINFO) != 0 &&
         current.sa_sigaction == on_trap;
}

// Sequentially consistent, like the store of whoever waits for handlers: either that one sees this handler, or this
// handler sees what was stored.
RunningHandler::RunningHandler() noexcept { running_handlers.fetch_add(1, std::memory_order_seq_cst); }
RunningHandler::~RunningHandler() { running_handlers.fetch_sub(1, std::memory_order_acq_rel); }

void set_active_sampler(CpuSampler* sampler) { active_sampler.store(sampler, std::memory_order_seq_cst); }

void wait_for_handlers() {
  while (running_handlers.load(std::memory_order_seq_cst) != 0) ::sched_yield();
}

bool no_handler_runs() { return running_handlers.load(std::memory_order_seq_cst) == 0; }

void forget_handlers() { running_handlers.store(0, std::memory_order_release); }

}  // namespace plimsoll::capture
