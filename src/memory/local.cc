#include "memory/local.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <mutex>

#include <ucontext.h>

#if defined(__linux__) && defined(__x86_64__)
static greg_t& program_counter(ucontext_t& context) { return context.uc_mcontext.gregs[REG_RIP]; }
static auto third_argument(const ucontext_t& context) { return context.uc_mcontext.gregs[REG_RDX]; }
#elif defined(__linux__) && defined(__aarch64__)
static unsigned long long& program_counter(ucontext_t& context) { return context.uc_mcontext.pc; }
static auto third_argument(const ucontext_t& context) { return context.uc_mcontext.regs[2]; }
#else
#error "say where the program counter is on this system"
#endif

namespace plimsoll::memory {
namespace {

// A row as the assembler wrote it: offsets from the field itself, so that the table needs no relocations.
struct FaultRow {
  std::int32_t instruction;
  std::int32_t landing;
};

}  // namespace
}  // namespace plimsoll::memory

// The linker provides these for a section whose name is a C identifier.
extern "C" const plimsoll::memory::FaultRow __start_plimsoll_fault_table[] __attribute__((visibility("hidden")));
extern "C" const plimsoll::memory::FaultRow __stop_plimsoll_fault_table[] __attribute__((visibility("hidden")));

namespace plimsoll::memory {
namespace {

std::uintptr_t target_of(const std::int32_t& field) {
  return reinterpret_cast<std::uintptr_t>(&field) + static_cast<std::uintptr_t>(static_cast<std::intptr_t>(field));
}

// The handlers in front of which ours stands, and those that were there before we came first. Written under the mutex
// while the signal's handler is not yet ours.
struct Previous {
  struct sigaction segv;
  struct sigaction bus;
};
Previous original;
Previous previous;
bool has_original = false;
std::mutex install_mutex;

// The frame of on_fault that is waiting for the previous handler to return, on this thread.
thread_local std::uintptr_t waiting_frame __attribute__((tls_model("initial-exec"))) = 0;

std::atomic<std::uintptr_t> trap_handler{0};

// Where the fault was. A trap that is pending at that instant is delivered before the fault, even if it is blocked
// (dequeue_synchronous_signal in the kernel's signal.c takes the first in the queue): then the fault seems to be at the
// first instruction of the trap's handler, whose third argument is the context that it interrupted.
ucontext_t& faulted(ucontext_t& context) {
  if (static_cast<std::uintptr_t>(program_counter(context)) != trap_handler.load(std::memory_order_relaxed))
    return context;
  return *reinterpret_cast<ucontext_t*>(third_argument(context));
}

// If a guarded load faulted, goes on at its landing place.
bool redirect(ucontext_t& context) {
  auto& pc = program_counter(faulted(context));
  for (const FaultRow* row = __start_plimsoll_fault_table; row != __stop_plimsoll_fault_table; ++row) {
    if (target_of(row->instruction) != static_cast<std::uintptr_t>(pc)) continue;
    pc = static_cast<std::remove_reference_t<decltype(pc)>>(target_of(row->landing));
    return true;
  }
  return false;
}

// A fault of the program's own: whoever handled it before us gets it.
void pass_on(int signal, siginfo_t* info, void* context) {
  const struct sigaction& before = signal == SIGSEGV ? previous.segv : previous.bus;
  const bool is_function =
      (before.sa_flags & SA_SIGINFO) != 0 || (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN);
  const auto frame = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  // Inside the previous handler's own call the signal comes back to us when that handler, having done its work, puts
  // back what it once found, which was ours: faulthandler does. (A deeper frame; one that jumped out is not deeper.)
  const bool came_back = waiting_frame != 0 && frame < waiting_frame;
  if (!is_function || came_back) {
    // Nobody else wants it: with the first action back in place the faulting instruction runs again, and the program
    // dies of its own fault, with its own core file.
    ::sigaction(signal, signal == SIGSEGV ? &original.segv : &original.bus, nullptr);
    return;
  }
  waiting_frame = frame;
  if ((before.sa_flags & SA_SIGINFO) != 0)
    before.sa_sigaction(signal, info, context);
  else
    before.sa_handler(signal);
  waiting_frame = 0;
}

void on_fault(int signal, siginfo_t* info, void* context) {
  if (!redirect(*static_cast<ucontext_t*>(context))) pass_on(signal, info, context);
}

Status install_one(int signal, struct sigaction& before) {
  struct sigaction current {};
  if (::sigaction(signal, nullptr, &current) != 0) return system_error("cannot ask for the fault handler", errno);
  if ((current.sa_flags & SA_SIGINFO) != 0 && current.sa_sigaction == on_fault) return Ok{};
  before = current;
  struct sigaction ours {};
  ours.sa_sigaction = on_fault;
  // On the alternate stack, as a stack overflow must still reach the program's own handler; and never blocked by
  // itself: a guarded load outside of handlers faults, a tick comes before the first instruction of this handler, and a
  // guarded load of the tick's faults, which would be death if the signal were blocked.
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  ours.sa_mask = current.sa_mask;
  ::sigdelset(&ours.sa_mask, signal);
  if (::sigaction(signal, &ours, nullptr) != 0) return system_error("cannot install the fault handler", errno);
  return Ok{};
}

}  // namespace

void FaultGuard::expect_traps(void (*handler)(int, siginfo_t*, void*)) {
  trap_handler.store(reinterpret_cast<std::uintptr_t>(handler), std::memory_order_relaxed);
}

Status FaultGuard::ensure_installed() {
  const std::lock_guard lock(install_mutex);
  if (!has_original) {
    if (::sigaction(SIGSEGV, nullptr, &original.segv) != 0 || ::sigaction(SIGBUS, nullptr, &original.bus) != 0)
      return system_error("cannot ask for the fault handlers", errno);
    has_original = true;
  }
  PLIMSOLL_TRY(install_one(SIGSEGV, previous.segv));
  return install_one(SIGBUS, previous.bus);
}

}  // namespace plimsoll::memory
