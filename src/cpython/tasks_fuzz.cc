// Whatever stands where asyncio's tasks should be (lists that come round too early or never, coroutines that await each
// other in a ring, sets of absurd sizes), reading them ends, within bounds.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "cpython/tasks.h"
#include "cpython/testing.h"
#include "memory/hostile.h"

namespace {

// Near each other, so that a small input has all of a task.
plimsoll::cpython::TaskLayout small_layout() {
  plimsoll::cpython::TaskLayout layout;
  layout.type = {8, 16};
  layout.set = {24, 32, 40};
  layout.integer = {16, 24};
  layout.coroutine = {.frame = 72,
                      .frame_state = 67,
                      .stack_top = 64,
                      .awaited = 8,
                      .created = -3,
                      .executing = 0,
                      .first_awaiting = -1,
                      .last_awaiting = -1,
                      .first_ended = 1};
  layout.node = {0, 8};
  layout.task = {
      .loop = 16, .name = 24, .awaited_by = 32, .awaited_by_is_set = 40, .is_task = 41, .coroutine = 48, .node = 56};
  return layout;
}

// Up to 3.13 callbacks say who waits. All types are at small addresses, so that they are met.
void look_at_callbacks(const plimsoll::cpython::Layout& layout, const plimsoll::memory::HostileMemory& memory) {
  using namespace plimsoll;
  using namespace plimsoll::cpython;
  TaskLayout tasks = older_task_layout(layout).value();
  FutureCallbacks& known = *tasks.callbacks;
  known.current_tasks = Address{64};
  known.running_loop = layout.version.minor == 13 ? 312 : kNoField;
  std::uint64_t next = 0;
  for (Address* const type : {&known.future_type, &known.task_type, &known.function_type, &known.cell_type,
                              &known.method_type, &known.partial_type, &known.wakeup_type})
    *type = Address{next += 8};
  known.group_member_done = known.release_waiter = Address{8};
  for (FutureCallbacks::Closure& closure : known.closures) closure = {Address{next += 8}, 1};
  const TaskPlaces places{layout, tasks, Address{8}};
  constexpr std::uint64_t kFutures = 32, kPlaces = 4096;
  std::uint64_t places_left = kPlaces;
  for (std::uint64_t i = 0; i < kFutures; ++i)
    (void)each_awaiter(
        memory, places, Address{i * 64}, [](Address) { return AwaitKind::kOther; }, places_left,
        [](Address) { return true; });
  Address running{};
  (void)load_current_task(memory, layout, known, Address{16}, running);
  (void)step_along(memory, places, running, AwaitKind::kGenerator);
  known.task_references = Address{128};
  known.eager_tasks = Address{192};
  std::vector<Address> all;
  (void)TaskReader(memory, places, 1).all(all);
  if (all.size() > kMostTasks) __builtin_trap();
  // A callback is looked at by some words, a base class of a type by one; of a row of a dict its key, too.
  constexpr std::uint64_t kPerCallback = 64, kPerWord = 8;
  // A place of a set of tasks is two, and what is there, or is referred to, is asked for its type and that one's bases.
  constexpr std::uint64_t kPerTask = 40;
  memory.expect_at_most(kPlaces * kPerCallback + (kFutures + 1) * (internal::kCallbackWords * kPerWord + 200) +
                        kMostTaskSlots * kPerTask);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace plimsoll;
  using namespace plimsoll::cpython;
  static const std::vector<Layout> layouts = testing::all_layouts();
  static const TaskLayout tasks = small_layout();
  if (size == 0) return 0;
  constexpr unsigned kOlder = 2, kOlderLayouts = 5;
  if ((data[0] & kOlder) != 0) {
    look_at_callbacks(layouts[data[0] / 4 % kOlderLayouts], memory::HostileMemory(data + 1, size - 1));
    return 0;
  }
  const Layout& layout = layouts[layouts.size() - 1 - data[0] % 2];
  constexpr std::size_t kDepth = 1000, kTasks = 4;
  const memory::HostileMemory memory(data + 1, size - 1);
  TaskReader reader(memory, {layout, tasks, Address{8}}, kDepth);
  std::vector<Address> found;
  (void)reader.list(Address{0}, found);
  if (found.size() > kMostTasks) __builtin_trap();
  memory.expect_at_most(2 * kMostTasks + 2);

  const memory::HostileMemory again(data + 1, size - 1);
  TaskReader each(again, {layout, tasks, Address{8}}, kDepth);
  found.resize(std::min(found.size(), kTasks));
  found.push_back(Address{64});
  for (const Address task : found) {
    TaskRecord record;
    if (!each.read(task, record)) continue;
    if (record.chain.frames.size() > kDepth || record.awaiters.size() > kMostAwaiters) __builtin_trap();
    bool has_more = false;
    if (each.tasks_among(record.awaiters, has_more).size() > kMostAwaiters + 1) __builtin_trap();
  }
  // A step along a chain looks at an object, its type, whose name has 200 bytes, and a frame; a slot of a set is two
  // loads.
  constexpr std::uint64_t kPerStep = 300, kSlots = 2 * kMostAwaiterSlots, kBetween = 200;
  again.expect_at_most((kTasks + 1) * (kDepth + kBetween) * kPerStep + kSlots);
  return 0;
}
