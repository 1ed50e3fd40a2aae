// base/chunk_test.cc: what chunks say of their size, without being unpacked.
#include "base/chunk.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace plimsoll {
namespace {

TEST(Chunk, RawBytesAreThoseOfAllThatAreThere) {
  const std::string chunks = make_chunk(std::string(1000, 'a'), 1) + make_chunk("b", 1) + make_chunk("cd", 1);
  EXPECT_EQ(raw_bytes_of(chunks, UINT64_MAX), 1003U);
  EXPECT_EQ(raw_bytes_of(chunks, 500), 500U);
  EXPECT_EQ(raw_bytes_of({}, 500), 0U);
}

TEST(Chunk, RawBytesOfACutFileAreNotMoreThanItsHeadersSay) {
  const std::string chunks = make_chunk(std::string(1000, 'a'), 1) + make_chunk("b", 1);
  for (std::size_t size = 0; size < chunks.size(); ++size)
    EXPECT_LE(raw_bytes_of(std::string_view(chunks).substr(0, size), UINT64_MAX), 1001U);
}

TEST(Chunk, OfFramesIsReadAsTheWhole) {
  // GIVEN bytes that can be made fewer, and random ones, in pieces of all sizes, some of them empty
  std::mt19937_64 random(3);
  FrameCompressor compressor(1, 4);
  for (const std::size_t size : {std::size_t{0}, std::size_t{5}, std::size_t{100'000}, std::size_t{3'000'000}})
    for (const bool is_random : {false, true}) {
      std::string bytes;
      while (bytes.size() < size) bytes += is_random ? static_cast<char>(random()) : "plimsoll"[bytes.size() * 7 % 8];
      std::vector<std::string> frames;
      for (std::size_t at = 0; at < size;) {
        const std::size_t length = std::min<std::size_t>(random() % (size / 3 + 2), size - at);
        frames.push_back(compressor.frame(std::string_view(bytes).substr(at, length)));
        at += length;
      }
      // WHEN they become a chunk
      std::string chunk =
          chunk_head(static_cast<std::uint32_t>(size), std::vector<std::string_view>(frames.begin(), frames.end()));
      for (const std::string& frame : frames) chunk += frame;
      // THEN it is read as the whole, and takes about as little
      std::string_view rest = chunk;
      std::string raw;
      ASSERT_TRUE(next_chunk(rest, UINT64_MAX, raw));
      EXPECT_TRUE(raw == bytes) << size;
      EXPECT_TRUE(rest.empty());
      EXPECT_LE(chunk.size(), make_chunk(bytes, 1).size() * 101 / 100 + 32 * (frames.size() + 1)) << size;
    }
}

TEST(Chunk, RawBytesThatAreNotTrueAreBounded) {
  // GIVEN headers that each say four thousand million bytes
  const std::string chunks(1000, '\xff');
  // WHEN / THEN
  EXPECT_EQ(raw_bytes_of(chunks, 12345), 12345U);
}

}  // namespace
}  // namespace plimsoll
