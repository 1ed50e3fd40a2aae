// cli/python_command.h: what a command line that is to be run stands for.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace plimsoll::cli {

// An interpreter and what it is given.
struct PythonCommand {
  std::string interpreter;
  std::vector<std::string> options;  // the interpreter's own
  std::vector<std::string> program;  // not empty: a file, -m MODULE, -c COMMAND or -, and its arguments

  [[nodiscard]] std::vector<std::string> argv() const;
  // An option, as -I, -E or -S, with which Python ignores PYTHONPATH or does not import its module site; empty if none.
  [[nodiscard]] std::string isolating_option() const;
};

// `words`: a program for Python (app.py, -m MODULE ...); or, as they would be typed without us, an interpreter and its
// program (python -u app.py), or a command that is a Python program (pytest, gunicorn), which is found on PATH and runs
// with the interpreter that it names. `asked`: the interpreter that the user has chosen; empty for the one that
// find_interpreter() finds. An error, of what is no file, or no program of Python, says so.
Result<PythonCommand> find_python_command(const std::string& asked, std::vector<std::string> words);

}  // namespace plimsoll::cli
