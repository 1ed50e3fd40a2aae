#include "os/page_map.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <string_view>

namespace plimsoll::os {
namespace {

const auto kPage = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));

// Pages of this process, for the scope.
class Pages {
 public:
  explicit Pages(std::size_t count, int fd = -1)
      : bytes_(count * kPage),
        at_(static_cast<char*>(::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                                      MAP_PRIVATE | MAP_NORESERVE | (fd < 0 ? MAP_ANONYMOUS : 0), fd, 0))) {
    ::madvise(at_, bytes_, MADV_NOHUGEPAGE);
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  ~Pages() { ::munmap(at_, bytes_); }

  volatile char& operator[](std::size_t page) const { return at_[page * kPage]; }
  [[nodiscard]] std::uint64_t start() const { return reinterpret_cast<std::uint64_t>(at_); }
  [[nodiscard]] std::uint64_t end() const { return start() + bytes_; }
  // The pages of runs: m for one's own, f for a file's.
  [[nodiscard]] std::string drawing(std::span<const PageRun> runs) const {
    std::string out(bytes_ / kPage, ' ');
    for (const PageRun& run : runs)
      for (std::uint64_t at = run.start; at < run.end; at += kPage)
        out[(at - start()) / kPage] = run.is_of_file ? 'f' : 'm';
    return out;
  }

 private:
  std::size_t bytes_;
  char* at_;
};

TEST(PageMap, HasThePagesThatWereTouched) {
  // GIVEN memory of which some pages were written to
  const Pages pages(8);
  for (const std::size_t page : {1, 2, 5}) pages[page] = 'x';
  // THEN those are there, side by side ones as one
  PageMap map(Pid{::getpid()});
  const auto runs = map.runs(pages.start(), pages.end());
  ASSERT_TRUE(runs);
  EXPECT_EQ(pages.drawing(*runs), " mm  m  ");
  EXPECT_EQ(runs->size(), 2U);
}

TEST(PageMap, TellsPagesOfAFileFromThoseThatWereWrittenTo) {
  // GIVEN a mapped file, of which one page was read, and one written to
  std::FILE* const file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  ASSERT_EQ(::ftruncate(::fileno(file), static_cast<off_t>(kPage * 3)), 0);
  const Pages pages(3, ::fileno(file));
  ::madvise(reinterpret_cast<void*>(pages.start()), 3 * kPage, MADV_RANDOM);  // its neighbours are not read with it
  EXPECT_EQ(pages[0], 0);
  pages[1] = 'x';
  PageMap map(Pid{::getpid()});
  const auto runs = map.runs(pages.start(), pages.start() + 2 * kPage);
  ASSERT_TRUE(runs);
  EXPECT_EQ(pages.drawing(*runs), "fm ");
  std::fclose(file);
}

TEST(PageMap, TakesNoTimeForAddressesWithoutPages) {
  // GIVEN a terabyte of addresses, of which the last page was touched
  constexpr std::size_t kTerabyte = std::size_t{1} << 40U;
  const Pages pages(kTerabyte / kPage);
  if (pages.start() == ~std::uint64_t{0}) GTEST_SKIP() << "this system does not give out a terabyte of addresses";
  pages[kTerabyte / kPage - 1] = 'x';
  // THEN it is found (which took ten seconds and more where each page was asked for)
  PageMap map(Pid{::getpid()});
  const auto runs = map.runs(pages.start(), pages.end());
  ASSERT_TRUE(runs);
  ASSERT_EQ(runs->size(), 1U);
  EXPECT_EQ(runs->front(), (PageRun{pages.end() - kPage, pages.end(), false}));
}

TEST(PageMap, OfAProcessThatIsNotThereIsNotKnown) {
  PageMap map(Pid{-1});
  EXPECT_FALSE(map.runs(0, kPage));
}

}  // namespace
}  // namespace plimsoll::os
