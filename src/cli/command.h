// cli/command.h: a verb of the command line: `plimsoll <name> ...`.
//
// One class and one file per verb. A verb declares its arguments, and is run once after they have been parsed into its
// members. main.cc lists the verbs; app.cc does the rest.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/console.h"

namespace CLI {
class App;
}

namespace plimsoll::cli {

// A verb, from its arguments to its exit code.
class Command {
 public:
  virtual ~Command() = default;
  // As typed: "show".
  [[nodiscard]] virtual std::string_view name() const = 0;
  // One line for `plimsoll --help`.
  [[nodiscard]] virtual std::string_view summary() const = 0;
  // Lines of "  plimsoll show ...   what it does" for `plimsoll show --help`.
  [[nodiscard]] virtual std::string examples() const = 0;
  // Whether a program with arguments of its own follows the verb's options; it is passed to set_program before run.
  [[nodiscard]] virtual bool takes_program() const { return false; }
  // Whether a word where the program could begin is an argument of the verb's own: then no program follows.
  [[nodiscard]] virtual bool is_own_word(std::string_view) const { return false; }
  // By value, for it is moved from where it is kept. NOLINTNEXTLINE(performance-unnecessary-value-param)
  virtual void set_program(std::vector<std::string>) {}
  // Binds arguments to members; they must outlive `app`.
  virtual void add_arguments(CLI::App& app) = 0;
  // Does the work; the exit code (exit_code.h, or that of a profiled program) or an Error, which names its own.
  virtual Result<int> run(Console& console) = 0;
};

}  // namespace plimsoll::cli
