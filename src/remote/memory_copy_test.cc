#include "remote/memory_copy.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <string_view>

#include "os/stopped_process.h"

namespace plimsoll::remote {
namespace {

using From = MemoryPart::From;

os::Mapping mapping(std::uint64_t pages, std::uint64_t inode) {
  os::Mapping made;
  made.start = 0x10000;
  made.end = made.start + pages * 4096;
  made.inode = inode;
  made.is_readable = made.is_writable = true;
  return made;
}

// Runs of pages of that mapping: one's own, a file's (f), none (a blank).
std::vector<os::PageRun> drawn_runs(std::string_view drawing) {
  std::vector<os::PageRun> runs;
  for (std::size_t i = 0; i < drawing.size(); ++i)
    if (drawing[i] != ' ') runs.push_back({0x10000 + i * 4096, 0x10000 + (i + 1) * 4096, drawing[i] == 'f'});
  return runs;
}

std::string drawing(const std::vector<MemoryPart>& parts) {
  std::string out;
  for (const MemoryPart& part : parts) {
    const char letter = part.from == From::kMemory ? 'm' : part.from == From::kFile ? 'f' : '0';
    out += std::string((part.end - part.start) / 4096, letter) + ' ';
  }
  return out;
}

TEST(MemoryParts, AreThePagesThatAProcessHasOfItsOwn) {
  // GIVEN memory without a file, of which some pages were never touched
  std::vector<MemoryPart> parts;
  add_parts(mapping(6, 0), 7, drawn_runs("mm m"), parts);
  // THEN what was touched is to be copied, and the rest is zeros
  EXPECT_EQ(drawing(parts), "mm 0 m 00 ");
  EXPECT_EQ(parts[0].start, 0x10000U);
  EXPECT_EQ(parts[0].mapping, 7U);
}

TEST(MemoryParts, OfAFileAreThoseThatWereWrittenTo) {
  // GIVEN a mapped file, of which one page was written to, one read, and one not touched
  std::vector<MemoryPart> parts;
  add_parts(mapping(3, 55), 0, drawn_runs("mf"), parts);
  // THEN the others are still the file's
  EXPECT_EQ(drawing(parts), "m ff ");
}

TEST(MemoryParts, AreWholeMappingsWhereNobodyTellsOfPages) {
  // GIVEN nobody who tells THEN everything is copied, but code of a file
  std::vector<MemoryPart> parts;
  add_parts(mapping(2, 0), 0, std::nullopt, parts);
  os::Mapping code = mapping(1, 55);
  code.start += 0x10000;
  code.end += 0x10000;
  code.is_executable = true;
  code.is_writable = false;
  add_parts(code, 1, std::nullopt, parts);
  os::Mapping compiled = code;  // by a JIT
  compiled.inode = 0;
  add_parts(compiled, 2, std::nullopt, parts);
  EXPECT_EQ(drawing(parts), "mm f m ");
}

// A child that counts up, in memory and on request over a pipe, until it is killed.
class Child {
 public:
  Child()
      : words_(static_cast<volatile std::uint64_t*>(
            ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    if (::pipe(to_.data()) != 0 || ::pipe(from_.data()) != 0) return;
    words_[0] = 0x1234567890abcdefU;
    pid_ = ::fork();
    if (pid_ == 0) answer();
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    for (const int fd : {to_[0], to_[1], from_[0], from_[1]}) ::close(fd);
    ::munmap(const_cast<std::uint64_t*>(words_), kSize);
  }
  [[nodiscard]] os::Pid pid() const { return os::Pid{pid_}; }
  [[nodiscard]] Address words() const {
    return Address{reinterpret_cast<std::uint64_t>(const_cast<std::uint64_t*>(words_))};
  }
  // What it answers to a byte; blocks until it does.
  [[nodiscard]] char ask(char byte) const {
    char told = 0;
    EXPECT_EQ(::write(to_[1], &byte, 1), 1);
    EXPECT_EQ(::read(from_[0], &told, 1), 1);
    return told;
  }

 private:
  static constexpr std::size_t kSize = 65536;
  [[noreturn]] void answer() const {
    for (char byte = 0; ::read(to_[0], &byte, 1) == 1;) {
      ++byte;
      if (::write(from_[1], &byte, 1) != 1) break;
    }
    ::_exit(0);
  }
  volatile std::uint64_t* words_;
  std::array<int, 2> to_{}, from_{};
  pid_t pid_ = -1;
};

TEST(MemoryCopy, HasWhatTheProcessHasAndLetsItGoOn) {
  // GIVEN a process that waits in a system call
  const Child child;
  ASSERT_EQ(child.ask('a'), 'b');
  // WHEN its memory is copied
  Result<MemoryCopy> copy = copy_memory(child.pid(), std::uint64_t{1} << 34U);
  ASSERT_TRUE(copy.ok()) << copy.error().message;
  // THEN its words are there, and zeros where it has written nothing
  const memory::Image& image = copy.value().image;
  std::uint64_t word = 0;
  ASSERT_TRUE(image.load(child.words(), word));
  EXPECT_EQ(word, 0x1234567890abcdefU);
  ASSERT_TRUE(image.load(offset_by(child.words(), 32768), word));
  EXPECT_EQ(word, 0U);
  EXPECT_FALSE(image.has_copy(offset_by(child.words(), 32768), 8));
  EXPECT_GT(copy.value().stop_ns, 0);
  // AND the wait goes on as if nothing had been
  EXPECT_EQ(child.ask('x'), 'y');
}

TEST(MemoryCopy, SaysHowMuchMoreThereIsThanIsAllowed) {
  // GIVEN a process with more than a page THEN it is refused, and goes on
  const Child child;
  const Result<MemoryCopy> copy = copy_memory(child.pid(), 4096);
  ASSERT_FALSE(copy.ok());
  EXPECT_NE(copy.error().message.find("--max-copy"), std::string::npos) << copy.error().message;
  EXPECT_EQ(child.ask('x'), 'y');
}

TEST(StoppedProcess, StandsStillUntilItIsLetGo) {
  // GIVEN a process that is stopped
  const Child child;
  ASSERT_EQ(child.ask('x'), 'y');  // by now it has the thread that ThreadSanitizer starts after a fork
  Result<os::StoppedProcess> stopped = os::StoppedProcess::stop(child.pid());
  ASSERT_TRUE(stopped.ok()) << stopped.error().message;
  // THEN the kernel says of all of it that it is traced
  const std::vector<os::Task> tasks = os::tasks_of(child.pid());
  EXPECT_EQ(stopped.value().thread_count(), tasks.size());
  ASSERT_FALSE(tasks.empty());
  for (const os::Task& task : tasks) EXPECT_EQ(task.state, 't');
  // AND nobody at a terminal stops us meanwhile
  const auto waits = [] {
    sigset_t now;
    ::pthread_sigmask(SIG_SETMASK, nullptr, &now);
    return ::sigismember(&now, SIGTSTP) == 1;
  };
  EXPECT_TRUE(waits());
  // AND it goes on when it is let go
  stopped.value().resume();
  EXPECT_FALSE(waits());
  EXPECT_EQ(child.ask('a'), 'b');
}

TEST(StoppedProcess, GoesOnIfWhoStoppedItIsKilled) {
  // GIVEN a process that another one has stopped, and holds
  const Child child;
  ASSERT_EQ(child.ask('a'), 'b');
  std::array<int, 2> told{};
  ASSERT_EQ(::pipe(told.data()), 0);
  const pid_t holder = ::fork();
  if (holder == 0) {
    const Result<os::StoppedProcess> stopped = os::StoppedProcess::stop(child.pid());
    const char answer = stopped.ok() ? 's' : 'f';
    if (::write(told[1], &answer, 1) == 1) ::pause();
    ::_exit(1);
  }
  char answer = 0;
  EXPECT_EQ(::read(told[0], &answer, 1), 1);
  EXPECT_EQ(answer, 's');
  // WHEN that one is killed
  ::kill(holder, SIGKILL);
  ::waitpid(holder, nullptr, 0);
  // THEN the process answers again
  EXPECT_EQ(child.ask('x'), 'y');
  for (const int fd : told) ::close(fd);
}

TEST(StoppedProcess, ThatDoesNotExistIsAnError) {
  // GIVEN a process that has ended
  const pid_t ended = ::fork();
  if (ended == 0) ::_exit(0);
  ::waitpid(ended, nullptr, 0);
  EXPECT_FALSE(os::StoppedProcess::stop(os::Pid{ended}).ok());
  // AND ourselves
  EXPECT_FALSE(os::StoppedProcess::stop(os::Pid{::getpid()}).ok());
}

}  // namespace
}  // namespace plimsoll::remote
