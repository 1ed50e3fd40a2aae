#include "memory/remote.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "memory/reader.h"

namespace plimsoll::memory {
namespace {

static_assert(Reader<RemoteReader>);
static_assert(Reader<PagedReader>);

// Three pages, of which the last is not readable; each byte of the others is its offset's lowest one.
class Pages {
 public:
  Pages() : base_(::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    for (std::size_t i = 0; i < 2 * kPage; ++i) (*this)[i] = static_cast<std::uint8_t>(i);
    ::mprotect(static_cast<char*>(base_) + 2 * kPage, kPage, PROT_NONE);
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  ~Pages() { ::munmap(base_, kSize); }

  static constexpr std::size_t kPage = 4096, kSize = 3 * kPage;
  std::uint8_t& operator[](std::size_t offset) { return static_cast<std::uint8_t*>(base_)[offset]; }
  [[nodiscard]] Address at(std::uint64_t offset) const {
    return Address{reinterpret_cast<std::uint64_t>(base_) + offset};
  }

 private:
  void* base_;
};

// A process may read its own memory the same way.
struct RemoteMemory : ::testing::Test {
  Pages pages;
  RemoteReader memory{::getpid()};
};

TEST_F(RemoteMemory, IsReadAcrossPages) {
  std::uint32_t word = 0;
  EXPECT_TRUE(memory.load(pages.at(Pages::kPage - 2), word));
  EXPECT_EQ(word, 0x0100fffeU);
}

TEST_F(RemoteMemory, ThatIsNotReadableIsNotRead) {
  std::uint64_t word = 0;
  EXPECT_FALSE(memory.load(pages.at(2 * Pages::kPage - 4), word));
  EXPECT_FALSE(memory.load(Address{}, word));
}

TEST_F(RemoteMemory, ManyRangesAreReadInTheirOrder) {
  // GIVEN more ranges than one call takes
  std::vector<RemoteReader::Range> ranges;
  for (std::size_t i = 0; i < 3000; ++i) ranges.push_back({pages.at(3000 - i), 1});
  std::vector<std::byte> out(ranges.size());
  // WHEN they are read
  ASSERT_TRUE(memory.read_all(ranges, out.data()));
  // THEN they stand side by side
  for (std::size_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i], static_cast<std::byte>(3000 - i));
  // and one that is not readable fails them all
  ranges.push_back({pages.at(2 * Pages::kPage), 1});
  out.resize(ranges.size());
  EXPECT_FALSE(memory.read_all(ranges, out.data()));
}

TEST_F(RemoteMemory, PagesAreCopiedOnceUntilForgotten) {
  const PagedReader constant(memory);
  PagedReader paged(memory);
  std::uint8_t byte = 0;
  ASSERT_TRUE(paged.load(pages.at(7), byte));
  // WHEN the process writes
  pages[8] = 200;
  // THEN its page looks as it did
  ASSERT_TRUE(paged.load(pages.at(8), byte));
  EXPECT_EQ(byte, 8);
  // until it is copied again
  paged.forget();
  ASSERT_TRUE(paged.load(pages.at(8), byte));
  EXPECT_EQ(byte, 200);
}

TEST_F(RemoteMemory, PartsOfPagesAreCopiedTogetherAsFarAsTheyCanBe) {
  PagedReader paged(memory);
  const std::uint64_t first = raw(pages.at(0)) / Pages::kPage;
  constexpr std::uint32_t kAll = Pages::kPage;
  // GIVEN two pages, one after them that is not there, and the first once more; WHEN they are copied, and then written
  paged.copy_together(std::vector<PagedReader::Part>{{first + 1, 0, kAll}, {first + 2, 0, kAll}, {first, 0, kAll}});
  pages[Pages::kPage] = 99;
  pages[0] = 98;
  // THEN the one before the gap looks as it did
  std::uint8_t byte = 0;
  ASSERT_TRUE(paged.load(pages.at(Pages::kPage), byte));
  EXPECT_EQ(byte, 0);
  EXPECT_FALSE(paged.load(pages.at(2 * Pages::kPage), byte));
  // and the one after it is copied when it is needed
  ASSERT_TRUE(paged.load(pages.at(0), byte));
  EXPECT_EQ(byte, 98);
  // and what was needed is known
  std::vector<PagedReader::Part> visited;
  paged.visited(visited, 9);
  constexpr std::uint32_t kStep = PagedReader::kStep;
  EXPECT_EQ(visited, (std::vector<PagedReader::Part>{{first + 1, 0, kStep}, {first, 0, kStep}}));
}

TEST_F(RemoteMemory, TheRestOfAPageIsCopiedWhenItIsNeeded) {
  PagedReader paged(memory);
  const std::uint64_t first = raw(pages.at(0)) / Pages::kPage;
  // GIVEN a part of a page that was copied, and what was written to it then
  paged.copy_together(std::vector<PagedReader::Part>{{first, 64, 128}});
  pages[64] = 99;
  pages[128] = 98;
  // WHEN that part is read THEN it looks as it did
  std::uint32_t word = 0;
  ASSERT_TRUE(paged.load(pages.at(64), word));
  EXPECT_EQ(word, 0x43424140U);
  // WHEN more is THEN that is as it is now, and the part as it was
  ASSERT_TRUE(paged.load(pages.at(126), word));
  EXPECT_EQ(word, 0x81627f7eU);
  pages[0] = 97;
  ASSERT_TRUE(paged.load(pages.at(0), word));
  EXPECT_EQ(word, 0x03020100U);
  ASSERT_TRUE(paged.load(pages.at(64), word));
  EXPECT_EQ(word, 0x43424140U);
  // and it has been visited once
  std::vector<PagedReader::Part> visited;
  paged.visited(visited, 9);
  EXPECT_EQ(visited, (std::vector<PagedReader::Part>{{first, 0, 192}}));
}

TEST_F(RemoteMemory, PagesAreReadAcrossTheirEdgesAndNoFurther) {
  const PagedReader paged(memory);
  std::uint32_t word = 0;
  EXPECT_TRUE(paged.load(pages.at(Pages::kPage - 2), word));
  EXPECT_EQ(word, 0x0100fffeU);
  EXPECT_FALSE(paged.load(pages.at(2 * Pages::kPage - 2), word));
  EXPECT_TRUE(paged.load(pages.at(0), word));  // a failure leaves the rest as it was
  EXPECT_EQ(word, 0x03020100U);
}

TEST_F(RemoteMemory, PagesShowWhatReplacesThem) {
  PagedReader paged(memory);
  std::uint32_t word = 0;
  ASSERT_TRUE(paged.load(pages.at(Pages::kPage - 2), word));
  const std::byte bytes[4] = {std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}};
  paged.replace(pages.at(Pages::kPage - 2), bytes);
  ASSERT_TRUE(paged.load(pages.at(Pages::kPage - 2), word));
  EXPECT_EQ(word, 0x04030201U);
}

}  // namespace
}  // namespace plimsoll::memory
