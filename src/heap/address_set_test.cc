// heap/address_set_test.cc: membership and ranks against std::set.
#include "heap/address_set.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "heap/open_objects.h"

namespace plimsoll::heap {
namespace {

TEST(AddressSet, NumbersAddressesInTheirOrder) {
  // GIVEN objects in three places, one of them 8 bytes off the rest
  AddressSet set;
  for (const std::uint64_t address : {0x7f0000000010ULL, 0x1000ULL, 0x2008ULL, 0x7f0000100000ULL})
    EXPECT_TRUE(set.insert(Address{address}));
  EXPECT_FALSE(set.insert(Address{0x1000})) << "twice";
  // WHEN
  set.seal();
  // THEN
  EXPECT_EQ(set.rank(Address{0x1000}), 0U);
  EXPECT_EQ(set.rank(Address{0x2008}), 1U);
  EXPECT_EQ(set.rank(Address{0x7f0000000010}), 2U);
  EXPECT_EQ(set.rank(Address{0x7f0000100000}), 3U);
  EXPECT_EQ(set.rank(Address{0x2000}), kNoNode) << "the other half of the 16 bytes";
  EXPECT_EQ(set.rank(Address{0x3000}), kNoNode);
  EXPECT_EQ(set.rank(Address{0xffffffffffffff00}), kNoNode);
}

TEST(AddressSet, RefusesWhatIsNoObject) {
  AddressSet set;
  EXPECT_FALSE(set.insert(Address{0}));
  EXPECT_FALSE(set.insert(Address{0x1001}));
  EXPECT_FALSE(set.insert(Address{std::uint64_t{1} << 48U}));
  EXPECT_EQ(set.size(), 0U);
}

TEST(AddressSet, MarksBelongToAddresses) {
  AddressSet set;
  set.insert(Address{0x1000});
  set.insert(Address{0x1010});
  set.mark(Address{0x1040});
  EXPECT_FALSE(set.is_marked(Address{0x1000}));
  EXPECT_TRUE(set.is_marked(Address{0x1040}));
  EXPECT_FALSE(set.is_marked(Address{0x900000}));
}

TEST(AddressSet, WhatIsAsideStaysThereUntilItIsTaken) {
  // GIVEN an address that is put aside
  AddressSet set;
  set.insert(Address{0x1000});
  set.put_aside(Address{0x1000});
  // WHEN its memory is to be freed THEN it is there as before
  set.free_aside();
  std::vector<Address> taken;
  ASSERT_TRUE(set.take_put_aside(taken));
  EXPECT_EQ(taken, std::vector{Address{0x1000}});
  // AND when the memory has been freed, others can be put aside
  set.free_aside();
  set.put_aside(Address{0x1000});
  EXPECT_TRUE(set.take_put_aside(taken));
  EXPECT_EQ(taken.size(), 2U);
  EXPECT_FALSE(set.take_put_aside(taken));
}

TEST(OpenObjects, ComeBackEachOnce) {
  // GIVEN more objects than there is room for, in several places, some 8 bytes off the rest, and more with each that
  // is looked at
  AddressSet found;
  OpenObjects open(found);
  std::set<Address> expected;
  const auto add = [&](std::uint64_t number) {
    const Address object{0x10000 + number * 32 + (number % 7 == 0 ? 8 : 0) + (number % 3 << 32U)};
    if (!found.insert(object)) return;
    expected.insert(object);
    open.push(object);
  };
  constexpr std::uint64_t kFirst = 200'000, kLast = 300'000;
  for (std::uint64_t i = 0; i < kFirst; ++i) add(i);
  // WHEN all are taken THEN each came once
  std::set<Address> taken;
  std::uint64_t next = kFirst;
  for (Address object{}; open.pop(object);) {
    EXPECT_TRUE(taken.insert(object).second);
    if (next < kLast) add(next++);
    if (next < kLast) add(next++);
  }
  EXPECT_EQ(taken.size(), kLast);
  EXPECT_EQ(taken, expected);
}

TEST(AddressSet, ForgetsWhatIsErased) {
  AddressSet set;
  set.insert(Address{0x1000});
  set.insert(Address{0x1018});
  set.erase(Address{0x1018});
  set.erase(Address{0x5000});
  EXPECT_EQ(set.size(), 1U);
  EXPECT_FALSE(set.contains(Address{0x1018}));
  EXPECT_TRUE(set.insert(Address{0x1010})) << "the same 16 bytes, another half";
  EXPECT_TRUE(set.contains(Address{0x1010}));
}

TEST(AddressSet, VisitsWhatAnotherDoesNotHave) {
  // GIVEN two sets with some addresses in common
  AddressSet set;
  AddressSet other;
  for (const std::uint64_t address : {0x1000ULL, 0x1010ULL, 0x1028ULL, 0x7f0000000010ULL, 0x7f0000100000ULL})
    set.insert(Address{address});
  for (const std::uint64_t address : {0x1010ULL, 0x7f0000100000ULL, 0x500000ULL}) other.insert(Address{address});
  // WHEN the other gets more meanwhile
  std::vector<std::uint64_t> visited;
  set.for_each_not_in(other, [&](Address address) {
    visited.push_back(raw(address));
    other.insert(Address{0x7f0000000010});
  });
  // THEN
  EXPECT_EQ(visited, (std::vector<std::uint64_t>{0x1000, 0x1028}));
}

TEST(AddressSet, InsertsWhereAPlaceIsKnown) {
  // GIVEN a set with places for addresses near one that it has
  AddressSet set;
  EXPECT_EQ(set.place_of(Address{0x1000}), nullptr);
  EXPECT_TRUE(set.insert(Address{0x1000}, nullptr));
  // WHEN
  const auto insert = [&](std::uint64_t address) {
    return set.insert(Address{address}, set.place_of(Address{address}));
  };
  // THEN each is there once, also 8 bytes off and in a word that has had none
  for (const std::uint64_t address : {0x1010ULL, 0x1028ULL, 0x9000ULL}) {
    EXPECT_TRUE(insert(address));
    EXPECT_FALSE(insert(address));
    EXPECT_TRUE(set.contains(Address{address}));
  }
  EXPECT_FALSE(insert(0x1000));
  EXPECT_FALSE(insert(0x1020)) << "the other half of the 16 bytes";
  EXPECT_FALSE(insert(0x1001));
  EXPECT_EQ(set.size(), 4U);
}

TEST(AddressSet, AgreesWithASetOfNumbers) {
  // GIVEN 100,000 addresses, dense in some places and alone in others
  std::mt19937_64 random(8);
  std::set<std::uint64_t> expected;
  AddressSet set;
  for (int i = 0; i < 100'000; ++i) {
    const std::uint64_t place = (random() % 5) << 33U;
    const std::uint64_t address = place + (1 + random() % 300'000) * 32 + (random() % 50 == 0 ? 8 : 0);
    if (expected.contains(address ^ 8U)) continue;
    EXPECT_EQ(set.insert(Address{address}), expected.insert(address).second);
  }
  // WHEN
  set.seal();
  // THEN
  std::vector<std::uint64_t> visited;
  set.for_each([&](Address address) { visited.push_back(raw(address)); });
  EXPECT_EQ(visited, std::vector<std::uint64_t>(expected.begin(), expected.end()));
  Node rank = 0;
  for (const std::uint64_t address : expected) ASSERT_EQ(set.rank(Address{address}), rank++);
}

}  // namespace
}  // namespace plimsoll::heap
