// What a frame costs, with rules in the cache and without, and what the tables cost:
//
//   build/release/src/unwind_bench --benchmark_repetitions=5
#include <benchmark/benchmark.h>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>

#include "memory/local.h"
#include "native/modules.h"
#include "native/unwind.h"

namespace plimsoll::native {
namespace {

// Calls `visit` from so many calls further in, each of another function.
template <int Depth, typename Visit>
[[gnu::noinline]] void from_deep_inside(Visit& visit) {
  if constexpr (Depth == 0)
    visit();
  else
    from_deep_inside<Depth - 1>(visit);
  asm volatile("" ::: "memory");
}

enum class Cache { kWarm, kCold };

// The time of one stack, by the clock: making a map whose cache is empty must not count. The least of all is what a
// machine with other work to do can tell.
void unwind_once(benchmark::State& state, const ModuleMap& map, const Registers& registers,
                 std::span<NativeFrame> frames, std::uint32_t& count, double& least) {
  const auto began = std::chrono::steady_clock::now();
  const Unwind unwound = unwind(memory::LocalReader{}, map, registers, frames);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  state.SetIterationTime(took.count());
  least = std::min(least, took.count());
  count = unwound.count;
  if (unwound.stop != UnwindStop::kComplete) state.SkipWithError("not complete");
}

template <int Depth, Cache kCache>
void unwind_own_stack(benchmark::State& state) {
  const Result<std::vector<os::Mapping>> mappings = os::mappings_of(os::Pid{::getpid()});
  if (!mappings.ok() || !memory::FaultGuard::ensure_installed().ok()) return state.SkipWithError("no mappings");
  RulePool pool;
  const ProcessMemory memory;
  const std::vector<CodeRange> ranges = code_ranges(mappings.value(), {}, pool, {memory, {}});
  std::array<NativeFrame, 512> frames;
  std::uint32_t count = 0;
  double least = 1;
  auto visit = [&] {
    ucontext_t context;
    ::getcontext(&context);
    auto map = std::make_unique<ModuleMap>(ranges, pool);
    for ([[maybe_unused]] auto _ : state) {
      if (kCache == Cache::kCold) map = std::make_unique<ModuleMap>(ranges, pool);
      unwind_once(state, *map, registers_of(context), frames, count, least);
    }
  };
  from_deep_inside<Depth>(visit);
  state.counters["frames"] = count;
  state.counters["least_ns"] = least * 1e9 / std::max(count, 1U);
  state.counters["per_frame"] = benchmark::Counter(
      static_cast<double>(count), benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}
BENCHMARK(unwind_own_stack<8, Cache::kWarm>)->UseManualTime();
BENCHMARK(unwind_own_stack<64, Cache::kWarm>)->UseManualTime();
BENCHMARK(unwind_own_stack<8, Cache::kCold>)->UseManualTime();
BENCHMARK(unwind_own_stack<64, Cache::kCold>)->UseManualTime();

// Everything that is loaded, from nothing.
void compile_all(benchmark::State& state) {
  if (!memory::FaultGuard::ensure_installed().ok()) return state.SkipWithError("no guard");
  std::size_t rows = 0;
  std::size_t bytes = 0;
  for ([[maybe_unused]] auto _ : state) {
    Modules modules;
    if (!modules.refresh(1).ok()) return state.SkipWithError("no modules");
    rows = bytes = 0;
    const Module* last = nullptr;
    for (const CodeRange& range : modules.current()->ranges()) {
      if (range.module == nullptr || range.module.get() == last) continue;
      last = range.module.get();
      rows += last->table.rows();
      bytes += last->table.memory();
    }
  }
  state.counters["rows"] = static_cast<double>(rows);
  state.counters["bytes"] = static_cast<double>(bytes);
}
BENCHMARK(compile_all)->Unit(benchmark::kMillisecond);

// What the drain thread does each time if nothing was loaded.
void nothing_new(benchmark::State& state) {
  Modules modules;
  for ([[maybe_unused]] auto _ : state)
    if (!modules.refresh(1).ok()) return state.SkipWithError("no modules");
}
BENCHMARK(nothing_new);

}  // namespace
}  // namespace plimsoll::native
