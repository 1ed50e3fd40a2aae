#include "memory/local.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csetjmp>
#include <csignal>

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

}  // namespace
}  // namespace plimsoll::memory
