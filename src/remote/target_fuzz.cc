// Whatever another process has in its memory, a look at it ends, within bounds, and believes nothing that is none. The
// process is this one: the fuzzer's bytes are the page that all pointers lead to.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "cpython/awaiting.h"
#include "cpython/testing.h"
#include "memory/hostile.h"
#include "remote/sampler.h"
#include "remote/stack_reader.h"
#include "remote/task_reading.h"
#include "remote/thread_states.h"
#include "remote/waiting.h"

namespace {

using namespace plimsoll;

// Where no memory is but the fuzzer's.
constexpr std::uint64_t kBase = 0x0000'2000'0000'0000;
constexpr std::size_t kSize = std::size_t{1} << 16U;

std::uint8_t* image() {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): a fixed place
  static void* const at = ::mmap(reinterpret_cast<void*>(kBase), kSize, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (at == MAP_FAILED) __builtin_trap();
  return static_cast<std::uint8_t*>(at);
}

constexpr std::array<std::uint64_t, 1> kMarks{0x5050};  // of words that lead into the image

void look(const remote::Target& target, const remote::ThreadState& state, remote::StackReader& reader) {
  const cpython::Snapshot snapshot = reader.read(state.address, std::nullopt);
  if (reader.frames().size() > 64) __builtin_trap();
  if (snapshot.is_proven)
    for (const cpython::PyFrame& frame : reader.frames()) (void)reader.code_of(frame);
  const memory::RemoteReader memory = target.memory();
  (void)remote::holds_gil(memory, target.layout, target.runtime, state);
  (void)remote::activity_of(memory, target.layout, target.runtime, state,
                            {os::KernelWait::Kind::kFutex, Address{kBase}});
}

// Where the versions have them; the image begins with the tables.
void look_at_tasks(const remote::Target& target, const remote::ThreadState& state) {
  cpython::TaskLayout layout;
  layout.type = {24, 168};
  layout.set = {40, 32, 24};
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
  layout.task = {.loop = 16,
                 .name = 136,
                 .awaited_by = 96,
                 .awaited_by_is_set = 109,
                 .is_task = 108,
                 .coroutine = 128,
                 .node = 152};
  layout.interpreter = {.tasks = 200};
  layout.tstate = {.running_loop = 864, .running_task = 872, .tasks = 880};
  const memory::RemoteReader memory = target.memory();
  (void)cpython::find_task_layout(memory, target.layout, target.runtime, Address{kBase + 2048});
  const memory::PagedReader paged(memory);
  const cpython::TaskPlaces places{target.layout, layout, target.code_type};
  const std::vector<Address> loops = remote::running_loops(paged, places, {state});
  const remote::TaskReading reading = remote::read_tasks(paged, places, {state, state.interpreter}, loops);
  if (reading.tasks.size() > cpython::kMostTasks + 1) __builtin_trap();
  std::vector<cpython::PyFrame> frames(256);
  const cpython::Walk walk =
      cpython::walk_thread(paged, target.layout, target.code_type, state.address, std::span(frames).first(64));
  const cpython::AwaitingStack stack = cpython::put_awaiting(paged, places, state.address, frames, walk, 64);
  const auto shown = std::span<const cpython::PyFrame>(frames).first(stack.count);
  const bool is_whole = cpython::each_from_outermost(shown, [](const auto&, std::string_view) { return true; });
  if (stack.own > stack.count || stack.touched > frames.size() || !is_whole) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::vector<cpython::Layout> layouts = cpython::testing::all_layouts();
  if (size == 0) return 0;
  std::uint8_t* const at = image();
  const std::size_t used = std::min(size - 1, kSize);
  std::memcpy(at, data + 1, used);
  std::memset(at + used, 0, kSize - used);
  memory::link_words(std::as_writable_bytes(std::span(at, used)), kMarks,
                     [](std::uint64_t, std::uint64_t word) { return kBase + word % kSize; });

  remote::Target target;
  target.pid = os::Pid{::getpid()};
  target.layout = layouts[data[0] % layouts.size()];
  target.runtime = Address{kBase};
  target.code_type = Address{kBase + 256};
  const memory::RemoteReader memory = target.memory();
  memory::PagedReader paged(memory);
  std::vector<remote::ThreadState> states = remote::thread_states(paged, target.layout, target.runtime);
  const os::Task tasks[] = {{Tid{7}, Tid{7}, "a", 'R'}, {Tid{8}, Tid{8}, "b", 'S'}};
  states.resize(std::min<std::size_t>(states.size(), 4));
  remote::learn_ids(paged, tasks, states);
  (void)remote::find_code_type(paged, target.layout, states);
  (void)cpython::find_layout(memory, target.layout.version, target.runtime);
  remote::StackReader reader(target, 64);
  for (const remote::ThreadState& state : states) look(target, state, reader);
  look(target, {Address{kBase + 512}, Address{kBase + 1024}}, reader);
  if (target.layout.version.minor >= 14) look_at_tasks(target, {Address{kBase + 512}, Address{kBase + 1024}});
  return 0;
}
