// base/sample_ring_test.cc: the ring as one thread sees it. sample_ring_race_test.cc has the threads and the signals.
#include "base/sample_ring.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

namespace plimsoll {
namespace {

constexpr std::size_t kSmallest = 64U * 1024;  // the smallest ring there is
constexpr std::size_t kHeader = 8;

SampleRing make_ring(std::size_t capacity = kSmallest) {
  Result<SampleRing> ring = SampleRing::create(capacity);
  EXPECT_TRUE(ring.ok());
  return ring.take();
}

// Puts a text into a slot that may be larger; false if the ring refuses.
bool put(SampleRing& ring, std::string_view text, std::size_t reserved = 0) {
  const SampleRing::Slot slot = ring.reserve(std::max(reserved, text.size()));
  if (slot.bytes.empty()) return false;
  std::memcpy(slot.bytes.data(), text.data(), text.size());
  ring.commit(slot, text.size(), text.size());
  return true;
}

std::vector<std::string> drain(SampleRing& ring) {
  std::vector<std::string> texts;
  ring.drain([&](std::span<const std::byte> bytes) {
    texts.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  });
  return texts;
}

using Texts = std::vector<std::string>;

// Whether memory can be asked for before it is touched.
bool kernel_provides(std::size_t page) {
#ifdef MADV_POPULATE_WRITE
  void* memory = ::mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  const bool does = ::madvise(memory, page, MADV_POPULATE_WRITE) == 0;
  ::munmap(memory, page);
  return does;
#else
  return page == 0;
#endif
}

TEST(SampleRing, RoundsItsCapacityUpToAPowerOfTwo) {
  EXPECT_EQ(make_ring(0).capacity(), kSmallest);
  EXPECT_EQ(make_ring(kSmallest).capacity(), kSmallest);
  EXPECT_EQ(make_ring(kSmallest + 1).capacity(), 2 * kSmallest);
}

TEST(SampleRing, AnEmptyRingHasNothingAndSaysSo) {
  SampleRing ring = make_ring();
  EXPECT_TRUE(ring.drain([](auto) { FAIL() << "a record out of nothing"; }));
  EXPECT_EQ(ring.backlog(), 0U);
}

TEST(SampleRing, RecordsComeBackInOrderAndWithTheirExactSizes) {
  // GIVEN records of all sizes around the alignment
  SampleRing ring = make_ring();
  Texts texts;
  for (std::size_t size = 1; size <= 40; ++size) texts.emplace_back(size, static_cast<char>('a' + size % 26));
  for (const std::string& text : texts) ASSERT_TRUE(put(ring, text));
  // WHEN they are drained
  // THEN they are as they were
  EXPECT_EQ(drain(ring), texts);
  EXPECT_EQ(ring.backlog(), 0U);
}

TEST(SampleRing, ACommitGivesBackWhatItDidNotUse) {
  // GIVEN producers that reserve the most they may need, and need little
  SampleRing ring = make_ring();
  constexpr std::size_t kReserved = 16 * 1024;
  std::size_t accepted = 0;
  // WHEN the ring is filled
  while (put(ring, "sixteen bytes ..", kReserved)) ++accepted;
  // THEN a record takes what it used: as many fit as if the reservation had been small, but for the last one's room
  EXPECT_EQ(accepted, (kSmallest - kReserved - kHeader) / (16 + kHeader) + 1);
  EXPECT_EQ(drain(ring).size(), accepted);
}

TEST(SampleRing, NothingIsGivenBackFromUnderALaterReservation) {
  // GIVEN two reservations, of which the later one is committed first
  SampleRing ring = make_ring();
  const SampleRing::Slot first = ring.reserve(1024);
  const SampleRing::Slot second = ring.reserve(1024);
  std::memcpy(second.bytes.data(), "second", 6);
  ring.commit(second, 6, 6);
  std::memcpy(first.bytes.data(), "first", 5);
  // WHEN the earlier one turns out short
  ring.commit(first, 5, 5);
  // THEN both are whole, in order of reservation
  EXPECT_EQ(drain(ring), (Texts{"first", "second"}));
}

TEST(SampleRing, ARecordThatIsNotCommittedHoldsBackThoseBehindIt) {
  SampleRing ring = make_ring();
  ASSERT_TRUE(put(ring, "before"));
  const SampleRing::Slot open = ring.reserve(64);
  ASSERT_TRUE(put(ring, "behind"));
  // WHEN it is drained while one record is open
  Texts seen;
  const auto keep = [&](std::span<const std::byte> bytes) {
    seen.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  // THEN draining stops in front of it, and says that it is not done
  EXPECT_FALSE(ring.drain(keep));
  EXPECT_EQ(seen, Texts{"before"});
  // AND goes on once it is committed
  std::memcpy(open.bytes.data(), "open", 4);
  ring.commit(open, 4, 4);
  EXPECT_TRUE(ring.drain(keep));
  EXPECT_EQ(seen, (Texts{"before", "open", "behind"}));
}

TEST(SampleRing, RecordsStayInOnePieceAroundTheEnd) {
  // GIVEN sizes that do not divide the capacity, so that the end is met at every offset
  SampleRing ring = make_ring();
  std::size_t turn = 0;
  for (std::size_t written = 0; written < 40 * kSmallest;) {
    Texts batch;
    for (std::size_t i = 0; i < 7; ++i, ++turn) {
      batch.emplace_back(1 + (turn * 37) % 4001, static_cast<char>('A' + turn % 26));
      ASSERT_TRUE(put(ring, batch.back(), batch.back().size() + (turn % 3) * 1000));
      written += batch.back().size();
    }
    // THEN every batch comes back as it was
    ASSERT_EQ(drain(ring), batch);
  }
}

TEST(SampleRing, AFullRingRefusesAndLosesNothingItHas) {
  // GIVEN a full ring
  SampleRing ring = make_ring();
  Texts kept;
  for (std::string text; put(ring, text = "record " + std::to_string(kept.size()));) kept.push_back(text);
  // WHEN more is wanted THEN it refuses
  EXPECT_FALSE(put(ring, "one more"));
  // AND what it has is unharmed, and there is room again once it is drained
  EXPECT_EQ(drain(ring), kept);
  EXPECT_TRUE(put(ring, "one more"));
  EXPECT_EQ(drain(ring), Texts{"one more"});
}

TEST(SampleRing, RefusesWhatCouldNeverFit) {
  SampleRing ring = make_ring();
  EXPECT_TRUE(ring.reserve(kSmallest).bytes.empty());
  EXPECT_TRUE(ring.reserve(kSmallest / 2).bytes.empty());
  EXPECT_TRUE(ring.reserve(~std::size_t{0}).bytes.empty());
  EXPECT_EQ(ring.backlog(), 0U) << "a refusal reserves nothing";
  EXPECT_FALSE(ring.reserve(kSmallest / 2 - kHeader).bytes.empty());
}

TEST(SampleRing, AnEmptyRecordIsARecord) {
  SampleRing ring = make_ring();
  const SampleRing::Slot slot = ring.reserve(0);
  ASSERT_FALSE(slot.bytes.empty()) << "empty bytes would say that the ring is full";
  ring.commit(slot, 0, 0);
  EXPECT_EQ(drain(ring), Texts{""});
}

TEST(SampleRing, EveryReservationFindsZeroes) {
  // GIVEN producers that scribble over all they reserved and use a part of it
  SampleRing ring = make_ring();
  for (std::size_t turn = 0; turn < 2000; ++turn) {
    const SampleRing::Slot slot = ring.reserve(16 + turn * 8 % 2048);
    ASSERT_FALSE(slot.bytes.empty());
    // THEN what a producer finds is zero: whatever becomes a header later reads as "not committed" until it is
    ASSERT_TRUE(std::all_of(slot.bytes.begin(), slot.bytes.end(), [](std::byte byte) { return byte == std::byte{0}; }))
        << "in turn " << turn;
    std::memset(slot.bytes.data(), 0xff, slot.bytes.size());
    ring.commit(slot, slot.bytes.size() / 3, slot.bytes.size());
    if (turn % 5 == 4) drain(ring);
  }
}

TEST(SampleRing, WhatIsMadeReadyIsInMemoryBeforeItIsTouched) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  if (!kernel_provides(page)) GTEST_SKIP() << "the kernel, or the C library, has no MADV_POPULATE_WRITE";
  SampleRing ring = make_ring(std::size_t{1} << 20U);
  // (In whole pages, of which none was touched.)
  const SampleRing::Slot first = ring.reserve(page);
  std::byte* const begin = first.bytes.data() - kHeader;
  const auto provided = [&] {
    std::vector<unsigned char> pages(ring.capacity() / page);
    EXPECT_EQ(::mincore(begin, ring.capacity(), pages.data()), 0);
    return static_cast<std::size_t>(std::count_if(pages.begin(), pages.end(), [](auto one) { return (one & 1) != 0; }));
  };
  ASSERT_EQ(provided(), 0U);
  // WHEN a quarter is made ready THEN it is, and not much more; and so on, up to all
  ring.make_ready(ring.capacity() / 4);
  EXPECT_GE(provided() * page, ring.capacity() / 4);
  EXPECT_LE(provided() * page, ring.capacity() / 2);
  ring.make_ready(2 * ring.capacity());
  EXPECT_EQ(provided() * page, ring.capacity());
}

TEST(SampleRing, MovingTakesTheRecordsAlong) {
  SampleRing first = make_ring();
  ASSERT_TRUE(put(first, "kept"));
  SampleRing second = std::move(first);
  EXPECT_EQ(drain(second), Texts{"kept"});
}

}  // namespace
}  // namespace plimsoll
