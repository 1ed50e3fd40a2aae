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

TEST(Gunzip, UnpacksAllMembers) {
  // GIVEN nothing, a little, much, and two files one behind the other WHEN they are unpacked THEN all of it is there
  std::string large;
  for (unsigned i = 0; large.size() < 1'000'000; i = i * 1664525 + 1013904223) large += std::to_string(i);
  for (const std::string& text : {std::string{}, std::string("a"), large}) {
    const Gunzipped once = gunzip(gzip(text).value(), large.size()).value();
    EXPECT_EQ(once.bytes, text);
    EXPECT_TRUE(once.is_whole);
    EXPECT_EQ(gunzip(gzip(text).value() + gzip("b").value(), large.size() + 1).value().bytes, text + "b");
  }
}

TEST(Gunzip, KeepsWhatComesBeforeACutOrDamage) {
  // GIVEN a file that is cut, and one with a wrong checksum WHEN they are unpacked THEN it is told that it is not whole
  const std::string text(100'000, 'x');
  const std::string stored = gzip(text).value();
  for (const std::size_t size : {std::size_t{2}, std::size_t{12}, stored.size() / 2, stored.size() - 1}) {
    const Result<Gunzipped> part = gunzip(std::string_view(stored).substr(0, size), text.size());
    ASSERT_TRUE(part.ok());
    EXPECT_FALSE(part.value().is_whole);
    EXPECT_TRUE(text.starts_with(part.value().bytes));
  }
  std::string damaged = stored;
  damaged[damaged.size() - 6] ^= 1;
  EXPECT_FALSE(gunzip(damaged, text.size()).value().is_whole);
}

TEST(Gunzip, RefusesToFillTheMemory) {
  // GIVEN a small file of a large text WHEN the limit is below its size THEN that is an error
  const std::string stored = gzip(std::string(1'000'000, 'x')).value();
  const Result<Gunzipped> unpacked = gunzip(stored, 999'999);
  ASSERT_FALSE(unpacked.ok());
  EXPECT_EQ(unpacked.error().kind, ErrorKind::kBadInput);
}

}  // namespace
}  // namespace plimsoll::formats
