// The proof that sampling adds nothing to an allocation that is not sampled: the processor's own steps, counted one by
// one (ptrace), are those of a bump allocator that has never heard of sampling.
#include <gtest/gtest.h>

#include "base/steps_testing.h"
#include "nursery/testing.h"

namespace plimsoll::nursery {
namespace {

using namespace testing;
using plimsoll::testing::steps_of_one;

// What allocating from a nursery takes: nothing here knows of samples.
struct PlainNursery {
  char* free_;
  char* limit_;
  std::uint64_t* allocate(std::uint16_t type, std::size_t size) {
    char* at = free_;
    if (size > static_cast<std::size_t>(limit_ - at)) [[unlikely]]
      return collect(type, size);
    free_ = at + size;
    auto* object = reinterpret_cast<std::uint64_t*>(at);
    *object = type | std::uint64_t{size} << 24U;
    return object;
  }
  [[gnu::noinline]] std::uint64_t* collect(std::uint16_t, std::size_t) { return free_ = nullptr, nullptr; }
};

[[gnu::noinline]] void* allocate_plain(PlainNursery& nursery) { return nursery.allocate(0, sizeof(Node)); }
[[gnu::noinline]] void* allocate_node(Heap& heap) { return heap.allocate<Node>(kNode); }

long steps_with(Distance distance) {
  const auto heap = heap_with({.sampling = distance});
  return steps_of_one([&] { (void)allocate_node(*heap); });
}

TEST(AllocationPath, TakesTheSameInstructionsWithSamplingOnOffAndUnheardOf) {
  std::vector<char> memory(std::size_t{1} << 20U);
  PlainNursery plain{memory.data(), memory.data() + memory.size()};
  const long steps_plain = steps_of_one([&] { (void)allocate_plain(plain); });
  if (steps_plain < 0) GTEST_SKIP() << "this process may not trace its children: no instructions can be counted";
  const long steps_off = steps_with({});
  // The nearest point is within the nursery: the limit is a sample point, not the nursery's end.
  const long steps_near = steps_with({std::uint64_t{1} << 20U, Distance::Law::kFixed});
  const long steps_far = steps_with({Distance::kLongest, Distance::Law::kFixed});
  EXPECT_GT(steps_off, 5);
  EXPECT_EQ(steps_off, steps_near);
  EXPECT_EQ(steps_off, steps_far);
#if defined(__OPTIMIZE__) && !defined(PLIMSOLL_SANITIZED)  // whose checks are instructions, too
  EXPECT_EQ(steps_off, steps_plain);
  EXPECT_LE(steps_off, 16) << "ten instructions, a call and a loop around it";
#endif
}

}  // namespace
}  // namespace plimsoll::nursery
