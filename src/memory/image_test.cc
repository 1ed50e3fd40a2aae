#include "memory/image.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <string_view>
#include <vector>

namespace plimsoll::memory {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::string read(const Image& image, std::uint64_t at, std::size_t size) {
  std::string out(size, '?');
  return image.read(Address{at}, out.data(), size) ? out : "unreadable";
}

TEST(Image, ReadsPiecesWhereTheyStood) {
  // GIVEN two pieces, added from the last to the first, with a gap between them
  Image image;
  image.add(Address{0x9000}, bytes_of("tail"));
  image.add(Address{0x1000}, bytes_of("head"));
  image.seal();
  // THEN each is at its address, and nothing before, between and after
  EXPECT_EQ(read(image, 0x1000, 4), "head");
  EXPECT_EQ(read(image, 0x9001, 3), "ail");
  EXPECT_EQ(read(image, 0xfff, 2), "unreadable");
  EXPECT_EQ(read(image, 0x1002, 4), "unreadable");
  EXPECT_EQ(read(image, 0x5000, 1), "unreadable");
  EXPECT_EQ(read(image, 0x9004, 1), "unreadable");
  EXPECT_EQ(image.copied_bytes(), 8U);
}

TEST(Image, TellsWhichMultiplesWereCopied) {
  // GIVEN pieces that begin and end at multiples of 4096, before and behind them, one with zeros beside it, and one at
  // the end of all addresses
  Image image;
  for (const std::uint64_t at : {0x1000ULL, 0x1ffcULL, 0x2ffeULL, 0x5004ULL, ~0ULL - 4})
    image.add(Address{at}, bytes_of("abcd"));
  image.add_zeros(Address{0x4000}, 0x10);
  image.seal();
  std::vector<std::uint64_t> found;
  image.each_copied(0x1000, [&](Address at) { found.push_back(raw(at)); });
  // THEN those are told at which a byte is
  EXPECT_EQ(found, (std::vector<std::uint64_t>{0x1000, 0x3000}));
}

TEST(Image, ReadsAcrossPiecesThatTouch) {
  // GIVEN pieces side by side in the process, and apart in the copy
  Image image;
  image.add(Address{0x1000}, bytes_of("abcd"));
  image.add(Address{0x1004}, bytes_of("efgh"));
  image.seal();
  // THEN they are one text, also for numbers
  EXPECT_EQ(read(image, 0x1002, 4), "cdef");
  std::uint32_t number = 0;
  ASSERT_TRUE(image.load(Address{0x1002}, number));
  EXPECT_EQ(number, 0x66656463U);
}

TEST(Image, OfPiecesThatOverlapTheFirstIsSeen) {
  // GIVEN a piece and one that begins inside it
  Image image;
  image.add(Address{0x1000}, bytes_of("abcd"));
  image.add(Address{0x1002}, bytes_of("WXYZ"));
  image.seal();
  // THEN the second is seen from the end of the first on
  EXPECT_EQ(read(image, 0x1000, 6), "abcdYZ");
}

TEST(Image, ReadsTheRestFromFilesAndZeros) {
  // GIVEN a page of a file, of which the process has changed the second half, and one that was never touched
  std::FILE* file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  const std::string page(4096, 'f');
  ASSERT_EQ(std::fwrite(page.data(), 1, page.size(), file), page.size());
  std::fflush(file);
  const std::string own(2048, 'm');
  Image image;
  image.add_file(Address{0x4000}, 4096, std::make_shared<const UniqueFd>(::dup(::fileno(file))), 0);
  std::fclose(file);
  image.add(Address{0x4800}, bytes_of(own));
  image.add_zeros(Address{0x5000}, 4096);
  image.seal();
  // THEN what was copied goes before the file
  EXPECT_EQ(read(image, 0x47fe, 4), "ffmm");
  EXPECT_EQ(read(image, 0x4fff, 2), std::string("m\0", 2));
  EXPECT_FALSE(image.has_copy(Address{0x4000}, 8));
  EXPECT_TRUE(image.has_copy(Address{0x4800}, 8));
}

TEST(Image, AFileThatHasBeenCutCannotBeRead) {
  // GIVEN a mapping that is longer than its file
  std::FILE* file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  Image image;
  image.add_file(Address{0x4000}, 8192, std::make_shared<const UniqueFd>(::dup(::fileno(file))), 4096);
  std::fclose(file);
  image.seal();
  // THEN that is said
  EXPECT_EQ(read(image, 0x4000, 1), "unreadable");
}

TEST(Image, NothingGoesRoundTheEndOfTheAddressSpace) {
  // GIVEN a piece that would
  Image image;
  image.add(Address{~std::uint64_t{0} - 1}, bytes_of("abcd"));
  image.seal();
  // THEN what is left of it is read, and no more
  EXPECT_EQ(read(image, ~std::uint64_t{0} - 1, 1), "a");
  EXPECT_EQ(read(image, 0, 1), "unreadable");
  EXPECT_EQ(read(image, ~std::uint64_t{0} - 1, 4), "unreadable");
}

}  // namespace
}  // namespace plimsoll::memory
