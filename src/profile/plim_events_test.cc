#include "profile/plim_events.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "base/allocation_words.h"
#include "profile/memory.h"
#include "profile/plim_reader.h"
#include "profile/plim_testing.h"
#include "profile/testing.h"

namespace plimsoll::profile {
namespace {

using testing::draw_stack;
using testing::draw_thread;

// Draws a log: lines of a time in microseconds since the start, a stack, and what happened then: "+name:bytes" is a
// block that is allocated, "-name" its free, "~name" its end by realloc. Sizes above 512 are told with the block.
class LogDrawing {
 public:
  LogDrawing() {
    profile.is_exact = profile.has_events = profile.complete = true;
    profile.start_monotonic_ns = kStart * 1000;
    draw_thread(profile, "main");
  }

  void draw(const std::string& text) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::int64_t time_us = 0;
      std::string stack, event;
      if (!(words >> time_us >> stack)) continue;
      pass_time(time_us);
      while (words >> event) {
        const std::size_t colon = event.find(':');
        const std::string name = event.substr(1, colon - 1);
        if (event[0] == '+')
          allocate(name, stack, std::stoull(event.substr(colon + 1)));
        else
          end(name, event[0] == '-' ? AllocationEvent::kFreed : AllocationEvent::kMoved);
      }
    }
  }
  void pass_time(std::int64_t time_us) {
    const std::int64_t now_us = kStart + time_us;
    if (now_us > clock_us_) put(AllocationEvent::kTime, static_cast<std::uint64_t>(now_us - clock_us_));
    clock_us_ = now_us;
  }
  void allocate(const std::string& name, const std::string& stack, std::uint64_t size) {
    if (size > 512) put(AllocationEvent::kSize, size);
    put(AllocationEvent::kAllocated, site_of(stack, size > 512 ? 0 : static_cast<std::uint32_t>(size)));
    std::uint32_t slot = slots_++;
    if (!free_.empty()) {
      slot = free_.back();
      free_.pop_back();
      --slots_;
    }
    slot_of[name] = slot;
  }
  void end(const std::string& name, AllocationEvent how) {
    put(how, slot_of.at(name));
    free_.push_back(slot_of.at(name));
    slot_of.erase(name);
  }
  // In a section of its own.
  void begin_section() {
    encoder_.put_events(profile.events.new_section(), words_, kStart);
    words_.clear();
  }

  // As it is read from a file.
  [[nodiscard]] Profile read_back() {
    begin_section();
    PlimEncoder encoder(1000);
    return read_plim(PlimEncoder::file_header() + encoder.encode(profile)).take();
  }

  Profile profile;
  std::map<std::string, std::uint32_t> slot_of;  // of living blocks

  void put(AllocationEvent event, std::uint64_t value) { AllocationWords::put(words_, event, value); }

 private:
  static constexpr std::int64_t kStart = 5'000'000'000;  // of the clock, at the start of the profile

  std::uint32_t site_of(const std::string& stack, std::uint32_t size) {
    const auto [found, is_new] = sites_.try_emplace({stack, size}, static_cast<std::uint32_t>(sites_.size()));
    if (is_new) profile.events.sites.push_back({ThreadId{0}, draw_stack(profile, stack), 0, size});
    return found->second;
  }

  EventEncoder encoder_;
  std::vector<std::uint32_t> words_;  // of the section that is being made
  std::int64_t clock_us_ = 0;
  std::map<std::pair<std::string, std::uint32_t>, std::uint32_t> sites_;
  std::uint32_t slots_ = 0;
  std::vector<std::uint32_t> free_;
};

std::uint64_t bytes_of(const Profile& profile, const MemoryQuestion& question) {
  std::uint64_t bytes = 0;
  for (const AllocationRow* row : allocations_of(profile, question)) bytes += row->size;
  return bytes;
}

