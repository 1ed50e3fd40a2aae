// base/symbols_test.cc: numbers come back, whatever they are, and take as few bits as they are probable.
#include "base/symbols.h"

#include <gtest/gtest.h>

#include <bit>
#include <random>
#include <vector>

namespace plimsoll {
namespace {

TEST(Symbols, GiveBackEveryNumberThatWasPut) {
  // GIVEN numbers of all lengths, in two models that take turns, in several parts
  SymbolModel small(16), large(200), read_small(16), read_large(200);
  std::mt19937_64 random(7);
  for (const std::size_t count : {0, 1, 2, 1000, 50'000}) {
    std::vector<std::uint64_t> numbers{0, 1, 15, 16, 17, 199, 200, 201, UINT64_MAX - 200, INT64_MAX};
    numbers.resize(count);
    for (std::size_t i = 10; i < count; ++i) numbers[i] = (random() >> 1U) >> random() % 63;
    SymbolWriter writer;
    for (std::size_t i = 0; i < count; ++i) writer.put(i % 3 == 0 ? small : large, numbers[i]);
    const std::string bytes = writer.take();
    // WHEN they are read THEN they are what they were, and nothing is left
    SymbolReader reader(bytes);
    for (std::size_t i = 0; i < count; ++i)
      ASSERT_EQ(reader.get(i % 3 == 0 ? read_small : read_large), numbers[i]) << i;
    EXPECT_TRUE(reader.is_over()) << count;
  }
}

TEST(Symbols, TakeLittleMoreThanTheirEntropy) {
  // GIVEN numbers whose probability halves from one to the next, which have two bits of entropy
  SymbolModel model(64);
  SymbolWriter writer;
  std::mt19937_64 random(11);
  constexpr std::size_t kCount = 20'000;
  for (std::size_t i = 0; i < kCount; ++i)
    writer.put(model, static_cast<std::uint64_t>(std::countr_zero(random() | 1U << 31U)));
  // WHEN / THEN
  EXPECT_LT(writer.take().size() * 8, kCount * 2 * 103 / 100);
  // GIVEN always the same one
  SymbolModel other(64);
  for (std::size_t i = 0; i < kCount; ++i) writer.put(other, 5);
  EXPECT_LT(writer.take().size() * 8, kCount * 6 / 100);
}

TEST(Symbols, AreMissingWhereBytesAre) {
  SymbolModel model(200), read_model(200);
  SymbolWriter writer;
  for (std::uint64_t i = 0; i < 100; ++i) writer.put(model, i * i);
  const std::string bytes = writer.take();
  for (std::size_t size = 1; size < bytes.size(); ++size) {
    SymbolModel again(200);
    SymbolReader reader(std::string_view(bytes).substr(0, size));
    for (int i = 0; i < 100; ++i) (void)reader.get(again);
    EXPECT_TRUE(reader.failed()) << size;
    EXPECT_FALSE(reader.is_over());
  }
}

}  // namespace
}  // namespace plimsoll
