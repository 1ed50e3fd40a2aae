// cli/console.cc: standard input, output and error of this process.
#include "cli/console.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

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

Result<std::string> read_all(int fd) {
  std::string bytes;
  std::array<char, 65536> block;
  for (;;) {
    const ssize_t got = ::read(fd, block.data(), block.size());
    if (got == 0) return bytes;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_error("cannot read standard input", errno);
    bytes.append(block.data(), static_cast<std::size_t>(got));
  }
}

Result<std::string> read_standard_input(std::string_view what) {
  if (::isatty(STDIN_FILENO) == 1)
    return Error{ErrorKind::kUsage,
                 fmt::format("- reads {} from standard input, which is a terminal; pipe one in", what)};
  return read_all(STDIN_FILENO);
}

Result<Input> read_profile_from_standard_input() {
  const Result<std::string> bytes = read_standard_input("a profile");
  if (!bytes.ok()) return bytes.error();
  Result<profile::Profile> read = formats::read_profile(bytes.value());
  if (!read.ok()) return Error{read.error().kind, "standard input: " + read.error().message};
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
  const std::string text = fmt::format("plimsoll: {}\n", line);
  // Nobody is left to tell that this failed.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
}

Result<Input> ProcessConsole::read_profile(const std::string& path) {
  if (path == "-") return read_profile_from_standard_input();
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
  if (path != "-") {
    Result<formats::Gunzipped> file = formats::read_unpacked_file(path);
    if (!file.ok()) return file.error();
    return std::move(file.value().bytes);
  }
  Result<std::string> bytes = read_standard_input("a file");
  if (!bytes.ok()) return bytes.error();
  Result<formats::Gunzipped> unpacked = formats::unpacked(bytes.take());
  if (!unpacked.ok()) return unpacked.error();
  return std::move(unpacked.value().bytes);
}

}  // namespace plimsoll::cli