TEST(PlimEvents, WhatBecameOfEachBlockIsFoundOut) {
  // GIVEN blocks that are freed soon, late and never, one that is moved, and slots that are used again
  LogDrawing log;
  log.draw(R"(
    1000   main;a  +x:100 +y:2000 +z:50
    1040   main;a  -x
    1050   main;b  +x:30
    2000   main;a  ~y
    90000  main;b  -x
  )");
  log.profile.events.types.emplace_back(log.slot_of.at("z"), log.profile.strings.intern("list"));
  // WHEN it is read
  const Profile profile = log.read_back();
  // THEN each is there, with what it lived, to a sixteenth: x of a 40 us, y 1000 us, x of b some 89 ms
  ASSERT_TRUE(profile.has_events && profile.is_exact && profile.complete);
  std::map<std::uint64_t, AllocationRow> by_size;
  for (const AllocationRow& row : profile.allocations) by_size[row.size] = row;
  ASSERT_EQ(by_size.size(), 4U);
  const auto lived = [&](std::uint64_t size) { return by_size[size].freed_ns - by_size[size].time_ns; };
  EXPECT_GE(lived(100), 40'000);
  EXPECT_LE(lived(100), 42'500);
  EXPECT_GE(lived(2000), 1'000'000);
  EXPECT_LE(lived(2000), 1'062'500);
  EXPECT_NEAR(static_cast<double>(lived(30)), 88'950'000, 1'100'000);
  EXPECT_EQ(by_size[50].freed_ns, AllocationRow::kAlive);
  EXPECT_EQ(profile.strings[by_size[50].type], "list");
  EXPECT_TRUE(by_size[100].is_temporary);
  EXPECT_FALSE(by_size[2000].is_temporary);  // what was in it lives on
  EXPECT_LE(std::abs(by_size[50].time_ns - 1'000'000), 1'024'000);
}

TEST(PlimEvents, ThePeakIsThatOfAllMoments) {
  // GIVEN a peak that lasts 3 us
  LogDrawing log;
  log.draw(R"(
    10  main;a  +x:1000 +y:300
    20  main;b  +z:5000
    23  main;b  -z
    30  main;a  -y +w:2000
  )");
  const Profile profile = log.read_back();
  // WHEN it is asked for THEN it is known to the microsecond, with the stacks behind it
  EXPECT_EQ(profile.peak_ns, 23'000);
  EXPECT_EQ(bytes_of(profile, MemoryView::kPeak), 6300U);
  EXPECT_EQ(profile.peak_allocations.size(), 2U);
  EXPECT_EQ(bytes_of(profile, MemoryView::kLive), 3000U);
}

TEST(PlimEvents, ALogGoesOnOverSections) {
  LogDrawing log;
  log.draw("10 main;a +x:1000 +y:20");
  log.begin_section();
  log.draw("500 main;a -x +z:40");
  const Profile profile = log.read_back();
  EXPECT_EQ(bytes_of(profile, MemoryView::kAllocated), 1060U);
  EXPECT_EQ(bytes_of(profile, MemoryView::kLive), 60U);
}

TEST(PlimEvents, BlocksOfAKindAreOneRow) {
  // GIVEN a hundred thousand blocks of one line in ten milliseconds
  LogDrawing log;
  for (int i = 0; i < 100'000; ++i) {
    log.pass_time(i / 10);
    log.allocate("x", "main;loop", 32);
    log.end("x", AllocationEvent::kFreed);
  }
  const Profile profile = log.read_back();
  // WHEN it is read THEN rows are few, and no block is missing
  EXPECT_LE(profile.allocations.size(), 40U);
  EXPECT_EQ(bytes_of(profile, MemoryView::kAllocated), 3'200'000U);
  EXPECT_EQ(bytes_of(profile, MemoryView::kTemporary), 3'200'000U);
}

TEST(PlimEvents, ManyRowsAreMadeFewerAndSumsStay) {
  // GIVEN more stretches of time and lifetimes than a profile keeps apart
  LogDrawing log;
  constexpr int kBlocks = 700'000;
  for (int i = 0; i < kBlocks; ++i) {
    log.pass_time(std::int64_t{i} * 1024);
    log.allocate(std::to_string(i), "main;a", 8);
    if (i >= 40) log.end(std::to_string(i - 40), AllocationEvent::kFreed);
  }
  const Profile profile = log.read_back();
  // WHEN it is read THEN there are fewer rows than blocks, and the sums are those of the blocks
  EXPECT_LT(profile.allocations.size(), std::size_t{kBlocks});
  EXPECT_EQ(bytes_of(profile, MemoryView::kAllocated), std::uint64_t{kBlocks} * 8);
  EXPECT_EQ(bytes_of(profile, MemoryView::kLive), 40U * 8);
  // AND at any moment some forty are alive
  MemoryQuestion half(MemoryView::kLive);
  half.at_ns = std::int64_t{kBlocks} / 2 * 1'024'000;
  EXPECT_NEAR(static_cast<double>(bytes_of(profile, half)), 40 * 8, 4 * 8);
}

TEST(PlimEvents, DrawnProgramsAddUp) {
  // GIVEN programs that allocate and free at random, and somebody who only adds up
  for (unsigned seed = 0; seed < 30; ++seed) {
    std::mt19937 random(seed);
    LogDrawing log;
    std::map<std::string, std::uint64_t> living;
    std::uint64_t allocated = 0, alive = 0, peak = 0;
    for (int i = 0; i < 2000; ++i) {
      log.pass_time(i * 37);
      if (!living.empty() && random() % 2 == 0) {
        const auto gone = std::next(living.begin(), static_cast<std::ptrdiff_t>(random() % living.size()));
        log.end(gone->first, random() % 4 == 0 ? AllocationEvent::kMoved : AllocationEvent::kFreed);
        alive -= gone->second;
        living.erase(gone);
        continue;
      }
      const std::uint64_t size = random() % 700;
      const std::string name = std::to_string(i);
      const std::uint64_t told = size == 0 ? 1 : size;  // (a site of no bytes is not drawn)
      log.allocate(name, "main;" + std::to_string(random() % 5), told);
      living[name] = told;
      allocated += told;
      alive += told;
      peak = std::max(peak, alive);
      if (random() % 300 == 0) log.begin_section();
    }
    const Profile profile = log.read_back();
    // THEN what is read is what happened
    EXPECT_EQ(bytes_of(profile, MemoryView::kAllocated), allocated) << seed;
    EXPECT_EQ(bytes_of(profile, MemoryView::kLive), alive) << seed;
    EXPECT_EQ(bytes_of(profile, MemoryView::kPeak), peak) << seed;
    EXPECT_GT(bytes_of(profile, MemoryView::kTemporary), 0U) << seed;
  }
}

TEST(PlimEvents, AProfileFromALogCanBeWrittenAgain) {
  // GIVEN a profile that was read from a log
  LogDrawing log;
  log.draw(R"(
    1000   main;a  +x:100 +y:2000
    1040   main;a  -x
  )");
  const Profile first = log.read_back();
  // WHEN it is written and read THEN it says the same, lifetimes included
  PlimEncoder encoder(1);
  const Profile second = read_plim(PlimEncoder::file_header() + encoder.encode(first)).take();
  EXPECT_TRUE(second.has_events);
  EXPECT_EQ(second.peak_ns, first.peak_ns);
  EXPECT_EQ(bytes_of(second, MemoryView::kTemporary), 100U);
  EXPECT_EQ(lifetimes(second).front().all.blocks, 1);
}

TEST(PlimEvents, WhatMakesNoSenseIsReadUpToThere) {
  // GIVEN logs that free a slot twice, or one that never was, or allocate at a site that is not there
  for (const AllocationEvent event : {AllocationEvent::kFreed, AllocationEvent::kMoved, AllocationEvent::kAllocated}) {
    LogDrawing log;
    log.draw("10 main;a +x:100 +y:20 -x");
    log.put(event, event == AllocationEvent::kFreed ? 0 : 77);
    // WHEN they are read THEN what came before is there, and the profile says that it is not whole
    const Profile profile = log.read_back();
    EXPECT_EQ(bytes_of(profile, MemoryView::kLive), 20U);
    EXPECT_FALSE(profile.complete);
  }
}

}  // namespace
}  // namespace plimsoll::profile
