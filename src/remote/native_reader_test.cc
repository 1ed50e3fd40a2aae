// remote/native_reader_test.cc: the machine code of threads of another process: a copy of this one, whose functions are
// known.
#include "remote/native_reader.h"

#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <string>

#include "capture/native_resolver.h"

namespace plimsoll::remote {

// How often the child has gone round; shared with it.
std::atomic<std::uint64_t>* rounds = nullptr;

// Not in a nameless namespace, and not inlined: to be found under these names.
[[gnu::noinline]] void innermost_spin() {
  while (true) rounds->fetch_add(1, std::memory_order_relaxed);
}
[[gnu::noinline]] void around_spin() {
  innermost_spin();
  asm volatile("" ::: "memory");
}
[[gnu::noinline]] void deep_spin() {
  char room[std::size_t{64} << 10U];
  asm volatile("" : : "r"(room) : "memory");
  around_spin();
  asm volatile("" : : "r"(room) : "memory");
}
[[gnu::noinline]] void around_wait() {
  epoll_event event{};
  const int poll = ::epoll_create1(0);
  rounds->fetch_add(1);
  while (true) ::epoll_wait(poll, &event, 1, -1);
}

namespace {

class Child {
 public:
  explicit Child(void (*body)()) {
    void* room = ::mmap(nullptr, sizeof *rounds, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    rounds = new (room) std::atomic<std::uint64_t>(0);
    pid_ = ::fork();
    if (pid_ != 0) return;
    body();
    ::_exit(1);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    ::munmap(rounds, sizeof *rounds);
  }
  [[nodiscard]] pid_t pid() const { return pid_; }
  void await_rounds(std::uint64_t count) const {
    while (*rounds < count) ::sched_yield();
  }

 private:
  pid_t pid_ = -1;
};

// A look at a child's only thread.
class Looker {
 public:
  explicit Looker(const Child& child, std::size_t most_stack = NativeReader::kMostStack)
      : tid_(Tid{child.pid()}), most_stack_(most_stack), probe_(tid_, os::ThreadProbe::Keep::kOpen, child.pid()) {
    target_.pid = os::Pid{child.pid()};
    reader_.emplace(target_, stopper_, 200, most_stack_);
    python_.emplace(target_, 10);
    EXPECT_TRUE(reader_->refresh().ok());
  }

  NativeReader::Outcome stop() { return reader_->read_stopped(tid_, probe_, Address{}, *python_).outcome; }
  NativeReader::Outcome look_at_wait() {
    const std::optional<os::Schedule> schedule = probe_.schedule();
    return reader_->read_waiting({&probe_, *schedule}, probe_.wait(), Address{}, *python_).outcome;
  }
  [[nodiscard]] const os::ThreadProbe& probe() const { return probe_; }
  // The names of the first frames, and why there are no more.
  std::string first(std::size_t count) {
    const capture::NativeStack stack = reader_->unwind();
    capture::CodeRegistry registry(target_.layout, capture::CodeRegistry::Source::kTaught);
    capture::NativeResolver names(reader_->modules(), registry);
    std::string text;
    for (const native::NativeFrame& frame : stack.frames.first(std::min(count, stack.frames.size()))) {
      const std::string& name = names.function(names.frame_at(frame.instruction, monotonic_ns())->code).name;
      text += name.substr(name.rfind(':') + 1) + " ";
    }
    return text + native::text(stack.head.stop);
  }

