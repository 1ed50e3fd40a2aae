// base/chunk_stream_test.cc: chunks are compressed with those before them, and each is whole or not there.
#include "base/chunk_stream.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace plimsoll {
namespace {

// Chunks of all sizes: like the one before, random, empty, and larger than the window.
std::vector<std::string> drawn() {
  std::mt19937 random(1);
  std::string noise(5000, '\0');
  for (char& letter : noise) letter = static_cast<char>(random());
  return {
      "a chunk of a few words", "a chunk of a few words more", noise, {}, noise, std::string(3'000'000, 'x'), "end"};
}

std::string written(const std::vector<std::string>& raws) {
  ChunkStreamWriter writer(3);
  std::string bytes;
  for (const std::string& raw : raws) bytes += writer.add(raw, "packed " + std::to_string(raw.size()));
  return bytes;
}

TEST(ChunkStream, GivesBackEachChunk) {
  const std::string bytes = written(drawn());
  std::string_view rest = bytes;
  ChunkStreamReader reader;
  std::string raw;
  std::string_view packed;
  for (const std::string& wanted : drawn()) {
    ASSERT_TRUE(reader.next(rest, 1U << 30U, raw, packed));
    EXPECT_TRUE(raw == wanted) << wanted.size();
    EXPECT_EQ(packed, "packed " + std::to_string(wanted.size()));
  }
  EXPECT_FALSE(reader.next(rest, 1U << 30U, raw, packed));
  EXPECT_TRUE(rest.empty());
}

TEST(ChunkStream, WhatCameBeforeMakesAChunkSmall) {
  const std::vector<std::string> raws = drawn();
  EXPECT_LT(written({raws[2], raws[2]}).size(), raws[2].size() + 100);
}

TEST(ChunkStream, CutAtAnyByteHasTheChunksBefore) {
  const std::vector<std::string> raws{"a chunk of a few words", "a chunk of a few words more",
                                      "and one more chunk of words"};
  const std::string bytes = written(raws);
  for (std::size_t size = 0; size <= bytes.size(); ++size) {
    std::string_view rest = std::string_view(bytes).substr(0, size);
    ChunkStreamReader reader;
    std::string raw;
    std::string_view packed;
    std::size_t chunks = 0;
    for (; reader.next(rest, 1000, raw, packed); ++chunks) EXPECT_EQ(raw, raws[chunks]);
    EXPECT_EQ(chunks == raws.size(), size == bytes.size()) << size;
    EXPECT_EQ(rest.empty(), size == 0 || written({raws.begin(), raws.begin() + chunks}).size() == size) << size;
  }
}

TEST(ChunkStream, DamageEndsItAndSoDoesAChunkThatIsTooLarge) {
  const std::string good = written(drawn());
  std::string raw;
  std::string_view packed;
  for (std::size_t at = 0; at < 60; ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    std::string_view rest = bad;
    ChunkStreamReader reader;
    int chunks = 0;
    while (reader.next(rest, 1U << 30U, raw, packed)) ++chunks;
    EXPECT_LT(chunks, 3) << at;
  }
  std::string_view rest = good;
  ChunkStreamReader reader;
  int chunks = 0;
  while (reader.next(rest, 2'000'000, raw, packed)) ++chunks;
  EXPECT_EQ(chunks, 5);
}

}  // namespace
}  // namespace plimsoll
