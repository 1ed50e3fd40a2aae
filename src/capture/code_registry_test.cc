// capture/code_registry_test.cc: an address at a time means one code object, whatever order the news comes in.
#include "capture/code_registry.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/no_memory_testing.h"
#include "capture/testing.h"
#include "memory/local.h"

namespace plimsoll::capture {
namespace {

using plimsoll::testing::NoMemory;
using testing::FakeFunction;
using testing::later;

class CodeRegistryTest : public ::testing::Test {
 protected:
  CodeRegistryTest() { EXPECT_TRUE(memory::FaultGuard::ensure_installed().ok()); }

  // A sampler has met the object, now; returns the time of the sample.
  std::int64_t sample(const FakeFunction& function) {
    registry.seen().mark(function.address());
    return later();
  }
  // The object dies; its memory becomes another one's.
  void die_and_become(FakeFunction& function, std::string_view name) {
    registry.on_destroy(function.address());
    function.become(name);
  }
  // Name and id of what the address meant at the time.
  std::pair<std::string, std::uint32_t> found(const FakeFunction& function, std::int64_t time_ns) {
    const CodeRegistry::Entry* entry = registry.find(function.address(), time_ns);
    return entry == nullptr ? std::pair{std::string("nothing"), ~0U} : std::pair{entry->info->name, entry->id.index()};
  }
  std::string name_at(const FakeFunction& function, std::int64_t time_ns) { return found(function, time_ns).first; }
  std::uint32_t id_at(const FakeFunction& function, std::int64_t time_ns) { return found(function, time_ns).second; }

