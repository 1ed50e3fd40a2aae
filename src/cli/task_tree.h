// cli/task_tree.h: who awaits whom, as a tree: below each task those that it awaits.
//
// It is no tree: a task can be awaited by two, and two can await each other. So each task is drawn once with all that
// is known of it, below the first that awaits it; wherever else it belongs, its name stands alone.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "remote/task_dump.h"

namespace plimsoll::cli {

// A task's place in the drawing.
struct TaskRow {
  // What of it is shown.
  enum class Kind : std::uint8_t {
    kWhole,
    kAgain,  // it is drawn elsewhere
    kCycle,  // it is drawn right above: it awaits itself
  };

  std::size_t task = 0;  // in TaskDump::tasks
  Kind kind = Kind::kWhole;
  std::size_t loop = 0;  // that the tree belongs to, whose root this is below
  bool is_root = false;
  bool has_more = false;     // others follow below the same task
  bool has_callees = false;  // rows follow that are below this one
  std::string rails;         // a char per level to the left: '|' the level goes on below, ' ' not
};

// All rows from top to bottom, one loop after another. Below kMostLevels a task begins a tree of its own.
inline constexpr std::size_t kMostLevels = 30;
std::vector<TaskRow> draw_tasks(const remote::TaskDump& dump);

}  // namespace plimsoll::cli
