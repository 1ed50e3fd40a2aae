#include "alloc/site_numbers.h"

#include <gtest/gtest.h>

#include <map>
#include <new>
#include <tuple>

namespace plimsoll::alloc {
namespace {

TEST(SiteNumbers, ASiteHasItsNumberHoweverManyAStackHas) {
  // GIVEN stacks with one site, with some, and with one of each size
  SiteNumbers numbers(10'000);
  std::map<std::tuple<std::uint32_t, Domain, std::size_t>, std::uint32_t> known;
  std::uint32_t made = 0;
  const auto find = [&](std::uint32_t stack, Domain domain, std::size_t size) {
    const StackKey key{0x5000 + stack % 2, 7 + stack};
    const SiteNumbers::Kind kind = SiteNumbers::kind_of(domain, size);
    const auto* const noted = numbers.find_noted(key, kind);
    const std::uint32_t known_as = noted != nullptr ? noted->site : 0;
    const std::uint32_t number = numbers.find(stack, kind, [&](std::uint32_t next) { made = next; });
    EXPECT_TRUE(known_as == 0 || known_as == number);
    numbers.note(key, kind, number);
    EXPECT_EQ(numbers.find_noted(key, kind)->site, number);
    return number;
  };
  // WHEN they are met in turn, again and again THEN each site has a number of its own, the same each time
  for (int round = 0; round < 3; ++round)
    for (std::uint32_t size = 0; size <= BlockBooks::kLargestSmall; ++size)
      for (const auto& [stack, domain, bytes] :
           {std::tuple{1U, Domain::kObject, std::size_t{64}}, std::tuple{2U, Domain::kMemory, std::size_t{size}},
            std::tuple{2U, Domain::kObject, std::size_t{size}},
            std::tuple{900U, Domain::kRaw, std::size_t{size % 3}}}) {
        const auto [entry, is_new] = known.try_emplace({stack, domain, bytes}, 0);
        const std::uint32_t number = find(stack, domain, bytes);
        if (is_new) entry->second = number;
        ASSERT_EQ(entry->second, number);
      }
  EXPECT_EQ(made, known.size());
  // AND all large blocks of a stack and allocator are of one site
  EXPECT_EQ(find(3, Domain::kObject, 513), find(3, Domain::kObject, 1'000'000));
}

TEST(SiteNumbers, WhatIsNoKeyIsNotNoted) {
  SiteNumbers numbers(10);
  const SiteNumbers::Kind kind = SiteNumbers::kind_of(Domain::kObject, 8);
  numbers.note({4, 0}, kind, 1);
  EXPECT_EQ(numbers.find_noted({4, 0}, kind), nullptr);
}

TEST(SiteNumbers, WhenThereAreTooManyTheRestHasNone) {
  SiteNumbers numbers(3);
  const auto find = [&](std::uint32_t stack, std::size_t size) {
    return numbers.find(stack, SiteNumbers::kind_of(Domain::kObject, size), [](std::uint32_t) {});
  };
  EXPECT_EQ(find(1, 8), 1U);
  EXPECT_EQ(find(1, 16), 2U);
  EXPECT_EQ(find(1, 24), 0U);
  EXPECT_EQ(find(2, 8), 0U);
  EXPECT_EQ(find(1, 8), 1U);
}

TEST(SiteNumbers, ASiteThatCouldNotBeAddedIsNotThere) {
  SiteNumbers numbers(10);
  const SiteNumbers::Kind kind = SiteNumbers::kind_of(Domain::kObject, 8);
  for (const std::uint32_t stack : {1U, 2U}) {
    EXPECT_THROW(numbers.find(stack, kind, [](std::uint32_t) { throw std::bad_alloc(); }), std::bad_alloc);
    EXPECT_EQ(numbers.find(stack, kind, [](std::uint32_t) {}), stack);
  }
}

}  // namespace
}  // namespace plimsoll::alloc
