// base/chunk_test.cc: what chunks say of their size, without being unpacked.
#include "base/chunk.h"

#include <gtest/gtest.h>

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

TEST(Chunk, RawBytesThatAreNotTrueAreBounded) {
  // GIVEN headers that each say four thousand million bytes
  const std::string chunks(1000, '\xff');
  // WHEN / THEN
  EXPECT_EQ(raw_bytes_of(chunks, 12345), 12345U);
}

}  // namespace
}  // namespace plimsoll
