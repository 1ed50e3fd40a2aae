// os/process_test.cc: processes as /proc draws them.
#include "os/process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "os/os.h"
#include "os/proc_files_linux.h"

namespace plimsoll::os {
namespace {

TEST(Mappings, AreReadFromTheirLines) {
  // GIVEN a program, a file that was deleted, with spaces in its name, and memory with and without a name
  const std::vector<Mapping> mappings = parse_mappings(
      "55d0a000-55d0b000 r-xp 00001000 08:01 1234                       /usr/bin/python3.12\n"
      "7f0000000000-7f0000001000 rw-p 00000000 103:02 99 /tmp/my file (deleted)\n"
      "7f0000002000-7f0000003000 rw-p 00000000 00:00 0 \n"
      "7fff00000000-7fff00001000 rw-p 00000000 00:00 0                  [stack]\n");
  // THEN each is what its line says
  ASSERT_EQ(mappings.size(), 4U);
  EXPECT_EQ(mappings[0].start, 0x55d0a000U);
  EXPECT_EQ(mappings[0].end, 0x55d0b000U);
  EXPECT_EQ(mappings[0].file_offset, 0x1000U);
  EXPECT_EQ(mappings[0].inode, 1234U);
  EXPECT_TRUE(mappings[0].is_executable);
  EXPECT_TRUE(mappings[0].is_readable);
  EXPECT_FALSE(mappings[0].is_writable);
  EXPECT_FALSE(mappings[0].is_shared);
  EXPECT_EQ(mappings[0].path, "/usr/bin/python3.12");
  EXPECT_EQ(mappings[1].path, "/tmp/my file (deleted)");
  EXPECT_TRUE(mappings[1].is_writable);
  EXPECT_EQ(mappings[2].path, "");
  EXPECT_EQ(mappings[3].path, "[stack]");
}

TEST(Mappings, AreOfOneFileIfNumberAndDeviceAre) {
  const std::vector<Mapping> mappings = parse_mappings(
      "1000-2000 r-xp 00000000 08:01 99 /usr/lib/liba.so\n"
      "2000-3000 rw-p 00001000 08:01 99 /usr/lib/liba.so\n"
      "3000-4000 r-xp 00000000 01:08 99 /mnt/libb.so\n"
      "4000-5000 r-xp 00000000 08:01 98 /usr/lib/libc.so\n"
      "5000-6000 rw-p 00000000 00:00 0 \n");
  EXPECT_TRUE(are_of_one_file(mappings[0], mappings[1]));
  EXPECT_FALSE(are_of_one_file(mappings[0], mappings[2]));
  EXPECT_FALSE(are_of_one_file(mappings[0], mappings[3]));
  EXPECT_FALSE(are_of_one_file(mappings[4], mappings[4])) << "of no file";
}

#if defined(__x86_64__)
TEST(IdleCounter, CountsNothingAndIsNotHandedDown) {
  const UniqueFd counter = open_idle_counter();
  if (counter.get() < 0) GTEST_SKIP() << "no perf events here: " << std::strerror(errno);
  EXPECT_EQ(::fcntl(counter.get(), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
  std::uint64_t counted = 1;
  EXPECT_EQ(::read(counter.get(), &counted, sizeof counted), static_cast<ssize_t>(sizeof counted));
  EXPECT_EQ(counted, 0U);
}

TEST(ThreadProbe, ReadsALongStatus) {
  // GIVEN a thread that is in thousands of groups, which its status lists before what is asked for
  bool is_allowed = false, blocks = false;
  std::optional<Departures> departures;
  std::thread([&] {
    std::vector<gid_t> groups(3000);
    std::iota(groups.begin(), groups.end(), 1'000'000U);
    // (The system's own call: of this thread alone.)
    is_allowed = ::syscall(SYS_setgroups, groups.size(), groups.data()) == 0;
    sigset_t set{};
    ::sigaddset(&set, SIGUSR1);
    ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
    departures = ThreadProbe(current_tid(), ThreadProbe::Keep::kOpen, ::getpid()).departures();
    blocks = blocks_signal(current_tid(), SIGUSR1);
  }).join();
  if (!is_allowed) GTEST_SKIP() << "only root can be in any groups";
  EXPECT_TRUE(departures.has_value());
  EXPECT_TRUE(blocks);
}

TEST(ThreadProbe, TellsAThreadThatHasEndedFromOneThatCannotBeAskedFor) {
  // GIVEN probes of this thread, which open their files when they are asked, or have them open
  const ThreadProbe closed(current_tid(), ThreadProbe::Keep::kClosed), open(current_tid(), ThreadProbe::Keep::kOpen);
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  // WHEN no more files can be opened
  const rlimit none{0, limit.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &none);
  const bool is_told = closed.schedule().has_value(), has_ended = closed.has_ended() || open.has_ended();
  ::setrlimit(RLIMIT_NOFILE, &limit);
  // THEN it is not told of, and has not ended
  EXPECT_FALSE(is_told);
  EXPECT_FALSE(has_ended);
  // AND one that has ended has
  std::optional<ThreadProbe> gone[2];
  std::thread([&] {
    gone[0].emplace(current_tid(), ThreadProbe::Keep::kClosed);
    gone[1].emplace(current_tid(), ThreadProbe::Keep::kOpen);
  }).join();
  // (join() returns when the thread has given up its stack, which is a moment before the kernel forgets it.)
  for (const auto& each : gone)
    while (!each->has_ended()) ::sched_yield();
}

TEST(KernelWait, TellsWhereAThreadIs) {
  // GIVEN a read, as the kernel shows it: number, six arguments, stack pointer, instruction
  const KernelWait wait = parse_wait("0 0x3 0x7ffd00001000 0x400 0x0 0x0 0x0 0x7ffd00000ff8 0x7f3100001234\n");
  EXPECT_EQ(wait.kind, KernelWait::Kind::kIo);
  EXPECT_EQ(wait.stack_pointer, Address{0x7ffd00000ff8});
  EXPECT_EQ(wait.instruction, Address{0x7f3100001234});
  EXPECT_TRUE(wait.is_resumable);
  // AND a thread that was stopped outside of any call, which has no arguments
  const KernelWait stopped = parse_wait("-1 0x7ffd00000ff8 0x7f3100001234\n");
  EXPECT_EQ(stopped.kind, KernelWait::Kind::kOther);
  EXPECT_EQ(stopped.stack_pointer, Address{0x7ffd00000ff8});
  EXPECT_EQ(stopped.instruction, Address{0x7f3100001234});
  EXPECT_FALSE(stopped.is_resumable);
}

TEST(KernelWait, TellsWhatAThreadGoesOnWaitingFor) {
  using Kind = KernelWait::Kind;
  // GIVEN calls that the kernel goes on with, and in which of its functions
  const auto kind_in = [](std::string_view function, std::string_view second = "0x1") {
    return parse_wait("219 0x1000 " + std::string(second) + " 0x0 0x7ffe 0x0 0x0 0x7ffd 0x7f31", function).kind;
  };
  EXPECT_EQ(kind_in("futex_do_wait"), Kind::kFutex);
  EXPECT_EQ(kind_in("hrtimer_nanosleep"), Kind::kSleep);
  EXPECT_EQ(kind_in("poll_schedule_timeout.constprop.0"), Kind::kIo);
  EXPECT_EQ(kind_in("poll_schedule_timeout.constprop.0", "0x0"), Kind::kSleep);
  EXPECT_EQ(kind_in("0"), Kind::kOther);  // a kernel that does not say so
  EXPECT_EQ(parse_wait("219 0x1000 0x80 0x0 0x7ffe 0x0 0x0 0x7ffd 0x7f31", "futex_wait_queue").futex, Address{0x1000});
}

TEST(KernelWait, IsTheSameAfterTheProcessWasStoppedAndGoesOn) {
  // GIVEN a process that waits for input, for a limited time
  const pid_t child = ::fork();
  if (child == 0) {
    pollfd never{-1, POLLIN, 0};
    ::poll(&never, 1, 600'000);
    ::_exit(0);
  }
  const auto line = [&] { return read_small_file("/proc/" + std::to_string(child) + "/syscall"); };
  const auto starts = [](const std::string& text, long number) {
    return text.starts_with(std::to_string(number) + " ");
  };
  while (!starts(line(), SYS_poll) && !starts(line(), SYS_ppoll)) ::sched_yield();
  // WHEN it is stopped, and goes on
  ::kill(child, SIGSTOP);
  ::waitpid(child, nullptr, WUNTRACED);
  ::kill(child, SIGCONT);
  while (!goes_on_waiting(line())) ::sched_yield();
  const KernelWait wait = ThreadProbe(Tid{child}, ThreadProbe::Keep::kClosed, child).wait();
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  // THEN it waits for the same
  EXPECT_EQ(wait.kind, KernelWait::Kind::kIo);
}

TEST(KernelWait, IsResumableOnlyIfTheThreadWouldNotNotice) {
  const auto is_resumable = [](std::string_view line) { return parse_wait(line).is_resumable; };
  // GIVEN waits for a lock, with and without a limit on their time
  EXPECT_TRUE(is_resumable("202 0x1000 0x80 0x0 0x0 0x0 0x0 0x7ffd 0x7f31"));
  EXPECT_FALSE(is_resumable("202 0x1000 0x80 0x0 0x7ffe 0x0 0x0 0x7ffd 0x7f31"));
  // ... and for events
  EXPECT_TRUE(is_resumable("232 0x3 0x1000 0x1 0xffffffff 0x0 0x0 0x7ffd 0x7f31"));
  EXPECT_FALSE(is_resumable("232 0x3 0x1000 0x1 0x3e8 0x0 0x0 0x7ffd 0x7f31"));
  // ... and a write, which may have written something already, and what is no call at all
  EXPECT_FALSE(is_resumable("1 0x3 0x1000 0x100000 0x0 0x0 0x0 0x7ffd 0x7f31"));
  EXPECT_FALSE(is_resumable("running"));
  EXPECT_FALSE(is_resumable("what?"));
  EXPECT_EQ(parse_wait("").kind, KernelWait::Kind::kUnknown);
}
#endif

TEST(Usage, IsReadWhateverTheProcessIsCalled) {
  // GIVEN a process whose name looks like more fields
  const std::optional<Usage> usage = parse_usage(
      "42 (a) S (b) R 1 42 42 0 -1 4194304 100 0 0 0 7 3 0 0 20 0 5 0 12345 10485760 1000 18446744073709551615 1\n",
      4096);
  ASSERT_TRUE(usage);
  EXPECT_EQ(usage->state, 'R');
  EXPECT_EQ(usage->threads, 5);
  EXPECT_EQ(usage->resident_bytes, 4'096'000);
}

TEST(Usage, ThatIsDamagedIsNone) {
  for (const char* stat : {"", "42", "42 (a", "42 (a) ", "42 (a) S 1 2 3"})
    EXPECT_FALSE(parse_usage(stat, 4096)) << stat;
}

TEST(Usage, OfThisProcessGrows) {
  const std::optional<Usage> usage = usage_of(Pid{::getpid()});
  ASSERT_TRUE(usage);
  EXPECT_GT(usage->resident_bytes, 0);
  EXPECT_GT(usage->cpu_ns, 0);
  EXPECT_GE(usage->threads, 1);
  EXPECT_FALSE(usage_of(Pid{0x7fffffff}));
}

TEST(Mappings, ThatMakeNoSenseAreLeftOut) {
  EXPECT_TRUE(parse_mappings("").empty());
  EXPECT_TRUE(parse_mappings("55d0a000\n-\n1-2 r\nzz-zz r-xp 0 0:0 0\n2000-1000 r-xp 00000000 08:01 1 /x\n").empty());
}

TEST(Mappings, TellHowMuchOfThemIsInMemory) {
  const std::vector<ResidentMapping> mappings = parse_resident_mappings(
      "1000-5000 rw-p 00000000 00:00 0 \nSize:                 16 kB\nRss:                   8 kB\nPss: 3 kB\n"
      "7f0000000000-7f0000001000 r-xp 00000000 08:01 12   /lib/x.so\nRss:       400 kB\nVmFlags: rd ex\nRss: x\n");
  ASSERT_EQ(mappings.size(), 2U);
  EXPECT_EQ(mappings[0].resident_bytes, 8192U);
  EXPECT_EQ(mappings[1].mapping.path, "/lib/x.so");
  EXPECT_EQ(mappings[1].resident_bytes, 4096U) << "never more than there is";
  // AND of this process, what it has written to is in memory
  std::vector<char> written(1 << 20, 1);
  const Result<std::vector<ResidentMapping>> own = resident_mappings_of(Pid{::getpid()});
  ASSERT_TRUE(own.ok());
  const auto at = reinterpret_cast<std::uint64_t>(written.data() + written.size() / 2);
  const auto found = std::find_if(own.value().begin(), own.value().end(), [&](const ResidentMapping& each) {
    return each.mapping.start <= at && at < each.mapping.end;
  });
  ASSERT_NE(found, own.value().end());
  EXPECT_GE(found->resident_bytes, written.size() / 2);
}

TEST(Process, ShowsItsThreads) {
  const std::vector<Task> tasks = tasks_of(Pid{::getpid()});
  const auto self =
      std::find_if(tasks.begin(), tasks.end(), [](const Task& task) { return task.tid == current_tid(); });
  ASSERT_NE(self, tasks.end());
  EXPECT_EQ(self->state, 'R');
  EXPECT_EQ(self->name, thread_name(current_tid()));
}

TEST(Process, ShowsNamesOfThreadsAsTheyAre) {
  // GIVEN a thread with a name that the kernel writes otherwise in some of its files
  for (const char* name : {"a\\b", "a\nb", "\\n", "C:\\", ") R (x", ""}) {
    std::string told;
    std::thread([&] {
      ::pthread_setname_np(::pthread_self(), name);
      for (const Task& task : tasks_of(Pid{::getpid()}))
        if (task.tid == current_tid()) told = task.name;
    }).join();
    EXPECT_EQ(told, name);
  }
}

TEST(Process, ThatIsNotThereIsAnErrorThatSaysSo) {
  constexpr Pid kNobody{0x7fffffff};
  const Result<std::vector<Mapping>> mappings = mappings_of(kNobody);
  ASSERT_FALSE(mappings.ok());
  EXPECT_EQ(mappings.error().kind, ErrorKind::kBadInput);
  EXPECT_EQ(mappings.error().message, "there is no process 2147483647");
  EXPECT_TRUE(tasks_of(kNobody).empty());
  EXPECT_FALSE(is_alive(kNobody));
}

TEST(Process, OpensTheFileBehindAMapping) {
  const Pid self{::getpid()};
  const Result<std::vector<Mapping>> mappings = mappings_of(self);
  ASSERT_TRUE(mappings.ok());
  const auto program = std::find_if(mappings.value().begin(), mappings.value().end(),
                                    [&](const Mapping& mapping) { return mapping.path == program_file(self); });
  ASSERT_NE(program, mappings.value().end());
  EXPECT_TRUE(open_mapped_file(self, *program).is_open());
  // but no other that has taken its name
  Mapping other = *program;
  other.inode += 1;
  EXPECT_FALSE(open_mapped_file(self, other).is_open());
}

}  // namespace
}  // namespace plimsoll::os
