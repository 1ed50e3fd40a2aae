#include "capture/call_numbers.h"

#include <poll.h>
#include <pthread.h>
#include <sys/syscall.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <ctime>

#include "capture/thread_slots.h"
#include "memory/local.h"
#include "os/os.h"
#include "os/own_thread.h"

namespace plimsoll::capture {

#if defined(__x86_64__)

namespace {

constexpr std::uint64_t kCallBytes = 2, kWord = 8;
constexpr std::size_t kMostWords = 32;  // of the stack, that may be between: 7 in Debian's 2.43

// What is on the stack where a call has come back.
struct ComeBack {
  std::uint64_t at = 0;  // the address behind the call
  std::array<std::uint64_t, kMostWords> stack{};
};

// Of the thread that learns; it alone takes the signal, and reads them when it has.
std::atomic<ComeBack*> expected{nullptr};
std::atomic<std::uint64_t> learned_at{0};
std::atomic<std::uint64_t> learned_offset{0};

void on_signal(int /*signal*/, siginfo_t* /*info*/, void* context) {
  const gregset_t& registers = static_cast<const ucontext_t*>(context)->uc_mcontext.gregs;
  ComeBack* const found = expected.load(std::memory_order_relaxed);
  if (found == nullptr || registers[REG_RAX] != -EINTR) return;
  constexpr memory::LocalReader kMemory;
  const auto top = static_cast<std::uint64_t>(registers[REG_RSP]);
  for (std::size_t i = 0; i < kMostWords; ++i)
    if (!kMemory.load(Address{top + i * kWord}, found->stack[i])) return;
  found->at = static_cast<std::uint64_t>(registers[REG_RIP]);
}

// What there is when the signal ends `call`, which waits for milliseconds.
template <typename Call>
ComeBack ended_by(const os::ThreadTick& tick, Call call) {
  constexpr std::int64_t kSoon = 50'000, kTrials = 20;
  ComeBack found;
  expected.store(&found, std::memory_order_relaxed);
  for (int i = 0; i < kTrials && found.at == 0; ++i) {  // the signal may come before the wait
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (!tick.restart(kSoon, 0)) break;
    call();
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  expected.store(nullptr, std::memory_order_relaxed);
  tick.pause();
  return found;
}

// Takes `signal` alone.
void learn_on_this_thread(int signal) {
  sigset_t taken;
  ::sigemptyset(&taken);
  ::sigaddset(&taken, signal);
  ::pthread_sigmask(SIG_UNBLOCK, &taken, nullptr);
  constexpr std::int64_t kLong = 1'000'000'000;
  constexpr int kMilliseconds = 2;
  const Result<os::ThreadTick> tick = os::ThreadTick::create(
      os::TickClock::kMonotonic, {os::current_tid(), signal, ThreadSlots::kUnheard, kLong, kLong});
  if (!tick.ok()) return;
  const ComeBack polled = ended_by(tick.value(), [] { ::poll(nullptr, 0, kMilliseconds); });
  const ComeBack slept = ended_by(tick.value(), [] {
    const timespec time{0, kMilliseconds * 1'000'000};
    ::clock_nanosleep(CLOCK_MONOTONIC, 0, &time, nullptr);
  });
  if (polled.at == 0 || polled.at != slept.at) return;
  for (std::size_t i = 0; i < kMostWords; ++i) {
    if (polled.stack[i] != SYS_poll || slept.stack[i] != SYS_clock_nanosleep) continue;
    learned_offset.store(i * kWord, std::memory_order_relaxed);
    return learned_at.store(polled.at, std::memory_order_release);
  }
}

// Whether the code that ends at `end` is that; `found` gets what it has for each byte of `code` that is kAny, the
// first in the lowest bits.
constexpr int kAny = -1;
template <std::size_t kSize>
bool is_code_before(std::uint64_t end, const std::array<int, kSize>& code, std::uint64_t& found) {
  constexpr memory::LocalReader kMemory;
  constexpr unsigned kByteBits = 8;
  unsigned shift = 0;
  found = 0;
  for (std::size_t i = 0; i < kSize; ++i) {
    std::uint8_t byte = 0;
    if (!kMemory.load(Address{end - kSize + i}, byte)) return false;
    if (code[i] != kAny && byte != code[i]) return false;
    if (code[i] != kAny) continue;
    found |= static_cast<std::uint64_t>(byte) << shift;
    shift += kByteBits;
  }
  return true;
}

std::int64_t word_of_stack(const gregset_t& registers, std::uint64_t offset) {
  constexpr memory::LocalReader kMemory;
  std::uint64_t word = 0;
  const auto top = static_cast<std::uint64_t>(registers[REG_RSP]);
  return kMemory.load(Address{top + offset}, word) ? static_cast<std::int64_t>(word) : -1;
}

// The number that the code before `end` moves to EAX: `mov number, %eax`, or for 0 `xor %eax, %eax`.
std::int64_t number_moved_before(std::uint64_t end) {
  constexpr std::array kMove{0xb8, kAny, kAny, kAny, kAny};
  constexpr std::array kClear{0x31, 0xc0};
  constexpr std::uint64_t kRex = 0x40, kRexMask = 0xf0;
  std::uint64_t number = 0, prefix = 0;
  if (is_code_before(end, kClear, number)) return 0;
  if (!is_code_before(end, kMove, number)) return -1;
  // With a REX prefix before it, it moves to another register.
  const bool is_known = is_code_before(end - kMove.size(), std::array{kAny}, prefix);
  return is_known && (prefix & kRexMask) != kRex ? static_cast<std::int64_t>(number) : -1;
}

// Where `mov offset(%rsp), %register` begins that ends at `end`; 0 if there is none, or its register is RAX.
std::uint64_t load_before(std::uint64_t end) {
  constexpr std::array kLoad{0x8b, kAny, 0x24, kAny};
  constexpr std::uint64_t kMode = 0xc7, kStackAndByte = 0x44, kRegister = 0x38, kWide = 0x48;
  std::uint64_t found = 0, prefix = 0;
  if (!is_code_before(end, kLoad, found)) return 0;
  if ((found & kMode) != kStackAndByte || (found & kRegister) == 0) return 0;
  const std::uint64_t start = end - kLoad.size();
  return is_code_before(start, std::array{kAny}, prefix) && prefix == kWide ? start - 1 : start;
}

}  // namespace

void learn_call_numbers(int signal) noexcept {
  static std::atomic<bool> was_tried{false};
  if (was_tried.exchange(true)) return;
  struct sigaction action {
  }, before{};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
  if (::sigaction(signal, &action, &before) != 0) return;
  const auto learn = [](void* argument) -> void* {
    os::become_own_thread();
    learn_on_this_thread(*static_cast<const int*>(argument));
    return nullptr;
  };
  // (If there cannot be another thread, there is none for the recording, either, which says so.)
  pthread_t thread{};
  if (os::start_own_thread(thread, "plimsoll", learn, &signal) == 0) ::pthread_join(thread, nullptr);
  ::sigaction(signal, &before, nullptr);
}

std::int64_t number_of_ended_call(const ucontext_t& context) noexcept {
  const gregset_t& registers = context.uc_mcontext.gregs;
  const auto end = static_cast<std::uint64_t>(registers[REG_RIP]);
  if (end != 0 && end == learned_at.load(std::memory_order_acquire))
    return word_of_stack(registers, learned_offset.load(std::memory_order_relaxed));
  constexpr std::array kFromStack{0x48, 0x8b, 0x44, 0x24, kAny};  // mov offset(%rsp), %rax
  constexpr std::uint64_t kMostOffset = 0x80;
  const std::uint64_t start = end - kCallBytes;
  std::uint64_t offset = 0;
  if (is_code_before(start, kFromStack, offset) && offset < kMostOffset) return word_of_stack(registers, offset);
  const std::int64_t number = number_moved_before(start);
  if (number >= 0) return number;
  const std::uint64_t load = load_before(start);  // an argument may come between
  return load != 0 ? number_moved_before(load) : -1;
}

#else

void learn_call_numbers(int /*signal*/) noexcept {}
std::int64_t number_of_ended_call(const ucontext_t& /*context*/) noexcept { return -1; }

#endif

}  // namespace plimsoll::capture
