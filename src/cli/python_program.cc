#include "cli/python_program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <glob.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "base/clock.h"
#include "base/unique_fd.h"

extern char** environ;

namespace plimsoll::cli {
namespace {

namespace fs = std::filesystem;

bool is_executable(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) && ::access(path.c_str(), X_OK) == 0;
}

std::vector<std::string> paths_matching(const std::string& pattern) {
  glob_t found{};
  std::vector<std::string> paths;
  if (::glob(pattern.c_str(), 0, nullptr, &found) == 0)
    for (std::size_t i = 0; i < found.gl_pathc; ++i) paths.emplace_back(found.gl_pathv[i]);
  ::globfree(&found);
  return paths;
}

std::string boot_in(const std::string& directory) {
  const fs::path boot = fs::path(directory) / "plimsoll" / "_boot";
  std::error_code error;
  return fs::is_regular_file(boot / "sitecustomize.py", error) ? boot.string() : std::string{};
}

// The program that is running, for the signal handler that passes signals on.
std::atomic<pid_t> running_child{0};

// Whether the program has had a signal that came to us, as one of our process group. What the terminal sends comes from
// the kernel, to the group in the foreground as a whole. What a process sends does not say whom it was sent to; but who
// interrupts the leader of a group means the group: a shell's jobs, and what has a session of its own, end so.
bool has_reached_group(int signal, const siginfo_t& info) {
  const bool is_from_kernel = info.si_code > 0;
  switch (signal) {
    case SIGINT:
    case SIGQUIT: return is_from_kernel || ::getpgrp() == ::getpid();
    case SIGWINCH:
    case SIGTTIN:
    case SIGTTOU: return is_from_kernel;
    default: return false;
  }
}

void pass_on(int signal, siginfo_t* info, void*) {
  const int saved_errno = errno;
  if (!has_reached_group(signal, *info)) {
    if (const pid_t child = running_child.load()) ::kill(child, signal);
  } else if (signal == SIGTTIN || signal == SIGTTOU) {
    ::raise(SIGSTOP);  // the terminal has stopped the program in the background, and would have stopped us
  }
  errno = saved_errno;
}

// For the scope: what the terminal sends is left to the program, what is sent to this process alone is passed on to it.
// Between construction and started() signals wait.
class SignalsForTheProgram {
 public:
  SignalsForTheProgram() {
    sigset_t ours;
    ::sigemptyset(&ours);
    for (const int signal : kSignals) ::sigaddset(&ours, signal);
    ::pthread_sigmask(SIG_BLOCK, &ours, &mask_before_);
    for (std::size_t i = 0; i < std::size(kSignals); ++i) {
      struct sigaction action {};
      action.sa_sigaction = pass_on;
      action.sa_flags = SA_RESTART | SA_SIGINFO;
      ::sigaction(kSignals[i], nullptr, &before_[i]);
      // A signal that our caller ignores (nohup) stays ignored, for the program, too.
      if (before_[i].sa_handler != SIG_IGN) ::sigaction(kSignals[i], &action, nullptr);
    }
  }
  SignalsForTheProgram(const SignalsForTheProgram&) = delete;
  SignalsForTheProgram& operator=(const SignalsForTheProgram&) = delete;
  ~SignalsForTheProgram() {
    running_child.store(0);
    for (std::size_t i = 0; i < std::size(kSignals); ++i) ::sigaction(kSignals[i], &before_[i], nullptr);
    ::pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
  }

  // From now on there is a program to pass signals on to; those that have come meanwhile are.
  void started(pid_t child) const {
    running_child.store(child);
    ::pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
  }

  // The signals that the program starts with in their default action, as without us.
  [[nodiscard]] sigset_t defaults() const {
    sigset_t set;
    ::sigemptyset(&set);
    for (std::size_t i = 0; i < std::size(kSignals); ++i)
      if (before_[i].sa_handler != SIG_IGN) ::sigaddset(&set, kSignals[i]);
    return set;
  }
  [[nodiscard]] const sigset_t& mask_before() const { return mask_before_; }

