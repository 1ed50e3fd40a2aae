// os/process_files_test.cc: a process names files, and we read them for it.
#include "os/process_files.h"

#include <grp.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <thread>

namespace plimsoll::os {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMost = 1000;
constexpr unsigned kStranger = 65534, kCommonGroup = 54321;

TEST(FileUsers, AreWhoTheKernelTakesForFiles) {
  const std::string_view status =
      "Name:\tpython3\nUid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\nGroups:\t10 24 1000 \nCapEff:\t000001ffffffffff\n";
  const std::optional<FileUser> user = parse_file_user(status);
  ASSERT_TRUE(user);
  EXPECT_EQ(*user, (FileUser{4, 8, {10, 24, 1000}, 0x1ffffffffff}));
  EXPECT_FALSE(parse_file_user("Name:\tpython3\nUid:\t1\t2\t3\n"));
  EXPECT_FALSE(parse_file_user(""));
}

// A child that has done something and waits to be killed.
class Child {
 public:
  explicit Child(const std::function<bool()>& begin) {
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0) return;
    pid_ = ::fork();
    if (pid_ == 0) {
      const char is_ready = begin() ? 'y' : 'n';
      if (::write(ends[1], &is_ready, 1) != 1) ::_exit(1);
      while (true) ::pause();
    }
    char answer = 0;
    is_ready_ = ::read(ends[0], &answer, 1) == 1 && answer == 'y';
    ::close(ends[0]);
    ::close(ends[1]);
  }
  ~Child() { end(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  void end() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  [[nodiscard]] bool is_ready() const { return is_ready_; }
  [[nodiscard]] Pid pid() const { return Pid{pid_}; }

 private:
  pid_t pid_ = 0;
  bool is_ready_ = false;
};

bool become_stranger() {
  const std::array<gid_t, 1> groups{kCommonGroup};
  return ::setgroups(1, groups.data()) == 0 && ::setgid(kStranger) == 0 && ::setuid(kStranger) == 0;
}

class ProcessFilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can be somebody else";
    fs::create_directories(directory_ + "/locked");
    ::chmod(directory_.c_str(), 0755);
    ::chmod((directory_ + "/locked").c_str(), 0700);
    put("secret.py", 0600);
    put("public.py", 0644);
    put("common.py", 0640);
    ASSERT_EQ(::chown((directory_ + "/common.py").c_str(), 0, kCommonGroup), 0);
    put("locked/public.py", 0644);
    fs::create_symlink("public.py", directory_ + "/link.py");
    fs::create_symlink(directory_ + "/public.py", directory_ + "/absolute.py");
    fs::create_symlink("secret.py", directory_ + "/to_secret.py");
  }
  void TearDown() override { fs::remove_all(directory_); }

  void put(const std::string& name, mode_t mode) const {
    std::ofstream(directory_ + "/" + name) << name;
    ::chmod((directory_ + "/" + name).c_str(), mode);
  }
  [[nodiscard]] std::string read(const ProcessFiles& files, const std::string& name) const {
    const std::optional<FileText> file = files.read(directory_ + "/" + name, kMost);
    return file ? file->text : "nothing";
  }

  // (Below /tmp, whose every part anybody may enter.)
  const std::string directory_ = "/tmp/process_files_test." + std::to_string(::getpid());
};

TEST_F(ProcessFilesTest, AreThoseThatTheProcessMayReadItself) {
  // GIVEN root, and a process of somebody else's
  const Child stranger(&become_stranger);
  ASSERT_TRUE(stranger.is_ready());
  const ProcessFiles files(stranger.pid());
  // WHEN it names files THEN those that it may not read are not read: neither by a link nor by the way to them
  EXPECT_EQ(read(files, "secret.py"), "nothing");
  EXPECT_EQ(read(files, "to_secret.py"), "nothing");
  EXPECT_EQ(read(files, "locked/public.py"), "nothing");
  EXPECT_EQ(read(files, "public.py"), "public.py");
  EXPECT_EQ(read(files, "link.py"), "public.py");
  EXPECT_EQ(read(files, "absolute.py"), "public.py");
  EXPECT_EQ(read(files, "common.py"), "common.py");  // by another group that it is in
  // AND we are who we were
  EXPECT_TRUE(std::ifstream(directory_ + "/secret.py").is_open());
}

int answer_to = -1;  // of the child below

