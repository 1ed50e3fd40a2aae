#include "cli/task_tree.h"

#include <deque>

namespace plimsoll::cli {
namespace {

class Drawing {
 public:
  explicit Drawing(const remote::TaskDump& dump) : dump_(dump), awaits_(dump.tasks.size()), marks_(dump.tasks.size()) {
    for (std::size_t task = 0; task < dump.tasks.size(); ++task)
      for (const std::size_t awaiter : dump.tasks[task].awaited_by) awaits_[awaiter].push_back(task);
  }

  std::vector<TaskRow> draw() {
    for (std::size_t loop = 0; loop < dump_.loops.size(); ++loop) {
      loop_ = loop;
      // Those that nobody awaits; then what is left: those that await each other in a ring.
      each_of_loop([&](std::size_t task) { return dump_.tasks[task].awaited_by.empty(); });
      each_of_loop([&](std::size_t) { return true; });
    }
    return std::move(rows_);
  }

 private:
  enum class Mark : std::uint8_t { kNew, kOnPath, kDrawn };

  template <typename IsRoot>
  void each_of_loop(IsRoot is_root) {
    for (std::size_t task = 0; task < dump_.tasks.size(); ++task) {
      if (dump_.tasks[task].loop != loop_ || marks_[task] != Mark::kNew || !is_root(task)) continue;
      deeper_.push_back(task);
      while (!deeper_.empty()) {
        const std::size_t next = deeper_.front();
        deeper_.pop_front();
        if (marks_[next] == Mark::kNew) add(next, true, false, "", 0);
      }
    }
  }

  // Recursive, to kMostLevels.
  void add(std::size_t task, bool is_root, bool has_more, std::string rails,
           std::size_t level) {  // NOLINT(misc-no-recursion)
    TaskRow row{task, TaskRow::Kind::kWhole, loop_, is_root, has_more, !awaits_[task].empty(), std::move(rails)};
    if (marks_[task] != Mark::kNew)
      row.kind = marks_[task] == Mark::kOnPath ? TaskRow::Kind::kCycle : TaskRow::Kind::kAgain;
    if (row.kind != TaskRow::Kind::kWhole || level == kMostLevels) row.has_callees = false;
    const std::string below = is_root ? "" : row.rails + (has_more ? '|' : ' ');
    const TaskRow::Kind kind = row.kind;
    rows_.push_back(std::move(row));
    if (kind != TaskRow::Kind::kWhole) return;
    if (level == kMostLevels) {
      marks_[task] = Mark::kDrawn;
      deeper_.insert(deeper_.end(), awaits_[task].begin(), awaits_[task].end());
      return;
    }
    marks_[task] = Mark::kOnPath;
    for (const std::size_t& awaited : awaits_[task])
      add(awaited, false, &awaited != &awaits_[task].back(), below, level + 1);
    marks_[task] = Mark::kDrawn;
  }

  const remote::TaskDump& dump_;
  std::vector<std::vector<std::size_t>> awaits_;  // by task: those that it awaits
  std::vector<Mark> marks_;
  std::deque<std::size_t> deeper_;  // roots to be drawn next
  std::size_t loop_ = 0;
  std::vector<TaskRow> rows_;
};

}  // namespace

std::vector<TaskRow> draw_tasks(const remote::TaskDump& dump) { return Drawing(dump).draw(); }

}  // namespace plimsoll::cli
