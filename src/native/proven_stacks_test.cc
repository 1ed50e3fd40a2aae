// The stacks of this very program, met again and again.
#include "native/proven_stacks.h"

#include <gtest/gtest.h>

#include <set>

#include "memory/local.h"
#include "native/modules.h"

namespace plimsoll::native {
namespace {

constexpr memory::LocalReader kMemory;

// A number that the compiler does not know: it unrolls no loop so far, whose calls would be of several places.
[[gnu::noinline]] int unknown(int number) {
  asm volatile("" : "+r"(number));
  return number;
}

// A thread that asks which stack it is on.
class ProvenStacksTest : public ::testing::Test {
 protected:
  ProvenStacksTest() { EXPECT_TRUE(modules_.refresh(1).ok()); }

  // The number of the stack; 0: none that can be proven.
  [[gnu::noinline]] std::uint64_t ask() {
    const Registers here = registers_here();
    const ProvenStack* stack = stacks_.find(kMemory, here, unloads_);
    was_met_ = stack != nullptr;
    if (stack == nullptr) stack = stacks_.add(kMemory, *modules_.current(), here, unloads_);
    if (stack == nullptr) return 0;
    EXPECT_TRUE(stack->has(address_of(__builtin_frame_address(0))));
    EXPECT_FALSE(stack->has(address_of(&stacks_)));
    return stack->number;
  }
  // From so many frames further in.
  [[gnu::noinline]] std::uint64_t ask_from(int depth) {
    const std::uint64_t number = depth == 0 ? ask() : ask_from(depth - 1);
    asm volatile("" ::: "memory");  // so that no call is the last thing that is done, and a jump
    return number;
  }

  Modules modules_;
  ProvenStacks stacks_;
  std::uint32_t unloads_ = 0;
  bool was_met_ = false;
};

TEST_F(ProvenStacksTest, WhatWasMetIsFoundByItsNumber) {
  // WHEN stacks of several depths are met in turn THEN each is known from the second time on, and is none of the others
  std::set<std::uint64_t> numbers;
  for (int round = 0; round < unknown(3); ++round)
    for (int depth = 0; depth < unknown(20); ++depth) {
      const std::uint64_t number = ask_from(depth);
      EXPECT_NE(number, 0U);
      EXPECT_EQ(was_met_, round > 0) << depth;
      EXPECT_EQ(numbers.insert(number).second, round == 0) << depth;
    }
}

TEST_F(ProvenStacksTest, CallsFromTwoPlacesAtOneDepthAreTwoStacks) {
  std::set<std::uint64_t> numbers;
  // GIVEN two calls of one function by one function
  for (int i = 0; i < unknown(4); ++i) {
    numbers.insert(ask_from(3));
    asm volatile("" ::: "memory");
    numbers.insert(ask_from(3));
  }
  EXPECT_EQ(numbers.size(), 2U);
  EXPECT_EQ(numbers.count(0), 0U);
}

TEST_F(ProvenStacksTest, NothingIsKnownOfTheTimeBeforeAModuleWasUnloaded) {
  std::set<std::uint64_t> numbers;
  for (int i = 0; i < unknown(4); ++i) {
    numbers.insert(ask_from(1));
    EXPECT_EQ(was_met_, i % 2 == 1);
    if (i == 1) ++unloads_;
  }
  EXPECT_EQ(numbers.size(), 2U);
}

TEST_F(ProvenStacksTest, WhatIsVeryDeepIsNotKept) {
  EXPECT_EQ(ask_from(2000), 0U);
  EXPECT_NE(ask_from(2), 0U);
}

}  // namespace
}  // namespace plimsoll::native
