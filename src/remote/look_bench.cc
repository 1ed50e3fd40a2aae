// What a look at a thread that stands still costs, without the sleep between looks: the core loop of attach and top.
//
//   PLIMSOLL_PID=1234 build/release/src/look_bench
//
// The process's first thread should wait, 20 frames deep, say.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <optional>
#include <string>

#include "remote/stack_reader.h"
#include "remote/thread_states.h"

namespace plimsoll::remote {
namespace {

constexpr std::size_t kMaxDepth = 2048;

// The process that was named, and its first thread.
struct Subject {
  Target target;
  Address thread{};
  os::ThreadProbe probe;
};

std::optional<Subject> subject_of_environment() {
  const char* pid = std::getenv("PLIMSOLL_PID");
  if (pid == nullptr) return std::nullopt;
  Result<Target> target = find_target(os::Pid{std::stoi(pid)});
  if (!target.ok()) return std::nullopt;
  Subject subject{target.take(), {}, {}};
  const auto number = static_cast<std::int32_t>(subject.target.pid);
  const memory::RemoteReader memory = subject.target.memory();
  for (const ThreadState& state : thread_states(memory, subject.target.layout, subject.target.runtime))
    if (state.native_id == static_cast<std::uint64_t>(number)) subject.thread = state.address;
  subject.probe = os::ThreadProbe(Tid{number}, os::ThreadProbe::Keep::kOpen, number);
  return subject;
}

// Its turns, its stack, its turns again: the proof, and nothing else.
void prove_a_stack(benchmark::State& state) {
  const std::optional<Subject> subject = subject_of_environment();
  if (!subject) return state.SkipWithError("PLIMSOLL_PID names no Python process that can be looked at");
  StackReader reader(subject->target, kMaxDepth);
  std::size_t proven = 0;
  for ([[maybe_unused]] auto _ : state) {
    const std::optional<os::Schedule> schedule = subject->probe.schedule();
    if (schedule && reader.read(subject->thread, Standing{&subject->probe, *schedule}).is_proven) ++proven;
  }
  if (proven == 0) return state.SkipWithError("nothing could be proven: does the thread wait?");
  state.counters["frames"] = static_cast<double>(reader.frames().size());
  state.counters["proven"] = static_cast<double>(proven) / static_cast<double>(state.iterations());
  state.counters["samples"] = benchmark::Counter(static_cast<double>(proven), benchmark::Counter::kIsRate);
}
BENCHMARK(prove_a_stack)->Unit(benchmark::kMicrosecond);

// The floor: has it moved? What a look at a thread that waits on costs.
void ask_for_turns(benchmark::State& state) {
  const std::optional<Subject> subject = subject_of_environment();
  if (!subject) return state.SkipWithError("PLIMSOLL_PID names no Python process that can be looked at");
  for ([[maybe_unused]] auto _ : state) benchmark::DoNotOptimize(subject->probe.schedule());
}
BENCHMARK(ask_for_turns)->Unit(benchmark::kMicrosecond);

// What else is asked of one that runs.
void ask_for_place(benchmark::State& state) {
  const std::optional<Subject> subject = subject_of_environment();
  if (!subject) return state.SkipWithError("PLIMSOLL_PID names no Python process that can be looked at");
  for ([[maybe_unused]] auto _ : state) benchmark::DoNotOptimize(subject->probe.place());
}
BENCHMARK(ask_for_place)->Unit(benchmark::kMicrosecond);

// One word of its memory: no proof can do with less.
void read_a_word(benchmark::State& state) {
  const std::optional<Subject> subject = subject_of_environment();
  if (!subject) return state.SkipWithError("PLIMSOLL_PID names no Python process that can be looked at");
  const memory::RemoteReader memory = subject->target.memory();
  std::uint64_t word = 0;
  for ([[maybe_unused]] auto _ : state) benchmark::DoNotOptimize(memory.load(subject->thread, word));
}
BENCHMARK(read_a_word)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace plimsoll::remote