  CodeRegistry registry{testing::fake_layout()};
};

// ---- the filter ----

TEST(SeenFilter, RemembersEveryAddressItWasGiven) {
  SeenFilter filter;
  for (std::uint64_t i = 0; i < 1000; ++i) filter.mark(Address{0x7f00'0000'0000 + i * 208});
  for (std::uint64_t i = 0; i < 1000; ++i) EXPECT_TRUE(filter.may_contain(Address{0x7f00'0000'0000 + i * 208}));
}

TEST(SeenFilter, SeldomClaimsToKnowAnother) {
  SeenFilter filter;
  for (std::uint64_t i = 0; i < 1000; ++i) filter.mark(Address{0x7f00'0000'0000 + i * 208});
  int mistakes = 0;
  for (std::uint64_t i = 0; i < 10'000; ++i)
    mistakes += filter.may_contain(Address{0x5500'0000'0000 + i * 208}) ? 1 : 0;
  EXPECT_LT(mistakes, 10'000 / 20);
}

TEST(SeenFilter, KnowsNothingAtFirst) { EXPECT_FALSE(SeenFilter{}.may_contain(Address{0x1000})); }

// ---- the living ----

TEST_F(CodeRegistryTest, ALivingObjectIsReadOnceAndKeepsItsId) {
  const FakeFunction function("work");
  const std::int64_t first = sample(function);
  EXPECT_EQ(name_at(function, first), "work");
  EXPECT_EQ(id_at(function, first), id_at(function, sample(function)));
}

TEST_F(CodeRegistryTest, SaysWhatTheObjectSaysOfItself) {
  const FakeFunction function("Class.method", 42, "/srv/other.py");
  const CodeRegistry::Entry* entry = registry.find(function.address(), sample(function));
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(entry->info->file, "/srv/other.py");
  EXPECT_EQ(entry->info->first_line, 42);
  EXPECT_EQ(entry->info->line_table.size(), 8U);
}

TEST_F(CodeRegistryTest, TwoObjectsHaveTwoIdsEvenIfTheyAreEqual) {
  const FakeFunction one("work");
  const FakeFunction other("work");
  EXPECT_NE(id_at(one, sample(one)), id_at(other, sample(other)));
}

TEST_F(CodeRegistryTest, KnowsSinceWhenItKnows) {
  const FakeFunction function("work");
  const std::int64_t before = sample(function);
  const std::int64_t known_since = registry.find(function.address(), before)->known_since_ns;
  EXPECT_GE(known_since, before);
  EXPECT_LE(known_since, later());
  EXPECT_EQ(registry.find(function.address(), later())->known_since_ns, known_since);
}

TEST_F(CodeRegistryTest, WhatCannotBeReadIsNothing) {
  EXPECT_EQ(registry.find(Address{8}, later()), nullptr);
  EXPECT_EQ(registry.find(Address{~std::uint64_t{7}}, later()), nullptr);
}

// ---- the dead ----

TEST_F(CodeRegistryTest, ASampleOfBeforeTheDeathMeansTheDeadEvenIfNobodyReadItAlive) {
  // GIVEN a sample of an object that dies, and whose memory is used again, before the sample is resolved
  FakeFunction function("old");
  const std::int64_t of_old = sample(function);
  die_and_become(function, "new");
  const std::int64_t of_new = sample(function);
  // WHEN samples are resolved in any order THEN each finds its own
  EXPECT_EQ(name_at(function, of_new), "new");
  EXPECT_EQ(name_at(function, of_old), "old");
  EXPECT_NE(id_at(function, of_old), id_at(function, of_new));
}

TEST_F(CodeRegistryTest, AnObjectKeepsItsIdBeyondItsDeath) {
  FakeFunction function("work");
  const std::int64_t first = sample(function);
  const std::int64_t second = sample(function);
  const std::uint32_t id = id_at(function, first);
  registry.on_destroy(function.address());
  function.vanish();
  EXPECT_EQ(name_at(function, second), "work");
  EXPECT_EQ(id_at(function, second), id);
}

TEST_F(CodeRegistryTest, ASuccessorOfTheSameNameIsAnotherObject) {
  FakeFunction function("work");
  const std::int64_t of_first = sample(function);
  const std::uint32_t id = id_at(function, of_first);
  die_and_become(function, "work");
  EXPECT_NE(id_at(function, sample(function)), id);
  EXPECT_EQ(id_at(function, of_first), id);
}

TEST_F(CodeRegistryTest, ManyObjectsMayDieAtOneAddress) {
  // GIVEN five objects in the same memory, one after the other, of which every second one is resolved alive
  FakeFunction function("generation 0");
  std::vector<std::int64_t> times;
  std::vector<std::uint32_t> ids(5, ~0U);
  for (std::uint32_t i = 0; i < 5; ++i) {
    times.push_back(sample(function));
    if (i % 2 == 0) ids[i] = id_at(function, times[i]);
    die_and_become(function, "generation " + std::to_string(i + 1));
  }
  // WHEN the samples are resolved, latest first THEN all are found, and those that had an id keep it
  for (std::uint32_t i = 5; i-- > 0;) {
    EXPECT_EQ(name_at(function, times[i]), "generation " + std::to_string(i));
    if (i % 2 != 0) continue;
    EXPECT_EQ(id_at(function, times[i]), ids[i]);
  }
  EXPECT_EQ(name_at(function, later()), "generation 5");
}

TEST_F(CodeRegistryTest, TheDeathOfAnObjectThatNoSampleSawIsNotNews) {
  // GIVEN an object that was never marked
  FakeFunction function("unseen");
  die_and_become(function, "seen");
  // THEN its death is not kept
  EXPECT_EQ(name_at(function, 0), "seen");
}

TEST_F(CodeRegistryTest, AnObjectWhoseDeathWasNotReportedIsNotTakenForItsSuccessor) {
  // GIVEN an object that was read although the filter does not know it, and is replaced without a word
  FakeFunction function("first");
  const std::uint32_t first = id_at(function, later());
  die_and_become(function, "second");
  // WHEN the successor dies with a report
  const std::int64_t of_second = sample(function);
  die_and_become(function, "third");
  // THEN its samples are its own
  EXPECT_EQ(name_at(function, of_second), "second");
  EXPECT_NE(id_at(function, of_second), first);
  EXPECT_EQ(name_at(function, later()), "third");
}

TEST_F(CodeRegistryTest, ADyingObjectThatCannotBeReadLeavesTheRegistryAsItIs) {
  FakeFunction function("work");
  const std::int64_t time = sample(function);
  function.vanish();
  registry.on_destroy(function.address());
  EXPECT_EQ(name_at(function, time), "nothing");
}

// ---- forgetting ----

TEST_F(CodeRegistryTest, ForgetsTheDeadOfBeforeATimeAndSaysWhichIdsAreFree) {
  // GIVEN two objects that died one after the other, and one that lives
  FakeFunction early("early");
  FakeFunction late("late");
  const FakeFunction alive("alive");
  const std::int64_t of_early = sample(early);
  const std::int64_t of_late = sample(late);
  const std::uint32_t early_id = id_at(early, of_early);
  const std::uint32_t late_id = id_at(late, of_late);
  const std::uint32_t alive_id = id_at(alive, sample(alive));
  registry.on_destroy(early.address());
  const std::int64_t between = later();
  registry.on_destroy(late.address());
  early.vanish();
  late.vanish();
  // WHEN everything sampled before the second death is done with
  name_at(late, of_late);  // the registry hears of deaths when it is asked
  const std::vector<CodeId> forgotten = registry.forget_deaths_before(between);
  // THEN only the first is forgotten
  EXPECT_EQ(forgotten, std::vector<CodeId>{CodeId{early_id}});
  EXPECT_EQ(name_at(early, of_early), "nothing");
  EXPECT_EQ(id_at(late, of_late), late_id);
  EXPECT_EQ(registry.forget_deaths_before(later()), std::vector<CodeId>{CodeId{late_id}});
  EXPECT_EQ(id_at(alive, later()), alive_id);
}

TEST_F(CodeRegistryTest, ForgettingTheDeadThatNobodyAskedForFreesNoId) {
  FakeFunction function("work");
  const FakeFunction other("other");
  sample(function);
  die_and_become(function, "new");
  name_at(other, sample(other));
  EXPECT_TRUE(registry.forget_deaths_before(later()).empty());
}

TEST_F(CodeRegistryTest, ForgetsDeathsThatNoSampleAskedFor) {
  // GIVEN objects that a sample has seen, and that die in a pause, when nothing is resolved
  FakeFunction function("old");
  const std::int64_t of_old = sample(function);
  die_and_become(function, "new");
  // WHEN all samples are known to be resolved THEN nothing is left of them
  registry.forget_deaths_before(later());
  EXPECT_EQ(name_at(function, of_old), "new");
}

TEST_F(CodeRegistryTest, KeepsNothingOfDeathsWhenItIsClosed) {
  // GIVEN two objects that a sample has seen, one of which has died
  FakeFunction before("before");
  FakeFunction after("after");
  const std::int64_t of_both = std::max(sample(before), sample(after));
  die_and_become(before, "new");
  // WHEN nobody will ask any more, and the other dies THEN neither is kept
  registry.close();
  die_and_become(after, "newer");
  EXPECT_EQ(name_at(before, of_both), "new");
  EXPECT_EQ(name_at(after, of_both), "newer");
}

TEST_F(CodeRegistryTest, ForgetsEachGenerationInItsTurn) {
  FakeFunction function("one");
  const std::int64_t of_one = sample(function);
  die_and_become(function, "two");
  const std::int64_t of_two = sample(function);
  die_and_become(function, "three");
  const std::uint32_t one = id_at(function, of_one);
  EXPECT_EQ(registry.forget_deaths_before(of_two), std::vector<CodeId>{CodeId{one}});
  EXPECT_EQ(name_at(function, of_two), "two");
}

// ---- without memory ----

TEST_F(CodeRegistryTest, SamplesOfADeathThatThereIsNoMemoryForAreOfUnknownCodeAndNotOfItsSuccessor) {
  if (!NoMemory::kCanBe) GTEST_SKIP() << "the sanitizer's allocator ends the process";
  // GIVEN samples of two objects, of which one dies when no memory is left, and another one takes its place
  FakeFunction function("work");
  const FakeFunction other("other");
  const std::int64_t of_other = sample(other);
  const std::int64_t of_known = sample(function);
  EXPECT_EQ(name_at(function, of_known), "work");
  const std::int64_t of_dead = sample(function);
  {
    const NoMemory none;
    registry.on_destroy(function.address());
  }
  function.become("successor");
  const std::int64_t of_successor = sample(function);
  // THEN the one's samples are of nothing that is known, and all others of what they were of
  EXPECT_EQ(name_at(function, of_dead), "nothing");
  EXPECT_EQ(name_at(function, of_successor), "successor");
  EXPECT_EQ(name_at(other, of_other), "other");
}

TEST_F(CodeRegistryTest, AfterManyDeathsWithoutMemoryNothingBeforeThemIsBelieved) {
  if (!NoMemory::kCanBe) GTEST_SKIP() << "the sanitizer's allocator ends the process";
  // GIVEN more deaths than there is room for
  std::deque<FakeFunction> functions;
  for (int i = 0; i < 1000; ++i) functions.emplace_back("work");
  for (const FakeFunction& function : functions) sample(function);
  const std::int64_t before = later();
  {
    const NoMemory none;
    for (const FakeFunction& function : functions) registry.on_destroy(function.address());
  }
  for (FakeFunction& function : functions) function.become("successor");
  // THEN no sample is of a successor that was not there yet
  for (const FakeFunction& function : functions) {
    ASSERT_EQ(name_at(function, before), "nothing");
    ASSERT_EQ(name_at(function, sample(function)), "successor");
  }
}

// ---- all at once ----

TEST_F(CodeRegistryTest, ObjectsThatDieWhileTheyAreReadAreStillTheirOwn) {
  // GIVEN a thread that makes and destroys objects in the same memory as fast as it can, each after one sample
  constexpr std::size_t kObjects = 30'000;
  FakeFunction function("0");
  std::vector<std::int64_t> times(kObjects);
  std::atomic<std::size_t> sampled{0};
  std::thread program([&] {
    for (std::size_t i = 0; i < kObjects; ++i) {
      function.become(std::to_string(i), static_cast<std::int32_t>(i));
      times[i] = sample(function);
      sampled.store(i + 1, std::memory_order_release);
      registry.on_destroy(function.address());
    }
  });
  // WHEN the samples are resolved meanwhile, and the dead forgotten behind them
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < kObjects; ++i) {
    while (sampled.load(std::memory_order_acquire) <= i) std::this_thread::yield();
    const CodeRegistry::Entry* entry = registry.find(function.address(), times[i]);
    const bool is_right = entry != nullptr && entry->info->name == std::to_string(i) &&
                          entry->info->first_line == static_cast<std::int32_t>(i);
    wrong += is_right ? 0 : 1;
    if (i % 100 == 0) registry.forget_deaths_before(times[i]);
  }
  program.join();
  // THEN every sample finds the object that was there when it was taken
  EXPECT_EQ(wrong, 0U);
}

// ---- objects of another process ----

TEST(TaughtCodeRegistry, KnowsWhatItWasTaughtAndReadsNothing) {
  // GIVEN a registry of code objects that are not in this process
  const auto info = [](const char* name) {
    return std::make_shared<const cpython::CodeInfo>(cpython::CodeInfo{name, "app.py", 1, ""});
  };
  constexpr Address kCode{0x1000};  // not readable here
  CodeRegistry registry(testing::fake_layout(), CodeRegistry::Source::kTaught);
  EXPECT_EQ(registry.find(kCode, 5), nullptr);
  // WHEN it learns of one, and later of another one at the same address
  registry.learn(kCode, info("first"), 10);
  const CodeId first = registry.find(kCode, 10)->id;
  registry.learn(kCode, info("second"), 20);
  // THEN each time has its own
  EXPECT_EQ(registry.find(kCode, 10)->id, first);
  EXPECT_EQ(registry.find(kCode, 19)->info->name, "first");
  EXPECT_EQ(registry.find(kCode, 20)->info->name, "second");
  // and the first is forgotten when nothing of its time is to come
  EXPECT_EQ(registry.forget_deaths_before(20), std::vector{first});
}

}  // namespace
}  // namespace plimsoll::capture
