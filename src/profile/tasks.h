// profile/tasks.h: asyncio's tasks as the roots of stacks.
#pragma once

#include "profile/profile.h"

namespace plimsoll::profile {

// For samples with the tag "task_path", "main / fetch" for example: puts the frames [task main], [task fetch] in place
// of the event loop's own frames and all that called it. What runs between the steps of tasks stays as it is. A profile
// that was recorded with those who await a task has them on its stacks, and stays as it is.
void put_tasks_on_stacks(Profile& profile);

}  // namespace plimsoll::profile
