#include "memory/local.h"

#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <mutex>
#include <utility>

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

// What stood at a signal before a handler of ours.
struct Previous {
  struct sigaction segv;
  struct sigaction bus;
  struct sigaction& of(int signal) {
    return signal == SIGSEGV ? segv : bus;
  }
};

// A handler may be put over ours, and ours over that; and when that one is taken out again (faulthandler.disable()), it
// puts back what it had found, which is our first one. So each of ours is another function, which knows what it stands
// in front of. Of the last one there is one only, however often it is put over others. Written under the mutex while
// the signal's handler is not yet that one.
constexpr std::size_t kMostLayers = 8;
std::array<Previous, kMostLayers> previous;
struct LayersUsed {
  std::size_t segv = 0;
  std::size_t bus = 0;
  std::size_t& of(int signal) { return signal == SIGSEGV ? segv : bus; }
};
LayersUsed layers_used;
std::mutex install_mutex;

// What of ours is waiting for the previous handler to return, on this thread.
struct Waiting {
  std::uintptr_t frame = 0;  // of pass_on
  std::size_t layer = 0;
};
thread_local constinit Waiting waiting __attribute__((tls_model("initial-exec")));

std::atomic<std::uintptr_t> trap_handler{0};

// Where the fault was. A trap that is pending at that instant is delivered before the fault, even if it is blocked
// (dequeue_synchronous_signal in the kernel's signal.c takes the first in the queue): then the fault seems to be at the
// first instruction of the trap's handler, whose third argument is the context that it interrupted.
ucontext_t& faulted(ucontext_t& context) {
  if (static_cast<std::uintptr_t>(program_counter(context)) != trap_handler.load(std::memory_order_relaxed))
    return context;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): an argument is a register
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

bool is_function(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) != 0 || (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN);
}

// Whether a signal that was sent is about a fault of a guarded load: a handler that somebody has put over ours a moment
// ago met that fault, put back what it had found, and sends it on (faulthandler does). When it returns, the load runs
// again. Told by the stack, on which the kernel has left where the load was.
bool is_about_guarded_load(const siginfo_t& info, std::uintptr_t frame) {
  constexpr std::uintptr_t kNear = std::uintptr_t{1} << 16U;  // two signals' frames, with all that a CPU has
  if (info.si_code > 0 || info.si_pid != ::getpid()) return false;
  const std::uintptr_t begin = frame & ~std::uintptr_t{sizeof(std::uintptr_t) - 1};
  for (std::uintptr_t at = begin; at < begin + kNear; at += sizeof(std::uintptr_t)) {
    std::uint64_t word = 0;
    if (!LocalReader{}.load(Address{at}, word)) return false;
    for (const FaultRow* row = __start_plimsoll_fault_table; row != __stop_plimsoll_fault_table; ++row)
      if (target_of(row->instruction) == word) return true;
  }
  return false;
}

// Nobody wants the signal but the kernel. With its action in place a faulting instruction runs again, and the program
// dies of its own fault, with its own core file; a signal that was sent (raise, kill) has to be sent again.
void leave_to_kernel(int signal, const siginfo_t& info, const struct sigaction& action) {
  const bool was_sent = info.si_code <= 0;
  const bool is_ignored = (action.sa_flags & SA_SIGINFO) == 0 && action.sa_handler == SIG_IGN;
  if (was_sent && is_ignored) return;
  ::sigaction(signal, &action, nullptr);
  if (was_sent) ::syscall(SYS_tgkill, ::getpid(), ::syscall(SYS_gettid), signal);
}

// A fault of the program's own: whoever handled it before us gets it.
void pass_on(std::size_t layer, int signal, siginfo_t* info, void* context) {
  const struct sigaction& before = previous[layer].of(signal);
  const auto frame = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  if (is_about_guarded_load(*info, frame)) return;
  // Inside the previous handler's own call the signal comes back to us when that handler, having done its work, puts
  // back what it once found: one of ours below, or if there were too many, this one. (A deeper frame; one that jumped
  // out is not deeper.)
  const bool came_back = waiting.frame != 0 && frame < waiting.frame && layer >= waiting.layer;
  if (!is_function(before) || came_back)
    return leave_to_kernel(signal, *info, is_function(before) ? previous[0].of(signal) : before);
  const Waiting outer = std::exchange(waiting, {frame, layer});
  if ((before.sa_flags & SA_SIGINFO) != 0)
    before.sa_sigaction(signal, info, context);
  else
    before.sa_handler(signal);
  waiting = outer;
}

template <std::size_t layer>
void on_fault(int signal, siginfo_t* info, void* context) {
  if (!redirect(*static_cast<ucontext_t*>(context))) pass_on(layer, signal, info, context);
}

using Handler = void (*)(int, siginfo_t*, void*);
constexpr auto kHandlers = []<std::size_t... layer>(std::index_sequence<layer...>) {
  return std::array<Handler, kMostLayers>{on_fault<layer>...};
}
(std::make_index_sequence<kMostLayers>{});

bool is_ours(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) != 0 &&
         std::find(kHandlers.begin(), kHandlers.end(), action.sa_sigaction) != kHandlers.end();
}

bool is_same_handler(const struct sigaction& a, const struct sigaction& b) {
  return a.sa_flags == b.sa_flags &&
         ((a.sa_flags & SA_SIGINFO) != 0 ? a.sa_sigaction == b.sa_sigaction : a.sa_handler == b.sa_handler);
}

// The one of our handlers that is to stand in front of `current`: the one that has before, or another.
std::size_t layer_over(int signal, const struct sigaction& current) {
  std::size_t& used = layers_used.of(signal);
  for (std::size_t layer = 0; layer < used; ++layer)
    if (is_same_handler(previous[layer].of(signal), current)) return layer;
  const std::size_t layer = std::min(used, kMostLayers - 1);
  previous[layer].of(signal) = current;
  used = layer + 1;
  return layer;
}

Status install_one(int signal) {
  struct sigaction current {};
  if (::sigaction(signal, nullptr, &current) != 0) return system_error("cannot ask for the fault handler", errno);
  if (is_ours(current)) return Ok{};
  struct sigaction ours {};
  ours.sa_sigaction = kHandlers[layer_over(signal, current)];
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
  PLIMSOLL_TRY(install_one(SIGSEGV));
  return install_one(SIGBUS);
}

}  // namespace plimsoll::memory