 private:
  // What somebody sends to end a program, or to tell it something: servers take most of them. Not SIGTSTP and SIGCONT,
  // by which shells stop and continue their jobs as a whole.
  static constexpr int kSignals[] = {SIGINT,  SIGQUIT, SIGTERM, SIGHUP,  SIGUSR1, SIGUSR2,
                                     SIGALRM, SIGPIPE, SIGTTIN, SIGTTOU, SIGWINCH};
  struct sigaction before_[std::size(kSignals)]{};
  sigset_t mask_before_{};
};

// Waits for the end of a child; it keeps its number until nothing is passed on to it any more.
Result<Ending> wait_for(pid_t child) {
  siginfo_t end{};
  while (::waitid(P_PID, static_cast<id_t>(child), &end, WEXITED | WNOWAIT) != 0)
    if (errno != EINTR) return system_error("cannot wait for the program", errno);
  running_child.store(0);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return system_error("cannot wait for the program", errno);
  return ending_of(status);
}

std::vector<std::string> environment_with(const std::vector<std::pair<std::string, std::string>>& variables) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::string_view name = text.substr(0, text.find('='));
    const bool is_replaced =
        std::any_of(variables.begin(), variables.end(), [&](const auto& variable) { return variable.first == name; });
    if (!is_replaced) result.emplace_back(text);
  }
  for (const auto& [name, value] : variables) result.push_back(name + "=" + value);
  return result;
}

// Whether there is something to read from a pipe, or its end; false if nothing comes in time.
bool has_news(const UniqueFd& pipe, std::int64_t end_ns) {
  pollfd waiting{pipe.get(), POLLIN, 0};
  int got = -1;
  do {
    const timespec left = timespec_of(std::max<std::int64_t>(end_ns - monotonic_ns(), 0));
    got = ::ppoll(&waiting, 1, &left, nullptr);
  } while (got < 0 && errno == EINTR);
  return got > 0;
}

}  // namespace

