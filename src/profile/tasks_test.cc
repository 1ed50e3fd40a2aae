#include "profile/tasks.h"

#include <gtest/gtest.h>

#include "profile/testing.h"

namespace plimsoll::profile {
namespace {

// The stacks of a drawn profile, one a line, after tasks have been put on them.
std::vector<std::string> with_tasks(std::string_view drawing) {
  Profile profile = testing::draw_profile(drawing);
  put_tasks_on_stacks(profile);
  return testing::stacks_of(profile);
}

using Stacks = std::vector<std::string>;

TEST(Tasks, StandInPlaceOfTheEventLoop) {
  EXPECT_EQ(with_tasks("<module>;run(/lib/asyncio/runners.py);Handle._run(/lib/asyncio/events.py:80);main;work  1 "
                       "#task=main,task_path=main"),
            (Stacks{"[task main];main;work"}));
}

TEST(Tasks, StandBelowThoseThatMadeThem) {
  Profile profile = testing::draw_profile("loop;_run(/lib/asyncio/events.py:80);fetch  1  #task_path=main");
  const Tag path{profile.strings.intern("task_path"), profile.strings.intern("main / fetch")};
  profile.samples.tags[0] = profile.tag_sets.intern({path});
  put_tasks_on_stacks(profile);
  EXPECT_EQ(frames_of(profile.stacks, profile.samples.stack[0]).size(), 3U);
  const StackId parent = profile.stacks[profile.samples.stack[0]].parent;
  EXPECT_EQ(profile.strings[profile.functions[profile.leaf_function(parent)].name], "[task fetch]");
}

TEST(Tasks, LeaveOtherStacksAlone) {
  EXPECT_EQ(with_tasks("<module>;run;_run(/lib/asyncio/events.py:80);callback  1\n"
                       "main;work  1  #request=GET\n"
                       "-  1  #task_path=main"),
            (Stacks{"<module>;run;_run;callback", "main;work", "[task main]"}));
}

TEST(Tasks, AreFoundOnOtherEventLoopsAndOnStacksWithinStacks) {
  // GIVEN a loop without frames, a task that begins at once, and a loop within a task's step
  EXPECT_EQ(
      with_tasks(
          "<module>;main  1  #task_path=main\n"
          "_run(/lib/asyncio/events.py:80);main;_make_task.<locals>.create_task(/x/plimsoll/_tasks.py:70);child  1  "
          "#task_path=child\n"
          "_run(/lib/asyncio/events.py:80);main;run;_run(/lib/asyncio/events.py:80);inner  1  #task_path=inner"),
      (Stacks{"[task main];<module>;main", "[task child];child", "[task inner];inner"}));
}

TEST(Tasks, StayAsTheyAreWithThoseWhoAwaitThem) {
  // GIVEN a recording that has read who awaits a task: one stack has those, in the other nobody could be told
  Profile profile = testing::draw_profile(
      "[task main];main;[task fetch];fetch  1  #task=fetch,task_path=maker\n"
      "run;_run(/lib/asyncio/events.py:80);callback  1  #task=fetch,task_path=maker");
  profile.set_meta("task_stacks", "1");
  const std::vector<std::string> before = testing::stacks_of(profile);
  // WHEN tasks are put on its stacks THEN those of samples have what was found
  put_tasks_on_stacks(profile);
  EXPECT_EQ(testing::stacks_of(profile), before);
}

}  // namespace
}  // namespace plimsoll::profile
