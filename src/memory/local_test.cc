#include "memory/local.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "memory/reader.h"

namespace plimsoll::memory {
namespace {

static_assert(Reader<LocalReader>);

// Two pages, of which the second is not readable.
class HalfMapping {
 public:
  HalfMapping() : base_(::mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    ::mprotect(static_cast<char*>(base_) + 4096, 4096, PROT_NONE);
  }
  HalfMapping(const HalfMapping&) = delete;
  HalfMapping& operator=(const HalfMapping&) = delete;
  ~HalfMapping() { ::munmap(base_, 8192); }
  [[nodiscard]] Address at(std::uint64_t offset) const {
    return Address{reinterpret_cast<std::uint64_t>(base_) + offset};
  }

 private:
  void* base_;
};

TEST(LocalReader, ReadsWhatIsThere) {
  // GIVEN
  ASSERT_TRUE(FaultGuard::ensure_installed().ok());
  const std::uint64_t word = 0x1122334455667788U;
  const Address at{reinterpret_cast<std::uint64_t>(&word)};
  // WHEN
  std::uint64_t as64 = 0;
  std::uint32_t as32 = 0;
  std::uint8_t as8 = 0;
  // THEN
  EXPECT_TRUE(LocalReader{}.load(at, as64));
  EXPECT_TRUE(LocalReader{}.load(at, as32));
  EXPECT_TRUE(LocalReader{}.load(offset_by(at, 7), as8));
  std::uint64_t at64 = 0;
  std::uint32_t at32 = 0;
  EXPECT_TRUE(LocalReader{}.load_at(Address{raw(at) - 24}, 24, at64));
  EXPECT_TRUE(LocalReader{}.load_at(Address{raw(at) - 24}, 24, at32));
  EXPECT_EQ(at64, as64);
  EXPECT_EQ(at32, as32);
  EXPECT_EQ(as64, word);
  EXPECT_EQ(as32, 0x55667788U);
  EXPECT_EQ(as8, 0x11U);
}

// ---- a trap and a fault at once ----

volatile std::sig_atomic_t traps = 0;
void on_trap(int, siginfo_t*, void*) { traps = traps + 1; }

// Sends the calling thread a trap like those of perf events, which is to be delivered when it is not blocked.
void queue_trap() {
  siginfo_t info{};
  info.si_signo = SIGTRAP;
  info.si_code = 6;  // TRAP_PERF
  ASSERT_EQ(::syscall(SYS_rt_tgsigqueueinfo, ::getpid(), ::gettid(), SIGTRAP, &info), 0);
}

TEST(LocalReader, SurvivesABadAddressWhileATrapIsPending) {
  // GIVEN a thread that blocks traps, as a trap's own handler does, and one that is pending
  ASSERT_TRUE(FaultGuard::ensure_installed().ok());
  FaultGuard::expect_traps(on_trap);
  struct sigaction ours {};
  struct sigaction before {};
  ours.sa_sigaction = on_trap;
  ours.sa_flags = SA_SIGINFO;
  ASSERT_EQ(::sigaction(SIGTRAP, &ours, &before), 0);
  sigset_t trap;
  ::sigemptyset(&trap);
  ::sigaddset(&trap, SIGTRAP);
  ::pthread_sigmask(SIG_BLOCK, &trap, nullptr);
  std::uint64_t word = 0;
  traps = 0;
  for (const std::uint64_t bad : {0xdead'beef'dead'beefULL, 8ULL}) {
    queue_trap();
    // WHEN a guarded load faults: the kernel delivers the trap first, although it is blocked
    EXPECT_FALSE(LocalReader{}.load(Address{bad}, word));
  }
  // THEN the load says no, and no trap is lost
  ::pthread_sigmask(SIG_UNBLOCK, &trap, nullptr);
  EXPECT_EQ(traps, 2);
  ::sigaction(SIGTRAP, &before, nullptr);
}

TEST(LocalReader, SurvivesEveryKindOfBadAddress) {
  ASSERT_TRUE(FaultGuard::ensure_installed().ok());
  const HalfMapping mapping;
  std::uint64_t word = 0;
  EXPECT_FALSE(LocalReader{}.load(Address{0}, word));
  EXPECT_FALSE(LocalReader{}.load(Address{8}, word));
  EXPECT_FALSE(LocalReader{}.load(Address{0xdead'beef'dead'beefU}, word)) << "not canonical";
  EXPECT_FALSE(LocalReader{}.load(mapping.at(4096), word)) << "PROT_NONE";
  std::uint32_t half = 0;
  EXPECT_FALSE(LocalReader{}.load_at(mapping.at(0), 4096, word)) << "PROT_NONE, with an offset";
  EXPECT_FALSE(LocalReader{}.load_at(mapping.at(0), 4096, half)) << "likewise";
  EXPECT_FALSE(LocalReader{}.load(mapping.at(4092), word)) << "straddles the end of readable memory";
}

TEST(LocalReader, ReadsARunUpToTheLastReadableByteAndNotOneMore) {
  ASSERT_TRUE(FaultGuard::ensure_installed().ok());
  const HalfMapping mapping;
  char bytes[64];
  EXPECT_TRUE(LocalReader{}.read(mapping.at(4096 - 61), bytes, 61));
  EXPECT_FALSE(LocalReader{}.read(mapping.at(4096 - 61), bytes, 62));
}

sigjmp_buf after_fault;
void programs_own_handler(int) { siglongjmp(after_fault, 1); }

TEST(FaultGuard, PassesTheProgramsOwnFaultsToTheProgramsOwnHandler) {
  // GIVEN a program with a SIGSEGV handler, and our guard in front of it
  struct sigaction theirs {};
  struct sigaction original {};
  theirs.sa_handler = programs_own_handler;
  ASSERT_EQ(::sigaction(SIGSEGV, &theirs, &original), 0);
  ASSERT_TRUE(FaultGuard::ensure_installed().ok());
  // WHEN the program itself touches memory that is not there
  const HalfMapping mapping;
  volatile bool handled = false;
  if (sigsetjmp(after_fault, 1) == 0)
    *reinterpret_cast<volatile char*>(raw(mapping.at(4096))) = 1;
  else
    handled = true;
  // THEN its handler ran
  EXPECT_TRUE(handled);
  ASSERT_EQ(::sigaction(SIGSEGV, &original, nullptr), 0);
}

volatile bool could_load = true;
void handler_with_a_guarded_load(int) {
  std::uint64_t word = 0;
  could_load = LocalReader{}.load(Address{8}, word);
  siglongjmp(after_fault, 1);
}

TEST(FaultGuard, IsThereForFaultsInWhatInterruptsIt) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer calls handlers itself, with signals as it wants them";
#endif
  // GIVEN a handler behind ours, which does a guarded load, as a tick does that comes before our first instruction
  struct sigaction theirs {};
  struct sigaction original {};
  theirs.sa_handler = handler_with_a_guarded_load;
  ::sigaddset(&theirs.sa_mask, SIGSEGV);
  ASSERT_EQ(::sigaction(SIGSEGV, &theirs, &original), 0);
  ASSERT_TRUE(FaultGuard::ensure_installed().ok());
  // WHEN a fault leads there, and the load of nothing is one more
  const HalfMapping mapping;
  if (sigsetjmp(after_fault, 1) == 0) *reinterpret_cast<volatile char*>(raw(mapping.at(4096))) = 1;
  // THEN it is an answer, and not the program's end
  EXPECT_FALSE(could_load);
  ASSERT_EQ(::sigaction(SIGSEGV, &original, nullptr), 0);
}

TEST(FaultGuard, ComesBackToTheFrontAfterTheProgramInstalledAnotherHandler) {
  ASSERT_TRUE(FaultGuard::ensure_installed().ok());
  struct sigaction theirs {};
  struct sigaction ours {};
  theirs.sa_handler = programs_own_handler;
  ASSERT_EQ(::sigaction(SIGSEGV, &theirs, &ours), 0);
  ASSERT_TRUE(FaultGuard::ensure_installed().ok());
  std::uint64_t word = 0;
  EXPECT_FALSE(LocalReader{}.load(Address{8}, word));
  ASSERT_EQ(::sigaction(SIGSEGV, &ours, nullptr), 0);
}

// Puts the guard in front of an action, in a process that is to die.
void guard_over(const struct sigaction& action) {
  ::sigaction(SIGSEGV, &action, nullptr);
  if (!FaultGuard::ensure_installed().ok()) std::exit(2);
}
struct sigaction action_of(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  return action;
}
void touch_nothing() {
  const HalfMapping mapping;
  *reinterpret_cast<volatile char*>(raw(mapping.at(4096))) = 1;
}
bool is_enabled = false;
void handler_that_may_be_disabled(int) {
  if (is_enabled) std::_Exit(3);
}

TEST(FaultGuardDeathTest, ASignalThatIsSentHasTheEffectThatItHasWithoutUs) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer calls handlers itself, with signals as it wants them";
#endif
  EXPECT_EXIT((guard_over(action_of(SIG_DFL)), ::raise(SIGSEGV), std::_Exit(0)), ::testing::KilledBySignal(SIGSEGV),
              "");
  EXPECT_EXIT((guard_over(action_of(SIG_IGN)), ::raise(SIGSEGV), std::_Exit(0)), ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT((guard_over(action_of([](int) { std::_Exit(5); })), ::raise(SIGSEGV)), ::testing::ExitedWithCode(5), "");
}

TEST(FaultGuardDeathTest, AFaultIsTheEndAfterAHandlerThatWasPutOverOursHasGone) {
  // GIVEN a handler that is put over ours, and finds ours in front of it again; as faulthandler.enable() does
  const auto come_and_go = [](int times) {
    guard_over(action_of(SIG_DFL));
    for (int i = 0; i < times; ++i) {
      struct sigaction found {};
      const struct sigaction theirs = action_of(handler_that_may_be_disabled);
      ::sigaction(SIGSEGV, &theirs, &found);
      if (!FaultGuard::ensure_installed().ok()) std::exit(2);
      // WHEN it goes, it puts back what it had found, and does nothing from then on
      ::sigaction(SIGSEGV, &found, nullptr);
      if (!FaultGuard::ensure_installed().ok()) std::exit(2);
    }
    std::uint64_t word = 0;
    if (LocalReader{}.load(Address{8}, word)) std::exit(2);
    touch_nothing();
  };
  // THEN a fault is the program's end, once or a hundred times after
  EXPECT_EXIT(come_and_go(1), ::testing::KilledBySignal(SIGSEGV), "");
  EXPECT_EXIT(come_and_go(100), ::testing::KilledBySignal(SIGSEGV), "");
}

struct sigaction found_by_a_stranger {};
void handler_that_puts_back_and_sends_on(int signal) {
  ::sigaction(signal, &found_by_a_stranger, nullptr);
  ::raise(signal);
}

TEST(FaultGuardDeathTest, AGuardedLoadSurvivesAHandlerThatWasPutOverOursAMomentAgo) {
  // GIVEN a handler over ours that does as faulthandler does
  const auto load = [] {
    guard_over(action_of(SIG_DFL));
    const struct sigaction theirs = action_of(handler_that_puts_back_and_sends_on);
    ::sigaction(SIGSEGV, &theirs, &found_by_a_stranger);
    // WHEN it is met by a guarded load THEN that has an answer
    std::uint64_t word = 0;
    const bool is_there = LocalReader{}.load(Address{8}, word);
    std::fputs(is_there ? "read nothing" : "survived", stderr);
    // AND what the program sends itself from then on is not taken for that
    ::raise(SIGSEGV);
    std::_Exit(5);
  };
  EXPECT_EXIT(load(), ::testing::KilledBySignal(SIGSEGV), "survived");
}

TEST(FaultGuardDeathTest, AHandlerThatIsThereIsAskedHoweverManyThereWere) {
  // GIVEN more handlers, one over the other, than there are places for ours between them
  const auto pile = [] {
    guard_over(action_of(SIG_DFL));
    for (int i = 0; i < 20; ++i) {
      struct sigaction theirs = action_of(handler_that_may_be_disabled);
      theirs.sa_flags = i % 2 == 0 ? SA_NODEFER : SA_RESTART;
      ::sigaction(SIGSEGV, &theirs, nullptr);
      if (!FaultGuard::ensure_installed().ok()) std::exit(2);
    }
    is_enabled = true;
    touch_nothing();
  };
  // WHEN there is a fault THEN the last one has it
  EXPECT_EXIT(pile(), ::testing::ExitedWithCode(3), "");
}

}  // namespace
}  // namespace plimsoll::memory
