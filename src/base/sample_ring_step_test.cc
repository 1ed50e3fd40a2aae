// base/sample_ring_step_test.cc: a producer interrupted at each of its instructions in turn.
//
// The processor's trap flag stops a thread after every instruction. In the n-th round the handler of that trap does
// something to the ring after the n-th instruction of a reserve and commit, until a round ends before its turn comes.
#include <gtest/gtest.h>

#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)  // ThreadSanitizer runs handlers later, not where they hit

#include <csignal>
#include <cstring>
#include <vector>

#include "base/sample_ring.h"

namespace plimsoll {
namespace {

constexpr std::uint64_t kTrapFlag = 0x100;

struct Round {
  SampleRing* ring = nullptr;
  std::vector<std::uint64_t> arrived;  // with room for all: the handler must not allocate
  std::uint64_t instructions = 0;      // so far
  std::uint64_t turn = 0;              // the instruction after which the handler acts
  void (*act)(Round&) = nullptr;
};
Round current_round;

bool put(Round& round, std::uint64_t number) {
  const SampleRing::Slot slot = round.ring->reserve(64);
  if (slot.bytes.empty()) return false;
  std::memcpy(slot.bytes.data(), &number, sizeof number);
  round.ring->commit(slot, sizeof number, sizeof number);
  return true;
}

void drain(Round& round) {
  round.ring->drain([&](std::span<const std::byte> bytes) {
    std::uint64_t number = 0;
    std::memcpy(&number, bytes.data(), sizeof number);
    round.arrived.push_back(number);
  });
}

void on_trap(int) {
  if (++current_round.instructions == current_round.turn) current_round.act(current_round);
}

// Puts one record with the trap flag set.
bool put_stepwise(Round& round, std::uint64_t number) {
  __builtin_ia32_writeeflags_u64(__builtin_ia32_readeflags_u64() | kTrapFlag);
  const bool is_put = put(round, number);
  __builtin_ia32_writeeflags_u64(__builtin_ia32_readeflags_u64() & ~kTrapFlag);
  return is_put;
}

// Runs rounds until one is over before its turn; returns how many there were. `check` sees each of them.
template <typename Check>
std::uint64_t interrupt_everywhere(void (*act)(Round&), Check check) {
  Result<SampleRing> ring = SampleRing::create(0);
  struct sigaction action {};
  struct sigaction before {};
  action.sa_handler = on_trap;
  ::sigemptyset(&action.sa_mask);
  EXPECT_EQ(::sigaction(SIGTRAP, &action, &before), 0);
  for (std::uint64_t turn = 1;; ++turn) {
    current_round = Round{&ring.value(), {}, 0, turn, act};
    current_round.arrived.reserve(16);
    const bool is_put = put_stepwise(current_round, 1);
    drain(current_round);
    const bool is_over = current_round.instructions < turn;
    if (!is_over) check(is_put, current_round.arrived);
    if (is_over || ::testing::Test::HasFailure()) {
      ::sigaction(SIGTRAP, &before, nullptr);
      return turn;
    }
  }
}

TEST(SampleRingSteps, AHandlerMaySendBetweenAnyTwoInstructionsOfAProducer) {
  const std::uint64_t rounds = interrupt_everywhere([](Round& round) { put(round, 2); },
                                                    [](bool is_put, const std::vector<std::uint64_t>& arrived) {
                                                      EXPECT_TRUE(is_put);
                                                      ASSERT_EQ(arrived.size(), 2U);
                                                      EXPECT_EQ(arrived[0] + arrived[1], 3U);
                                                    });
  EXPECT_GT(rounds, 50U);
}

TEST(SampleRingSteps, ARingWithRoomNeverRefuses) {
  // GIVEN a handler that sends more than the interrupted producer wants, and a consumer that takes it at once: what
  // the producer has seen of the ring is long past when it goes on
  const std::uint64_t rounds = interrupt_everywhere(
      [](Round& round) {
        for (std::uint64_t number = 2; number < 12; ++number) put(round, number);
        drain(round);
      },
      [](bool is_put, const std::vector<std::uint64_t>& arrived) {
        // THEN it does not take that for a full ring
        EXPECT_TRUE(is_put);
        EXPECT_EQ(arrived.size(), 11U);
      });
  EXPECT_GT(rounds, 50U);
}

}  // namespace
}  // namespace plimsoll

#endif
