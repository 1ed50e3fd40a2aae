// cli/watched_program.h: a program that is started only to be looked at from outside.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/python_program.h"
#include "os/process.h"

namespace plimsoll::cli {

// Where the program's standard output and error go, as the screen is taken.
enum class ProgramOutput : std::uint8_t { kFile, kNowhere };

// A program of which nothing is ours, in a process group of its own, so that keys like Ctrl-C are for us. Ended, if it
// runs still, when this is destroyed.
class WatchedProgram {
 public:
  // `mask`: the signals that the program finds blocked. Its standard input is ours if that is no terminal.
  static Result<std::unique_ptr<WatchedProgram>> start(const std::vector<std::string>& argv, ProgramOutput output,
                                                       const sigset_t& mask);
  WatchedProgram(const WatchedProgram&) = delete;
  WatchedProgram& operator=(const WatchedProgram&) = delete;
  ~WatchedProgram();

  [[nodiscard]] os::Pid pid() const { return os::Pid{pid_}; }
  // How it has ended; none: it runs.
  std::optional<Ending> ending();
  // Sends SIGTERM to it and its children, and waits for a while. False if it runs still.
  bool terminate();
  // The file that has its output; empty if it has written nothing, or nowhere. The program must have ended.
  [[nodiscard]] std::string output_file() const;
  // The last lines of it, as a person may see them, each after a line end and indented.
  [[nodiscard]] std::string last_output(std::size_t lines) const;

 private:
  WatchedProgram() = default;

  pid_t pid_ = 0;
  std::string directory_;  // of ours alone; empty: there is none
  std::optional<Ending> ending_;
  bool has_been_told_ = false;  // to end
};

}  // namespace plimsoll::cli
