#include "alloc/event_log.h"

#include <gtest/gtest.h>

#include <vector>

#include "alloc/testing.h"
#include "base/clock.h"

namespace plimsoll::alloc {
namespace {

// A log, and what somebody makes of it.
class EventLogTest : public ::testing::Test {
 protected:
  std::vector<std::uint64_t> read() {
    std::vector<std::uint64_t> sizes;
    reader.read(log.take(),
                [&](AllocationEvent, const testing::LogReader::Block& block) { sizes.push_back(block.size); });
    return sizes;
  }

  std::atomic<std::uint32_t> attention{0};
  EventLog log{attention, 4};
  testing::LogReader reader;
};

TEST_F(EventLogTest, ABlockTakesTheSlotThatWasGivenBackLast) {
  // GIVEN three blocks of which the first two are freed
  const BlockBooks::Token first = log.allocated(1, Domain::kObject, nullptr, 10);
  const BlockBooks::Token second = log.allocated(1, Domain::kObject, nullptr, 20);
  log.allocated(2, Domain::kMemory, nullptr, 30);
  log.ended(first, nullptr, Fate::kFreed);
  log.ended(second, nullptr, Fate::kMoved);
  // WHEN two others come THEN they have the slots of these, the last one first
  EXPECT_EQ(log.allocated(2, Domain::kMemory, nullptr, 40), second);
  EXPECT_EQ(log.allocated(3, Domain::kObject, nullptr, 50), first);
  // AND a reader of the log knows each by its size
  EXPECT_EQ(read(), (std::vector<std::uint64_t>{10, 20, 30, 10, 20, 40, 50}));
  EXPECT_EQ(reader.at(EventLog::slot_of(first))->size, 50U);
}

TEST_F(EventLogTest, SizesOfAllKindsAreTold) {
  // GIVEN blocks of nothing, of the largest size that a site has, of more, and of very much
  const std::vector<std::uint64_t> sizes{0, 1, 512, 513, 0, std::uint64_t{5} << 32U};
  std::vector<BlockBooks::Token> tokens;
  for (const std::uint64_t size : sizes) tokens.push_back(log.allocated(1, Domain::kRaw, nullptr, size));
  // WHEN the log is read THEN each is there; and of the living ones all is known meanwhile
  EXPECT_EQ(read(), sizes);
  for (std::size_t i = 0; i < sizes.size(); ++i) EXPECT_EQ(log.facts_of(tokens[i], nullptr).size, sizes[i]);
  EXPECT_EQ(log.facts_of(tokens[3], nullptr).domain, Domain::kRaw);
  EXPECT_EQ(log.stack_of(tokens[0]), 1U);
}

TEST_F(EventLogTest, GoesOnFromOneBatchToTheNext) {
  // GIVEN a block from before a batch was taken
  const BlockBooks::Token before = log.allocated(1, Domain::kObject, nullptr, 64);
  read();
  // WHEN it is freed, and its site has another THEN the next batch says so without its beginning
  log.ended(before, nullptr, Fate::kFreed);
  log.allocated(1, Domain::kObject, nullptr, 64);
  EXPECT_EQ(read(), (std::vector<std::uint64_t>{64, 64}));
}

TEST_F(EventLogTest, AsksToBeEmptiedWhenItIsLong) {
  for (int i = 0; i < 500'000 && attention.load() == 0; ++i)
    log.ended(log.allocated(1, Domain::kObject, nullptr, 8), nullptr, Fate::kFreed);
  EXPECT_EQ(attention.load(), 4U);
  EXPECT_LE(log.take().words.size(), std::size_t{1} << 18U);
}

TEST_F(EventLogTest, TimeIsThatOfTheClock) {
  const std::int64_t before_us = monotonic_ns() / 1000;
  log.allocated(1, Domain::kObject, nullptr, 8);
  read();
  EXPECT_GE(static_cast<std::int64_t>(reader.passed_us), before_us);
  EXPECT_LE(static_cast<std::int64_t>(reader.passed_us), monotonic_ns() / 1000);
}

}  // namespace
}  // namespace plimsoll::alloc
