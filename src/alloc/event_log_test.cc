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

// Ends some time after it has begun.
void let_time_pass() {
  const std::int64_t until_ns = monotonic_ns() + 1'000'000;
  while (monotonic_ns() < until_ns) {
  }
}

TEST_F(EventLogTest, APauseInALongRowIsSeenByTheSixtyFourthEventAfterIt) {
  // GIVEN a long row of events, and a pause
  const BlockBooks::Token kept = log.allocated(1, Domain::kObject, nullptr, 8);
  const auto event = [&] { log.ended(log.allocated(1, Domain::kObject, nullptr, 8), nullptr, Fate::kFreed); };
  for (int i = 0; i < 100'000; ++i) event();
  let_time_pass();
  const std::int64_t after_us = monotonic_ns() / 1000;
  // WHEN it goes on THEN it is known by then that time has passed
  for (int i = 0; i < 31; ++i) event();
  log.allocated(1, Domain::kObject, nullptr, 8);
  log.ended(kept, nullptr, Fate::kFreed);
  read();
  EXPECT_GE(static_cast<std::int64_t>(reader.passed_us), after_us);
}

TEST_F(EventLogTest, WhoIsToldOfAPauseSeesItAtOnce) {
  for (int i = 0; i < 100'000; ++i) log.ended(log.allocated(1, Domain::kObject, nullptr, 8), nullptr, Fate::kFreed);
  let_time_pass();
  const std::int64_t after_us = monotonic_ns() / 1000;
  log.expect_pause();
  log.allocated(1, Domain::kObject, nullptr, 8);
  read();
  EXPECT_GE(static_cast<std::int64_t>(reader.passed_us), after_us);
}

TEST_F(EventLogTest, TheMemoryOfABatchIsUsedAgain) {
  // GIVEN a batch that somebody is done with
  log.allocated(1, Domain::kObject, nullptr, 8);
  std::vector<std::uint32_t> words = log.take().words;
  const std::uint32_t* const at = words.data();
  // WHEN it is given for the next but one THEN that lies there, and has its own words only
  log.take(std::move(words));
  log.allocated(1, Domain::kObject, nullptr, 8);
  const EventBatch batch = log.take();
  EXPECT_EQ(batch.words.data(), at);
  EXPECT_LE(batch.words.size(), 1U + AllocationWords::kMostWords);  // the event, and perhaps the time
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
