// formats/gzip_test.cc: round trips through gzip.
#include "formats/gzip.h"

#include "formats/testing.h"

namespace plimsoll::formats {
namespace {

TEST(Gzip, GivesBackWhatWentIn) {
  // GIVEN nothing, a little, and more than zlib's buffers WHEN it is compressed THEN it can be decompressed
  std::string large;
  for (unsigned i = 0; large.size() < 1'000'000; i = i * 1664525 + 1013904223) large += std::to_string(i);
  for (const std::string& text : {std::string{}, std::string("a"), large})
    EXPECT_EQ(testing::gunzip(gzip(text).value()), text);
}

TEST(Gzip, GivesEqualBytesForEqualInput) {
  // GIVEN the same text twice WHEN it is compressed THEN the bytes hold no time of day
  EXPECT_EQ(gzip("text").value(), gzip("text").value());
}

}  // namespace
}  // namespace plimsoll::formats
