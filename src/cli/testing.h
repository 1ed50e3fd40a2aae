// cli/testing.h: a console that remembers, for tests only. No product code may include it.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cli/app.h"
#include "cli/console.h"

namespace plimsoll::cli::testing {

// Serves profiles from functions and keeps what was printed.
class FakeConsole final : public Console {
 public:
  std::map<std::string, std::function<profile::Profile()>> files;  // what read_profile finds
  std::map<std::string, std::string> bytes;                        // what read_file finds
  Environment surroundings;
  std::string out;  // all that was printed
  std::string err;  // all notices, a line each

  Status print(std::string_view data) override {
    out += data;
    return Ok{};
  }
  void notice(std::string_view line) override {
    err += line;
    err += "\n";
  }
  Result<Input> read_profile(const std::string& path) override {
    const auto found = files.find(path);
    if (found == files.end()) return Error{ErrorKind::kBadInput, "cannot open " + path + ": No such file or directory"};
    return Input{found->second(), 1000};
  }
  Result<std::string> read_file(const std::string& path) override {
    const auto found = bytes.find(path);
    if (found == bytes.end()) return Error{ErrorKind::kBadInput, "cannot read " + path + ": No such file or directory"};
    return found->second;
  }
  [[nodiscard]] Environment environment() const override { return surroundings; }
};

// Runs one command with the words after its name; the exit code.
inline int run_words(std::unique_ptr<Command> command, std::vector<std::string> words, Console& console) {
  Commands commands;
  commands.push_back(std::move(command));
  return run_app(commands, std::move(words), console);
}

}  // namespace plimsoll::cli::testing
