// cli/render_tasks_test.cc: tasks as they are shown.
#include "cli/render_tasks.h"

#include <gtest/gtest.h>

#include "cli/task_tree.h"

namespace plimsoll::cli {
namespace {

using remote::DumpedLoop;
using remote::DumpedTask;
using remote::TaskDump;
using State = DumpedTask::State;

const SourceText& source(std::string_view file) {
  static const SourceText text{SourceOrigin::kDisk, {"async def main():", "    await both"}};
  static const SourceText none;
  return file == "/home/me/app.py" ? text : none;
}

DumpedTask waiting(const std::string& name, std::vector<std::size_t> awaited_by) {
  DumpedTask task;
  task.name = name;
  task.state = State::kWaiting;
  task.awaited_type = "_asyncio.Future";
  task.awaited_by = std::move(awaited_by);
  return task;
}

TaskDump dump_of(std::vector<DumpedTask> tasks) {
  TaskDump dump;
  dump.pid = os::Pid{42};
  dump.version = {3, 14, 2};
  dump.command = "python app.py";
  dump.directory = "/home/me";
  dump.loops.push_back({os::Task{Tid{42}, Tid{42}, "python", 'S'}, std::nullopt, tasks.size()});
  dump.tasks = std::move(tasks);
  return dump;
}

cpython::CodeInfo code(const std::string& name) { return {name, "/home/me/app.py", 1, ""}; }

std::string shown(const TaskDump& dump) { return "\n" + render_tasks(dump, source, Page{200, Paint(false), ""}); }

// The lines of tasks alone.
std::string drawn(std::vector<DumpedTask> tasks) {
  std::string text = shown(dump_of(std::move(tasks)));
  return text.substr(text.find("\n\n[") + 1);
}

TEST(RenderTasks, ShowsWhoAwaitsWhomWithFrames) {
  // GIVEN a task that waits for two others, one of which runs
  TaskDump dump = dump_of({waiting("main", {}), waiting("a", {0}), waiting("b\x1b", {0})});
  dump.tasks[0].frames = {{std::make_shared<const cpython::CodeInfo>(code("main")), {2, 5}}};
  dump.tasks[0].awaited_type = "_GatheringFuture";
  dump.tasks[1].state = State::kRunning;
  dump.tasks[1].frames = {{std::make_shared<const cpython::CodeInfo>(code("inner")), {0, 0}},
                          {std::make_shared<const cpython::CodeInfo>(code("a")), {7, 0}}};
  dump.loops[0].running_task = 1;
  EXPECT_EQ(shown(dump), R"(
process 42: python app.py
Python 3.14.2, 3 asyncio tasks in 1 event loop; innermost frames first

event loop in thread 42 "python": runs [task a]

[task main]: waits for a _GatheringFuture
│  main  app.py:2
│      await both
├─ [task a]: running
│     inner  app.py
│     a  app.py:7
└─ [task b␛]: waits for a Future
)");
}

TEST(RenderTasks, DrawsATaskThatTwoAwaitOnce) {
  EXPECT_EQ(drawn({waiting("one", {}), waiting("shared", {0, 2}), waiting("two", {}), waiting("deep", {1})}), R"(
[task one]: waits for a Future
└─ [task shared]: waits for a Future, awaited by [task one], [task two]
   └─ [task deep]: waits for a Future

[task two]: waits for a Future
└─ [task shared]: see above
)");
}

TEST(RenderTasks, DrawsRings) {
  // GIVEN two tasks that await each other, and one that awaits itself
  EXPECT_EQ(drawn({waiting("left", {1}), waiting("right", {0}), waiting("self", {2})}), R"(
[task left]: waits for a Future, awaited by [task right]
└─ [task right]: waits for a Future
   └─ [task left]: again: it awaits itself

[task self]: waits for a Future, awaited by [task self]
└─ [task self]: again: it awaits itself
)");
}

TEST(RenderTasks, BeginsAnewWhereATreeIsTooDeepForAPage) {
  // GIVEN a chain of a thousand tasks, each awaited by the one before
  std::vector<DumpedTask> tasks{waiting("0", {})};
  for (std::size_t i = 1; i < 1000; ++i) tasks.push_back(waiting(std::to_string(i), {i - 1}));
  const std::vector<TaskRow> rows = draw_tasks(dump_of(tasks));
  // THEN all are drawn, once, and no line is far to the right
  ASSERT_EQ(rows.size(), 1000U);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].task, i);
    EXPECT_LE(rows[i].rails.size(), kMostLevels);
  }
  EXPECT_TRUE(rows[kMostLevels + 1].is_root);
}

TEST(RenderTasks, NamesTheFirstOfMany) {
  std::vector<DumpedTask> tasks;
  for (int i = 0; i < 9; ++i) tasks.push_back(waiting(std::to_string(i), {}));
  tasks.push_back(waiting("popular", {0, 1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_NE(drawn(tasks).find("awaited by [task 0], [task 1], [task 2], [task 3], [task 4] and 4 others"),
            std::string::npos);
}

TEST(RenderTasks, SaysThatThereAreNone) {
  TaskDump dump = dump_of({});
  dump.loops.clear();
  EXPECT_EQ(shown(dump), "\nprocess 42: python app.py\nPython 3.14.2, no asyncio tasks\n");
  dump.has_asyncio = false;
  EXPECT_EQ(shown(dump), "\nprocess 42: python app.py\nPython 3.14.2, no asyncio: the module _asyncio is not loaded\n");
}

TEST(RenderTasks, SaysWhatIsMissing) {
  TaskDump dump = dump_of({waiting("main", {})});
  dump.moved = 2;
  dump.is_cut = true;
  const std::string text = shown(dump);
  EXPECT_NE(text.find("\n2 tasks left out: they ran on while they were read\n"), std::string::npos);
  EXPECT_NE(text.find("\nthere are more tasks"), std::string::npos);
}

TEST(RenderTasks, SaysTheSameAsJson) {
  TaskDump dump = dump_of({waiting("main", {}), waiting("a", {0})});
  dump.tasks[0].awaited_type = "_asyncio.Task";
  dump.tasks[0].awaited_task = 1;
  dump.tasks[0].frames = {{std::make_shared<const cpython::CodeInfo>(code("main")), {2, 5}}};
  EXPECT_EQ(tasks_json(dump, source),
            R"({"schema":1,"plimsoll":")" PLIMSOLL_VERSION
            R"(","pid":42,"python":"3.14.2","command":"python app.py","asyncio":true,)"
            R"("loops":[{"tid":42,"thread":"python"}],"tasks":[)"
            R"({"name":"main","loop":0,"state":"waiting","awaits":"_asyncio.Task","awaits_task":1,"awaited_by":[],)"
            R"("truncated":false,"frames":[{"function":"main","file":"/home/me/app.py","line":2,"column":5,)"
            R"("source":"await both"}]},)"
            R"({"name":"a","loop":0,"state":"waiting","awaits":"_asyncio.Future","awaited_by":[0],"truncated":false,)"
            R"("frames":[]}],"moved":0,"unreadable":0,"complete":true})"
            "\n");
}

}  // namespace
}  // namespace plimsoll::cli
