// cli/browser.cc: starts a browser, quietly.
#include "cli/browser.h"

#include <fcntl.h>
#include <spawn.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

namespace plimsoll::cli {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

}  // namespace

Status open_in_browser(const std::string& address) {
  const std::string chosen = variable("BROWSER");
  if (chosen.empty() && variable("DISPLAY").empty() && variable("WAYLAND_DISPLAY").empty())
    return Error{ErrorKind::kSystem, "there is no screen to open a browser on"};
  std::string program = chosen.empty() ? "xdg-open" : chosen;
  std::string word = address;
  const std::array<char*, 3> argv{program.data(), word.data(), nullptr};
  posix_spawn_file_actions_t quiet;
  posix_spawn_file_actions_init(&quiet);
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    posix_spawn_file_actions_addopen(&quiet, stream, "/dev/null", O_RDWR, 0);
  posix_spawnattr_t apart;
  posix_spawnattr_init(&apart);
  // In a group of its own: Ctrl-C ends the server, not the browser.
  posix_spawnattr_setflags(&apart, POSIX_SPAWN_SETPGROUP);
  pid_t browser = 0;
  const int failure = ::posix_spawnp(&browser, program.c_str(), &quiet, &apart, argv.data(), environ);
  posix_spawn_file_actions_destroy(&quiet);
  posix_spawnattr_destroy(&apart);
  if (failure != 0) return system_error("cannot start the browser '" + program + "'", failure);
  return Ok{};
}

}  // namespace plimsoll::cli
