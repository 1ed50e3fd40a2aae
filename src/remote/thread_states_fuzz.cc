// Whatever the lists of interpreters and threads are (circular, endless, changing), reading them ends, within bounds.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "cpython/testing.h"
#include "memory/hostile.h"
#include "remote/thread_states.h"
#include "remote/waiting.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace plimsoll;
  static const std::vector<cpython::Layout> layouts = cpython::testing::all_layouts();
  if (size == 0) return 0;
  const cpython::Layout& layout = layouts[data[0] % layouts.size()];
  const memory::HostileMemory memory(data + 1, size - 1);
  std::vector<remote::ThreadState> states = remote::thread_states(memory, layout, Address{0});
  if (states.size() > remote::kMostThreads) __builtin_trap();
  constexpr std::uint64_t kPerThread = 3, kPerInterpreter = 2 + kPerThread;
  memory.expect_at_most(kPerThread * remote::kMostThreads + kPerInterpreter * remote::kMostInterpreters + 1);

  const memory::HostileMemory again(data + 1, size - 1);
  const os::Task tasks[] = {{Tid{7}, Tid{7}, "a", 'R'}, {Tid{8}, Tid{8}, "b", 'S'}};
  remote::learn_ids(again, tasks, states);
  (void)remote::find_code_type(again, layout, states);
  constexpr std::uint64_t kLearned = 64, kWords = 512, kFrames = 64 * 1000, kPerFrame = 5;
  again.expect_at_most(kLearned * kWords + states.size() + kFrames * kPerFrame + 2 * kLearned);

  const memory::HostileMemory lock(data + 1, size - 1);
  for (std::size_t i = 0; i < std::min<std::size_t>(states.size(), 4); ++i)
    (void)remote::holds_gil(lock, layout, Address{0}, states[i]);
  constexpr std::uint64_t kPerLock = 4;
  lock.expect_at_most(4 * kPerLock);
  return 0;
}
