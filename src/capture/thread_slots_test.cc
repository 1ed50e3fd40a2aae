// capture/thread_slots_test.cc: slots are found by number and by descriptor while they are in use, and only then.
#include "capture/thread_slots.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>

namespace plimsoll::capture {
namespace {

class ThreadSlotsTest : public ::testing::Test {
 protected:
  std::set<std::uint32_t> numbers_in_use() {
    std::set<std::uint32_t> numbers;
    slots->for_each([&](ThreadSlot& slot) { numbers.insert(slot.number); });
    return numbers;
  }

  ThreadSlot* allocate() {
    ThreadSlot* slot = slots->allocate();
    slots->publish(*slot);
    return slot;
  }

  std::unique_ptr<ThreadSlots> slots = std::make_unique<ThreadSlots>();  // too large for a stack
};

TEST_F(ThreadSlotsTest, ASlotIsFoundByItsNumberWhileItIsInUse) {
  ThreadSlot* slot = allocate();
  ASSERT_NE(slot, nullptr);
  const std::uint32_t number = slot->number;
  EXPECT_EQ(slots->find(number), slot);
  slots->release(*slot);
  EXPECT_EQ(slots->find(number), nullptr);
}

TEST_F(ThreadSlotsTest, ASlotIsNotFoundUntilItIsFilled) {
  ThreadSlot* slot = slots->allocate();
  EXPECT_EQ(slots->find(slot->number), nullptr);
  slots->publish(*slot);
  EXPECT_EQ(slots->find(slot->number), slot);
}

TEST_F(ThreadSlotsTest, NumbersThatWereNeverGivenFindNothing) {
  EXPECT_EQ(slots->find(0), nullptr);
  allocate();
  for (const std::uint32_t number : {1U, 64U, 1'000'000U, (1U << 20U) - 1, 1U << 20U, ~0U})
    EXPECT_EQ(slots->find(number), nullptr) << number;
}

TEST_F(ThreadSlotsTest, ManySlotsHaveDifferentNumbersAndKeepTheirPlaces) {
  // GIVEN more slots than fit into one chunk
  constexpr std::size_t kCount = 1000;
  std::vector<ThreadSlot*> given;
  std::set<std::uint32_t> numbers;
  for (std::size_t i = 0; i < kCount; ++i) {
    given.push_back(allocate());
    numbers.insert(given.back()->number);
  }
  // THEN each is its own, and growing has moved none
  EXPECT_EQ(numbers.size(), kCount);
  for (ThreadSlot* slot : given) EXPECT_EQ(slots->find(slot->number), slot);
  EXPECT_EQ(numbers_in_use(), numbers);
}

TEST_F(ThreadSlotsTest, AReleasedSlotIsUsedAgainBeforeMoreMemory) {
  std::vector<ThreadSlot*> given;
  for (int i = 0; i < 64; ++i) given.push_back(allocate());
  slots->release(*given[10]);
  EXPECT_EQ(allocate(), given[10]);
}

TEST_F(ThreadSlotsTest, ASlotThatIsUsedAgainKnowsNothingOfItsFormerThread) {
  // GIVEN a slot with the traces of a thread
  ThreadSlot* slot = allocate();
  slot->pthread = 77;
  slot->busy = true;
  slot->ticks = 5;
  slot->resting = true;
  slot->ticks_at_poll = 5;
  constexpr std::int64_t kPeriod = 1'000'000;
  std::uint64_t random = 4711;
  slot->jitter.next(kPeriod, random);  // a step, which is to be taken back
  slot->is_blocked = true;
  // WHEN it is given to another
  slots->release(*slot);
  ThreadSlot* again = allocate();
  // THEN they are gone
  ASSERT_EQ(again, slot);
  EXPECT_EQ(again->pthread, 0U);
  EXPECT_FALSE(again->busy);
  EXPECT_EQ(again->ticks, 0U);
  EXPECT_FALSE(again->resting);
  EXPECT_EQ(again->ticks_at_poll, 0U);
  std::uint64_t same_random = random;
  EXPECT_EQ(again->jitter.next(kPeriod, random), TickJitter{}.next(kPeriod, same_random));
  EXPECT_FALSE(again->is_blocked);
}

TEST_F(ThreadSlotsTest, ADescriptorLeadsToTheSlotThatWasBoundToItLast) {
  ThreadSlot* first = allocate();
  ThreadSlot* second = allocate();
  slots->bind_descriptor(500, first->number);
  EXPECT_EQ(slots->find_by_descriptor(500), first);
  slots->bind_descriptor(500, second->number);
  EXPECT_EQ(slots->find_by_descriptor(500), second);
  slots->release(*second);
  EXPECT_EQ(slots->find_by_descriptor(500), nullptr);
}

TEST_F(ThreadSlotsTest, DescriptorsThatWereNeverBoundOrAreOutOfRangeFindNothing) {
  allocate();
  EXPECT_EQ(slots->find_by_descriptor(3), nullptr);
  for (const int descriptor : {-1, 1 << 16, INT32_MAX}) {
    slots->bind_descriptor(descriptor, 0);  // ignored
    EXPECT_EQ(slots->find_by_descriptor(static_cast<std::uint32_t>(descriptor)), nullptr) << descriptor;
  }
  slots->bind_descriptor((1 << 16) - 1, 0);
  EXPECT_NE(slots->find_by_descriptor((1U << 16U) - 1), nullptr) << "the last one";
}

}  // namespace
}  // namespace plimsoll::capture