 private:
  Tid tid_;
  Target target_;
  const std::size_t most_stack_;
  os::ThreadProbe probe_;
  os::ThreadStopper stopper_;
  std::optional<NativeReader> reader_;
  std::optional<StackReader> python_;
};

class NativeReaderTest : public ::testing::Test {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "with ThreadSanitizer functions call its own, which are on the stack, too";
#endif
    if (!os::kCanStopThreads) GTEST_SKIP() << "threads can be stopped on x86-64 only";
  }
};

TEST_F(NativeReaderTest, FindsAllFramesOfAThreadThatRuns) {
  const Child child(around_spin);
  child.await_rounds(1);
  Looker looker(child);
  if (looker.stop() == NativeReader::Outcome::kRefused) GTEST_SKIP() << "ptrace is not allowed here";
  EXPECT_EQ(looker.first(2), "innermost_spin() around_spin() complete");
}

TEST_F(NativeReaderTest, FindsThoseOfAThreadThatWaitsWithoutStoppingIt) {
  // GIVEN a thread in a call that a stop would end
  const Child child(around_wait);
  child.await_rounds(1);
  Looker looker(child);
  while (looker.probe().wait().kind != os::KernelWait::Kind::kIo) ::sched_yield();
  const std::optional<os::Schedule> before = looker.probe().schedule();
  // WHEN it is looked at
  ASSERT_EQ(looker.look_at_wait(), NativeReader::Outcome::kRead);
  // THEN its frames are there, and it has not come to a CPU for it
  EXPECT_TRUE(looker.first(2).starts_with("epoll_wait around_wait() ")) << looker.first(2);
  EXPECT_EQ(looker.probe().schedule(), before);
}

TEST_F(NativeReaderTest, FindsThoseOfAStaticProgram) {
  // GIVEN a program without shared libraries, and without an index of its unwind table
  const Child child(+[] { ::execl(PLIMSOLL_STATIC_PROGRAM, "static", nullptr); });
  const std::filesystem::path file = "/proc/" + std::to_string(child.pid()) + "/exe";
  while (std::filesystem::read_symlink(file) != PLIMSOLL_STATIC_PROGRAM) ::sched_yield();
  Looker looker(child);
  while (looker.probe().wait().kind != os::KernelWait::Kind::kIo) ::sched_yield();
  // WHEN it is looked at
  ASSERT_EQ(looker.look_at_wait(), NativeReader::Outcome::kRead);
  // THEN its frames are there, up to where it began
  EXPECT_TRUE(looker.first(4).starts_with("epoll_wait static_wait(int) around_static_wait(int) main "));
  EXPECT_TRUE(looker.first(8).ends_with("_start complete")) << looker.first(8);
}

TEST_F(NativeReaderTest, CopiesNoMoreOfAStackThanItWasToldTo) {
  const Child child(deep_spin);
  child.await_rounds(1);
  Looker looker(child, std::size_t{16} << 10U);
  if (looker.stop() == NativeReader::Outcome::kRefused) GTEST_SKIP() << "ptrace is not allowed here";
  EXPECT_EQ(looker.first(3), "innermost_spin() around_spin() deep_spin() stack too deep");
}

#if defined(__x86_64__)
TEST_F(NativeReaderTest, ReadsNothingWhereThereIsNoStack) {
  // GIVEN a program whose stack pointer points nowhere, and its frame pointer, by which some builds find the frame
  for (void (*body)() : {+[] {
                           rounds->fetch_add(1);
                           asm volatile("mov $8, %rsp; mov $8, %rbp; 1: jmp 1b");
                         },
                         +[] {
                           rounds->fetch_add(1);
                           asm volatile("mov $-64, %rbp; mov $-64, %rsp; 1: jmp 1b");
                         }}) {
    const Child child(body);
    child.await_rounds(1);
    Looker looker(child);
    std::string found;
    if (looker.stop() == NativeReader::Outcome::kRefused) GTEST_SKIP() << "ptrace is not allowed here";
    // (It may not be quite there yet.)
    while ((found = looker.first(0)) == "complete") (void)looker.stop();
    EXPECT_EQ(found, "stack unreadable");
  }
}
#endif

TEST_F(NativeReaderTest, SaysThatTheThreadHasEnded) {
  const Child child(+[] { ::_exit(0); });
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child.pid()), &info, WEXITED | WNOWAIT), 0);
  Target target;
  target.pid = os::Pid{child.pid()};
  os::ThreadStopper stopper;
  NativeReader reader(target, stopper, 100);
  StackReader python(target, 10);
  const os::ThreadProbe probe(Tid{child.pid()}, os::ThreadProbe::Keep::kOpen, child.pid());
  const NativeReader::Outcome outcome = reader.read_stopped(Tid{child.pid()}, probe, Address{}, python).outcome;
  EXPECT_NE(outcome, NativeReader::Outcome::kRead);
  EXPECT_EQ(reader.unwind().head.count, 0U);
}

}  // namespace
}  // namespace plimsoll::remote
