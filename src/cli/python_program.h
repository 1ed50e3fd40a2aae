// cli/python_program.h: a Python interpreter and a program for it, started so that it records itself.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace plimsoll::cli {

// The file that a command's name stands for: the first on PATH that may be executed, or, if it has a slash, itself;
// empty if there is none.
std::string find_on_path(const std::string& name);

// The interpreter to run: `asked` if it is not empty; else the one beside this binary (a virtual environment has both);
// else the active virtual environment's; else python3 on PATH.
Result<std::string> find_interpreter(const std::string& asked);

// The directory whose sitecustomize.py starts a recording in that interpreter; an error says how to install the
// package there.
Result<std::string> find_boot_directory(const std::string& interpreter);

// How long an interpreter may take to answer: from a cold disk it starts in seconds.
inline constexpr std::int64_t kAnswerPatience = 60'000'000'000;
// What a program prints that gets no input, its errors aside; empty if it fails. One that prints nothing more, and does
// not end either, is killed after that time.
std::string output_of(const std::vector<std::string>& argv, std::int64_t patience_ns = kAnswerPatience);
// The last line of that: an interpreter's own start may print, too (sitecustomize, a wrapper).
std::string last_line_of(const std::vector<std::string>& argv);

// How a child process ended, as its parent passes it on.
struct Ending {
  int exit_code = 0;  // if it was not killed
  int signal = 0;     // that killed it, or 0
};

// From what waitpid() tells of a child that has ended.
Ending ending_of(int status);

// Words as posix_spawn() takes them; they are those of `words`, which must outlive them.
std::vector<char*> pointers_to(const std::vector<std::string>& words);

// Runs argv[0] with the given variables added to the environment, standard streams shared, and waits for it.
// Meanwhile Ctrl-C and the like reach the program, which is in the same process group, and do not end this process.
// Signals sent to this process alone, as supervisors do (SIGTERM, SIGHUP, SIGUSR1, ...), are passed on, whenever they
// come. SIGINT and SIGQUIT are so only if this process does not lead its group: else they were meant for the group.
// `meanwhile` is called with the program's process id when it has been started, and must come back when it has ended.
Result<Ending> run_and_wait(const std::vector<std::string>& argv,
                            const std::vector<std::pair<std::string, std::string>>& variables,
                            const std::function<void(std::int32_t pid)>& meanwhile = {});

// Ends this process as the program ended, so that callers see no difference: by its signal, or the exit code is told.
int pass_on(const Ending& ending);

// Runs a module of the package, `python -m MODULE arguments...`, with the interpreter that find_interpreter finds; its
// exit code, passed on. An error says if the package is not installed there.
Result<int> run_module(const std::string& python, const std::string& module, const std::vector<std::string>& arguments);

}  // namespace plimsoll::cli
