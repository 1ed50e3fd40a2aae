// What sampling costs at each distance, and what the heap costs beside malloc:
//
//   build/release/src/heap_bench --benchmark_repetitions=5 --benchmark_enable_random_interleaving=true
//
// "Trees" is Boehm's GCBench in small: trees of all depths, and one that lives on. "Objects" is allocation alone.
#include <benchmark/benchmark.h>

#include <cstdlib>

#include "nursery/testing.h"

namespace plimsoll::nursery {
namespace {

using namespace testing;

struct Pair : Object {
  Pair* left;
  Pair* right;
};
void trace_pair(Object& object, Visitor& visitor) {
  visitor.visit(static_cast<Pair&>(object).left);
  visitor.visit(static_cast<Pair&>(object).right);
}
constexpr std::array<Type, 1> kPairTypes{Type{"pair", trace_pair}};
constexpr TypeId kPair{0};

// An observer that does what a cheap stack walk would: nothing is measured here but the heap's part.
class Counter final : public Observer {
 public:
  void sampled(const Sample& sample) override { bytes += sample.bytes; }
  void settled(std::uint64_t, Fate) override {}
  void collected(const CollectionEvent&) override {}
  std::uint64_t bytes = 0;
};

// Bottom up: the halves are roots while the node is made.
Pair* make_tree(Heap& heap, int depth) {
  if (depth == 0) return heap.allocate<Pair>(kPair);
  Root<Pair> left(heap, make_tree(heap, depth - 1));
  Root<Pair> right(heap, make_tree(heap, depth - 1));
  Pair* node = heap.allocate<Pair>(kPair);
  node->left = left.get();
  node->right = right.get();
  return node;
}

struct Tree {
  Tree* left = nullptr;
  Tree* right = nullptr;
};
Tree* make_malloc_tree(int depth) {
  auto* node = static_cast<Tree*>(std::calloc(1, sizeof(Tree)));
  if (depth > 0) {
    node->left = make_malloc_tree(depth - 1);
    node->right = make_malloc_tree(depth - 1);
  }
  return node;
}
void free_tree(Tree* tree) {
  if (tree == nullptr) return;
  free_tree(tree->left);
  free_tree(tree->right);
  std::free(tree);
}

constexpr int kLivingDepth = 14;
constexpr int kDeepest = 12;

void trees(benchmark::State& state) {
  Counter counter;
  HeapSettings settings{.types = kPairTypes, .sampling = {static_cast<std::uint64_t>(state.range(0))}};
  settings.observer = &counter;
  const auto heap = Heap::create(settings).take();
  Root<Pair> living(*heap, make_tree(*heap, kLivingDepth));
  for (auto _ : state)
    for (int depth = 4; depth <= kDeepest; depth += 2)
      for (int i = 0; i < 1 << (kDeepest - depth); ++i) benchmark::DoNotOptimize(make_tree(*heap, depth));
  state.counters["MB/s"] =
      benchmark::Counter(static_cast<double>(heap->statistics().allocated_bytes) / 1e6, benchmark::Counter::kIsRate);
  state.counters["samples"] = static_cast<double>(heap->statistics().samples);
}

void trees_malloc(benchmark::State& state) {
  Tree* living = make_malloc_tree(kLivingDepth);
  for (auto _ : state)
    for (int depth = 4; depth <= kDeepest; depth += 2)
      for (int i = 0; i < 1 << (kDeepest - depth); ++i) free_tree(make_malloc_tree(depth));
  free_tree(living);
}

void objects(benchmark::State& state) {
  Counter counter;
  HeapSettings settings{.types = kPairTypes, .sampling = {static_cast<std::uint64_t>(state.range(0))}};
  settings.observer = &counter;
  const auto heap = Heap::create(settings).take();
  for (auto _ : state) benchmark::DoNotOptimize(heap->allocate<Pair>(kPair));
  state.counters["MB/s"] =
      benchmark::Counter(static_cast<double>(heap->statistics().allocated_bytes) / 1e6, benchmark::Counter::kIsRate);
}

void objects_malloc(benchmark::State& state) {
  for (auto _ : state) {
    void* object = std::calloc(1, sizeof(Pair));
    benchmark::DoNotOptimize(object);
    std::free(object);
  }
}

// 0 = off, then 32 KiB to 32 MiB.
void distances(benchmark::internal::Benchmark* of) {
  of->Arg(0);
  for (std::int64_t bytes = 32 << 10; bytes <= 32 << 20; bytes *= 4) of->Arg(bytes);
}
BENCHMARK(trees)->Apply(distances)->Unit(benchmark::kMillisecond);
BENCHMARK(trees_malloc)->Unit(benchmark::kMillisecond);
BENCHMARK(objects)->Apply(distances);
BENCHMARK(objects_malloc);

}  // namespace
}  // namespace plimsoll::nursery
