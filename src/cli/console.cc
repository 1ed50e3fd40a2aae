// cli/console.cc: standard input, output and error of this process.
#include "cli/console.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

#include "base/unique_fd.h"
#include "cli/utf8.h"
#include "formats/input.h"

namespace plimsoll::cli {
namespace {

// Turns SIGPIPE into EPIPE while it lives. Not for the whole process: a profiled program would inherit it.
class BrokenPipeAsError {
 public:
  BrokenPipeAsError() {
    struct sigaction ignore {};
    ignore.sa_handler = SIG_IGN;
    ::sigaction(SIGPIPE, &ignore, &previous_);
  }
  BrokenPipeAsError(const BrokenPipeAsError&) = delete;
  BrokenPipeAsError& operator=(const BrokenPipeAsError&) = delete;
  ~BrokenPipeAsError() { ::sigaction(SIGPIPE, &previous_, nullptr); }

 private:
  struct sigaction previous_ {};
};

void wait_until_writable(int fd) {
  pollfd ready{fd, POLLOUT, 0};
  ::poll(&ready, 1, -1);
}

Result<std::string> read_all(int fd, std::string_view name = "standard input") {
  std::string bytes;
  std::array<char, 65536> block;
  for (;;) {
    const ssize_t got = ::read(fd, block.data(), block.size());
    if (got == 0) return bytes;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_error(fmt::format("cannot read {}", name), errno);
    bytes.append(block.data(), static_cast<std::size_t>(got));
  }
}

Result<std::string> read_standard_input(std::string_view what) {
  if (::isatty(STDIN_FILENO) == 1)
    return Error{ErrorKind::kUsage,
                 fmt::format("- reads {} from standard input, which is a terminal; pipe one in", what)};
  return read_all(STDIN_FILENO);
}

// What is written into a pipe that has a name, as `<(command)` has; as cat does, this waits for somebody to write.
bool is_pipe(const std::string& path) {
  struct stat facts {};
  return ::stat(path.c_str(), &facts) == 0 && S_ISFIFO(facts.st_mode);
}

Result<std::string> read_pipe(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.is_open()) return system_error("cannot open " + path, errno);
  return read_all(fd.get(), path);
}

Result<Input> profile_of(const Result<std::string>& bytes, std::string_view name) {
  if (!bytes.ok()) return bytes.error();
  Result<profile::Profile> read = formats::read_profile(bytes.value());
  if (!read.ok()) return Error{read.error().kind, fmt::format("{}: {}", name, read.error().message)};
  return Input{read.take(), bytes.value().size()};
}

}  // namespace

Status ProcessConsole::print(std::string_view data) {
  const BrokenPipeAsError guard;
  while (!data.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, data.data(), data.size());
    if (written >= 0) {
      data.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EPIPE) {
      return Ok{};
    } else if (errno == EAGAIN) {
      wait_until_writable(STDOUT_FILENO);
    } else if (errno != EINTR) {
      return system_error("cannot write to standard output", errno);
    }
  }
  return Ok{};
}

void ProcessConsole::notice(std::string_view line) {
  const BrokenPipeAsError guard;
  // Words of files and of other processes are in it, and lines of ours.
  std::string text = "plimsoll: ";
  for (std::string_view rest = line;;) {
    const std::size_t end = rest.find('\n');
    text += printable(rest.substr(0, end)) + "\n";
    if (end == std::string_view::npos) break;
    rest.remove_prefix(end + 1);
  }
  // Nobody is left to tell that this failed.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
}

Result<Input> ProcessConsole::read_profile(const std::string& path) {
  if (path == "-") return profile_of(read_standard_input("a profile"), "standard input");
  if (is_pipe(path)) return profile_of(read_pipe(path), path);
  struct stat facts {};
  if (::stat(path.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode))
    return Error{ErrorKind::kBadInput, path + " is a directory, not a profile"};
  Result<profile::Profile> read = formats::read_profile_file(path);
  if (!read.ok()) {
    // To whom a file is an argument, one of a version that is not known is as good as a damaged one.
    const ErrorKind kind = read.error().kind;
    const bool is_files_fault = kind == ErrorKind::kSystem || kind == ErrorKind::kUnsupported;
    return Error{is_files_fault ? ErrorKind::kBadInput : kind, read.error().message};
  }
  return Input{read.take(), static_cast<std::uint64_t>(facts.st_size)};
}

Result<std::string> ProcessConsole::read_file(const std::string& path) {
  if (path != "-" && !is_pipe(path)) {
    Result<formats::Gunzipped> file = formats::read_unpacked_file(path);
    if (!file.ok()) return file.error();
    return std::move(file.value().bytes);
  }
  Result<std::string> bytes = path == "-" ? read_standard_input("a file") : read_pipe(path);
  if (!bytes.ok()) return bytes.error();
  Result<formats::Gunzipped> unpacked = formats::unpacked(bytes.take());
  if (!unpacked.ok()) return unpacked.error();
  return std::move(unpacked.value().bytes);
}

}  // namespace plimsoll::cli