TEST_F(ProcessFilesTest, AreThoseThatItMayReadNow) {
  // GIVEN a process of root's
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  answer_to = ends[1];
  const Child child([] {
    const auto drop = [](int) {
      if (!become_stranger() || ::write(answer_to, "y", 1) != 1) ::_exit(1);
    };
    return ::signal(SIGUSR1, drop) != SIG_ERR;
  });
  ASSERT_TRUE(child.is_ready());
  ProcessFiles files(child.pid());
  EXPECT_EQ(read(files, "secret.py"), "secret.py");
  // WHEN it gives its privileges up THEN what it could read before is not read any more
  ::kill(static_cast<pid_t>(child.pid()), SIGUSR1);
  char answer = 0;
  ASSERT_EQ(::read(ends[0], &answer, 1), 1);
  files.look_again();
  EXPECT_EQ(read(files, "secret.py"), "nothing");
  EXPECT_EQ(read(files, "public.py"), "public.py");
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_F(ProcessFilesTest, OfSeveralProcessesAreThoseThatAllMayRead) {
  const Child child([] { return true; });
  const Child stranger(&become_stranger);
  ASSERT_TRUE(child.is_ready() && stranger.is_ready());
  ProcessFiles files(child.pid());
  files.add(stranger.pid());
  EXPECT_EQ(read(files, "secret.py"), "nothing");
  EXPECT_EQ(read(files, "public.py"), "public.py");
}

TEST_F(ProcessFilesTest, AreInItsFileSystemWhereverLinksLead) {
  // GIVEN a process in a file system of its own, with links to what is outside, and a directory where it is
  put("outside.py", 0644);
  const std::string jail = directory_ + "/jail";
  fs::create_directories(jail + "/app");
  std::ofstream(jail + "/app/main.py") << "main";
  fs::create_symlink(directory_ + "/outside.py", jail + "/app/out.py");
  fs::create_symlink("../../outside.py", jail + "/app/up.py");
  fs::create_symlink("/app/main.py", jail + "/app/in.py");
  const Child jailed([&] { return ::chroot(jail.c_str()) == 0 && ::chdir("/app") == 0; });
  ASSERT_TRUE(jailed.is_ready());
  const ProcessFiles files(jailed.pid());
  // THEN links stay inside, as for the process itself
  for (const char* name : {"/app/out.py", "/app/up.py", "up.py", "/../../outside.py", "/proc/self/root/etc/passwd"})
    EXPECT_FALSE(files.read(name, kMost)) << name;
  for (const char* name : {"/app/main.py", "main.py", "/app/in.py", "../app/main.py"}) {
    const std::optional<FileText> file = files.read(name, kMost);
    ASSERT_TRUE(file) << name;
    EXPECT_EQ(file->text, "main");
  }
}

TEST_F(ProcessFilesTest, AreThereWhenTheProcessHasEnded) {
  Child stranger(&become_stranger);
  ASSERT_TRUE(stranger.is_ready());
  ProcessFiles files(stranger.pid());
  stranger.end();
  files.look_again();
  EXPECT_EQ(read(files, "public.py"), "public.py");
  EXPECT_EQ(read(files, "secret.py"), "nothing");
}

// The calling thread, and those that it makes, have no openat2.
bool forbid_openat2() {
  constexpr std::uint32_t kOpenat2 = 437;
  std::array<sock_filter, 4> filter{{{BPF_LD | BPF_W | BPF_ABS, 0, 0, 0},
                                     {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, kOpenat2},
                                     {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | ENOSYS},
                                     {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}}};
  const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST_F(ProcessFilesTest, OfAnOldKernelAreThoseThatNoLinkLeadsTo) {
  const Child stranger(&become_stranger);
  ASSERT_TRUE(stranger.is_ready());
  const ProcessFiles files(stranger.pid());
  std::thread([&] {
    ASSERT_TRUE(forbid_openat2());
    EXPECT_EQ(read(files, "public.py"), "public.py");
    EXPECT_EQ(read(files, "secret.py"), "nothing");
    EXPECT_EQ(read(files, "link.py"), "nothing");
    EXPECT_EQ(read(files, "locked/../public.py"), "nothing");
  }).join();
}

TEST_F(ProcessFilesTest, OfOneThatHasEndedAreThoseThatAllItsUsersMayRead) {
  constexpr std::uint64_t kAll = ~std::uint64_t{0};
  const FileUser root{0, 0, {}, kAll}, stranger{kStranger, kStranger, {}, 0};
  EXPECT_EQ(read(ProcessFiles({root}), "secret.py"), "secret.py");
  for (const std::vector<FileUser>& users : {std::vector{stranger}, std::vector{root, stranger}}) {
    const ProcessFiles files(users);
    EXPECT_EQ(read(files, "secret.py"), "nothing");
    EXPECT_EQ(read(files, "public.py"), "public.py");
  }
  EXPECT_EQ(read(ProcessFiles(std::vector<FileUser>{}), "public.py"), "nothing");
  EXPECT_FALSE(ProcessFiles({root}).open(directory_).is_open());
}

TEST(ProcessFiles, OfOurOwnUserNeedNoPrivilege) {
  // GIVEN a process like us WHEN it names a file of ours, or something else THEN only the file is read
  const std::string path = ::testing::TempDir() + "process_files_test." + std::to_string(::getpid());
  std::ofstream(path) << "text";
  const ProcessFiles files(Pid{::getpid()});
  const std::optional<FileText> file = files.read(path, kMost);
  ASSERT_TRUE(file);
  EXPECT_EQ(file->text, "text");
  EXPECT_FALSE(files.read(path, 3));
  for (const char* name : {"", "/", "/dev/zero", "/no/such.py"}) EXPECT_FALSE(files.read(name, kMost)) << name;
  fs::remove(path);
}

}  // namespace
}  // namespace plimsoll::os
