// What a look at a thread of a Python process costs: how long it is stopped, and our CPU time.
//
//   PLIMSOLL_PID=1234 build/release/src/native_reader_bench --benchmark_min_time=2
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/clock.h"
#include "remote/native_reader.h"
#include "remote/thread_states.h"

namespace plimsoll::remote {
namespace {

constexpr std::size_t kMaxDepth = 2048;

Result<Target> target_of_environment() {
  const char* pid = std::getenv("PLIMSOLL_PID");
  if (pid == nullptr) return Error{ErrorKind::kUsage, "PLIMSOLL_PID is not set"};
  return find_target(os::Pid{std::stoi(pid)});
}

// The state of its first thread.
Address first_thread(const Target& target) {
  const memory::RemoteReader memory = target.memory();
  for (const ThreadState& state : thread_states(memory, target.layout, target.runtime))
    if (state.native_id == static_cast<std::uint64_t>(target.pid)) return state.address;
  return {};
}

// Stops the first thread, which must be running, and unwinds its stack.
void stop_and_unwind(benchmark::State& state) {
  const Result<Target> target = target_of_environment();
  if (!target.ok()) return state.SkipWithError(target.error().message.c_str());
  const auto pid = static_cast<std::int32_t>(target.value().pid);
  os::ThreadStopper stopper;
  NativeReader reader(target.value(), stopper, kMaxDepth);
  StackReader python(target.value(), kMaxDepth, Marks::kYes);
  const os::ThreadProbe probe(Tid{pid}, os::ThreadProbe::Keep::kOpen, pid);
  const Address thread = first_thread(target.value());
  const os::Haste haste;
  os::wake_on_time();
  if (!reader.refresh().ok()) return state.SkipWithError("no mappings");
  std::vector<std::int64_t> held;
  std::size_t frames = 0;
  for ([[maybe_unused]] auto _ : state) {
    if (reader.read_stopped(Tid{pid}, probe, thread, python).outcome != NativeReader::Outcome::kRead) continue;
    held.push_back(reader.held_ns());
    frames = reader.unwind().frames.size() + python.frames().size();
    state.PauseTiming();
    os::sleep_until(monotonic_ns() + 1'000'000);
    state.ResumeTiming();
  }
  if (held.empty()) return state.SkipWithError("it could never be stopped");
  std::sort(held.begin(), held.end());
  const auto us = [&](std::size_t place) { return static_cast<double>(held[place]) / 1e3; };
  state.counters["frames"] = static_cast<double>(frames);
  state.counters["held_median_us"] = us(held.size() / 2);
  state.counters["held_p99_us"] = us(held.size() * 99 / 100);
  state.counters["held_max_us"] = us(held.size() - 1);
}
BENCHMARK(stop_and_unwind)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace plimsoll::remote