std::vector<char*> pointers_to(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

Ending ending_of(int status) {
  return WIFSIGNALED(status) ? Ending{0, WTERMSIG(status)} : Ending{WEXITSTATUS(status), 0};
}

std::string output_of(const std::vector<std::string>& argv, std::int64_t patience_ns) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return {};
  const UniqueFd reading(ends[0]);
  UniqueFd writing(ends[1]);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, writing.get(), STDOUT_FILENO);
  ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const int failed = ::posix_spawn(&child, argv[0].c_str(), &actions, nullptr, pointers_to(argv).data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return {};
  writing.reset();
  std::string output;
  char buffer[4096];
  const std::int64_t end_ns = monotonic_ns() + patience_ns;
  for (ssize_t got = 0; has_news(reading, end_ns) && (got = ::read(reading.get(), buffer, sizeof buffer)) > 0;)
    output.append(buffer, static_cast<std::size_t>(got));
  if (monotonic_ns() >= end_ns) ::kill(child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? output : std::string{};
}

std::string last_line_of(const std::vector<std::string>& argv) {
  std::string output = output_of(argv);
  while (output.ends_with('\n')) output.pop_back();
  return output.substr(output.rfind('\n') + 1);
}

std::string find_on_path(const std::string& name) {
  if (name.find('/') != std::string::npos) return is_executable(name) ? name : std::string{};
  const char* path = std::getenv("PATH");
  std::string_view rest = path != nullptr ? path : "";
  while (!rest.empty()) {
    const std::size_t colon = rest.find(':');
    const std::string_view directory = rest.substr(0, colon);
    rest = colon == std::string_view::npos ? std::string_view{} : rest.substr(colon + 1);
    const fs::path candidate = fs::path(directory.empty() ? "." : directory) / name;
    if (is_executable(candidate)) return candidate.string();
  }
  return {};
}

Result<std::string> find_interpreter(const std::string& asked) {
  if (!asked.empty()) {
    const std::string found = find_on_path(asked);
    if (found.empty()) return Error{ErrorKind::kUsage, fmt::format("no Python interpreter '{}'", asked)};
    return found;
  }
  std::error_code error;
  const fs::path ours = fs::read_symlink("/proc/self/exe", error);
  if (!error)
    for (const char* name : {"python", "python3"})
      if (const fs::path beside = ours.parent_path() / name; is_executable(beside)) return beside.string();
  if (const char* venv = std::getenv("VIRTUAL_ENV"))
    if (const fs::path python = fs::path(venv) / "bin" / "python"; is_executable(python)) return python.string();
  const std::string found = find_on_path("python3");
  if (found.empty()) return Error{ErrorKind::kUsage, "no python3 on PATH: say which with --python"};
  return found;
}

Result<std::string> find_boot_directory(const std::string& interpreter) {
  std::error_code none;
  // PYTHONPATH comes first for Python, too.
  if (const char* path = std::getenv("PYTHONPATH")) {
    std::string_view rest = path;
    while (!rest.empty()) {
      const std::size_t colon = rest.find(':');
      if (const std::string boot = boot_in(std::string(rest.substr(0, colon))); !boot.empty())
        return fs::absolute(boot, none).string();
      rest = colon == std::string_view::npos ? std::string_view{} : rest.substr(colon + 1);
    }
  }
  // In a virtual environment the place is known without starting Python twice.
  const std::string library = fs::absolute(interpreter, none).parent_path().parent_path().string() + "/lib/python3*";
  const std::vector<std::string> boots = paths_matching(library + "/site-packages/plimsoll/_boot/sitecustomize.py");
  if (boots.size() == 1) return fs::path(boots[0]).parent_path().string();
  std::string place = last_line_of({interpreter, "-c",
                                    "import importlib.util as u; s = u.find_spec('plimsoll'); "
                                    "print(); print(s.submodule_search_locations[0], end='')"});
  if (place.empty())
    return Error{ErrorKind::kUnsupported, fmt::format("plimsoll is not installed for {0}; install it with: {0} -m pip "
                                                      "install plimsoll",
                                                      interpreter)};
  return place + "/_boot";
}

Result<Ending> run_and_wait(const std::vector<std::string>& argv,
                            const std::vector<std::pair<std::string, std::string>>& variables,
                            const std::function<void(std::int32_t pid)>& meanwhile) {
  const std::vector<std::string> environment = environment_with(variables);
  const SignalsForTheProgram signals;
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  const sigset_t defaults = signals.defaults();
  ::posix_spawnattr_setsigdefault(&attributes, &defaults);
  ::posix_spawnattr_setsigmask(&attributes, &signals.mask_before());
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  pid_t child = 0;
  const int failed = ::posix_spawn(&child, argv[0].c_str(), nullptr, &attributes, pointers_to(argv).data(),
                                   pointers_to(environment).data());
  ::posix_spawnattr_destroy(&attributes);
  if (failed != 0) return system_error("cannot start " + argv[0], failed);
  signals.started(child);
  if (meanwhile) meanwhile(child);
  return wait_for(child);
}

int pass_on(const Ending& ending) {
  if (ending.signal == 0) return ending.exit_code;
  const rlimit no_core{};  // the program has left its own core file, if any
  ::setrlimit(RLIMIT_CORE, &no_core);
  ::signal(ending.signal, SIG_DFL);
  ::raise(ending.signal);
  return 128 + ending.signal;
}

Result<int> run_module(const std::string& python, const std::string& module,
                       const std::vector<std::string>& arguments) {
  const Result<std::string> interpreter = find_interpreter(python);
  if (!interpreter.ok()) return interpreter.error();
  const Result<std::string> boot = find_boot_directory(interpreter.value());  // says if plimsoll is not installed
  if (!boot.ok()) return boot.error();
  std::vector<std::string> words{interpreter.value(), "-m", module};
  words.insert(words.end(), arguments.begin(), arguments.end());
  const Result<Ending> ending = run_and_wait(words, {});
  if (!ending.ok()) return ending.error();
  return pass_on(ending.value());
}

}  // namespace plimsoll::cli
