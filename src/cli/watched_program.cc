#include "cli/watched_program.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "base/clock.h"
#include "base/regular_file.h"
#include "base/unique_fd.h"
#include "cli/source_text.h"

extern char** environ;

namespace plimsoll::cli {
namespace {

constexpr std::int64_t kPatience = 3'000'000'000;

Result<std::string> private_directory() {
  std::error_code error;
  const std::filesystem::path parent = std::filesystem::temp_directory_path(error);
  std::string path = ((error ? "/tmp" : parent) / "plimsoll-top-XXXXXX").string();
  if (::mkdtemp(path.data()) == nullptr) return system_error("cannot make a directory for the output " + path, errno);
  return path;
}

// The settings of a start, which the C library wants to be given back.
class Start {
 public:
  Start() {
    ::posix_spawnattr_init(&attributes_);
    ::posix_spawn_file_actions_init(&actions_);
  }
  Start(const Start&) = delete;
  Start& operator=(const Start&) = delete;
  ~Start() {
    ::posix_spawnattr_destroy(&attributes_);
    ::posix_spawn_file_actions_destroy(&actions_);
  }

  void set_group_and_mask(const sigset_t& mask) {
    ::posix_spawnattr_setpgroup(&attributes_, 0);
    ::posix_spawnattr_setsigmask(&attributes_, &mask);
    ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  }
  void set_streams(const std::string& output) {
    if (::isatty(STDIN_FILENO) == 1)
      ::posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    constexpr mode_t kOursAlone = 0600;
    ::posix_spawn_file_actions_addopen(&actions_, STDOUT_FILENO, output.c_str(), O_WRONLY | O_CREAT | O_APPEND,
                                       kOursAlone);
    ::posix_spawn_file_actions_adddup2(&actions_, STDOUT_FILENO, STDERR_FILENO);
  }
  int run(const std::vector<std::string>& argv, pid_t& pid) {
    return ::posix_spawn(&pid, argv[0].c_str(), &actions_, &attributes_, pointers_to(argv).data(), environ);
  }

 private:
  posix_spawnattr_t attributes_{};
  posix_spawn_file_actions_t actions_{};
};

}  // namespace

Result<std::unique_ptr<WatchedProgram>> WatchedProgram::start(const std::vector<std::string>& argv,
                                                              ProgramOutput output, const sigset_t& mask) {
  std::unique_ptr<WatchedProgram> program(new WatchedProgram);
  if (output == ProgramOutput::kFile) {
    Result<std::string> directory = private_directory();
    if (!directory.ok()) return directory.error();
    program->directory_ = directory.take();
  }
  Start start;
  start.set_group_and_mask(mask);
  start.set_streams(program->directory_.empty() ? "/dev/null" : program->directory_ + "/output");
  if (const int failed = start.run(argv, program->pid_); failed != 0) {
    program->pid_ = 0;
    return system_error("cannot start " + argv[0], failed);
  }
  return program;
}

WatchedProgram::~WatchedProgram() {
  if (pid_ != 0) (void)terminate();
  if (directory_.empty() || !output_file().empty()) return;
  ::unlink((directory_ + "/output").c_str());
  ::rmdir(directory_.c_str());
}

std::optional<Ending> WatchedProgram::ending() {
  int status = 0;
  if (ending_ || pid_ == 0 || ::waitpid(pid_, &status, WNOHANG) != pid_) return ending_;
  ending_ = ending_of(status);
  return ending_;
}

bool WatchedProgram::terminate() {
  if (ending() || std::exchange(has_been_told_, true)) return ending_.has_value();
  ::kill(-pid_, SIGTERM);
  ::kill(-pid_, SIGCONT);  // one that is stopped would not hear it
  const std::int64_t until_ns = monotonic_ns() + kPatience;
  while (!ending() && monotonic_ns() < until_ns) ::usleep(2'000);
  return ending_.has_value();
}

std::string WatchedProgram::output_file() const {
  struct stat facts {};
  const std::string file = directory_ + "/output";
  return !directory_.empty() && ::stat(file.c_str(), &facts) == 0 && facts.st_size > 0 ? file : "";
}

std::string WatchedProgram::last_output(std::size_t lines) const {
  // Programs write as much as they like: lines are looked for in the end only.
  constexpr std::int64_t kEnd = 65'536;
  const UniqueFd file = open_regular_file(output_file());
  struct stat facts {};
  if (!file.is_open() || ::fstat(file.get(), &facts) != 0) return "";
  const std::int64_t start = std::max<std::int64_t>(facts.st_size - kEnd, 0);
  std::string end(static_cast<std::size_t>(facts.st_size - start), '\0');
  const ssize_t read = ::pread(file.get(), end.data(), end.size(), start);
  end.resize(read > 0 ? static_cast<std::size_t>(read) : 0);
  // A line that begins before is shown only if there is no other.
  const std::size_t first = start > 0 ? end.find('\n') : std::string::npos;
  const std::size_t whole = first + 1 < end.size() ? first + 1 : 0;
  const std::vector<std::string> text = split_lines(std::string_view(end).substr(whole));
  std::string out;
  for (std::size_t i = text.size() - std::min(text.size(), lines); i < text.size(); ++i) out += "\n  " + text[i];
  return out;
}

}  // namespace plimsoll::cli
