// cli/profile_input.h: the arguments that tell which profile a command reads, and how.
#pragma once

#include <string>

#include "cli/console.h"

namespace CLI {
class App;
}

namespace plimsoll::cli {

// FILE, and what is done to it before anything else.
class ProfileInput {
 public:
  // FILE and --children. What they are bound to must outlive `app`.
  void add_arguments(CLI::App& app);
  // --tasks, likewise.
  void add_tasks_flag(CLI::App& app);

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] bool with_children() const { return with_children_; }
  // The profile: with those of its children if they are wanted, of which one that cannot be read or joined is left out
  // and said to be; and with asyncio's tasks on its stacks. `-`, standard input, has no children.
  [[nodiscard]] Result<Input> read(Console& console) const;

 private:
  void join_children(Input& input, Console& console) const;

  std::string path_;
  bool with_children_ = false, with_tasks_ = false;
};

}  // namespace plimsoll::cli
