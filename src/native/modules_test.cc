#include "native/modules.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <utility>
#include <vector>

#include "native/library_testing.h"

namespace plimsoll::native {
namespace {

using testing::kPage;
using testing::SmallLibrary;

// It was loaded at each of these addresses.
std::vector<os::Mapping> mappings_at(std::initializer_list<std::uint64_t> starts) {
  std::vector<os::Mapping> mappings;
  for (const std::uint64_t start : starts)
    for (std::uint64_t i = 0; i < SmallLibrary::kPages; ++i) {
      os::Mapping& mapping = mappings.emplace_back();
      mapping.start = start + i * kPage;
      mapping.end = mapping.start + kPage;
      mapping.inode = 7;
      mapping.path = "/lib/small.so";
      mapping.is_executable = i == 1;
    }
  return mappings;
}

TEST(Modules, OfFilesWhosePartsShareAPageAreWhole) {
  // GIVEN a small library that was loaded twice, side by side
  constexpr std::uint64_t kFirst = 0x10000, kSecond = kFirst + SmallLibrary::kPages * kPage;
  const SmallLibrary library;
  memory::Image image;
  for (const std::uint64_t start : {kFirst, kSecond}) image.add(Address{start}, std::as_bytes(std::span(&library, 1)));
  image.seal();
  Modules modules(image, mappings_at({kFirst, kSecond}), [](const os::Mapping&) { return UniqueFd(); });
  // WHEN its code is looked up
  ASSERT_TRUE(modules.refresh(1).ok());
  for (const std::uint64_t start : {kFirst, kSecond}) {
    const std::shared_ptr<const Module> module = modules.find(Address{start + kPage + 0x510}, 1);
    // THEN it begins where the first part is, although the file begins anew with each part
    ASSERT_NE(module, nullptr);
    EXPECT_EQ(module->first.start, start);
    EXPECT_EQ(module->slide, start);
    EXPECT_EQ(module->end, start + SmallLibrary::kPages * kPage);
  }
}

TEST(Modules, OfWhatIsNoElfFileBeginWhereTheFileDoes) {
  // GIVEN the same mappings of a file without headers
  memory::Image image;
  const std::array<std::byte, SmallLibrary::kPages * kPage> bytes{};
  image.add(Address{kPage}, bytes);
  image.seal();
  Modules modules(image, mappings_at({kPage}), [](const os::Mapping&) { return UniqueFd(); });
  ASSERT_TRUE(modules.refresh(1).ok());
  const std::shared_ptr<const Module> module = modules.find(Address{2 * kPage}, 1);
  ASSERT_NE(module, nullptr);
  EXPECT_EQ(module->first.start, 2 * kPage);
}

class ReloadedModule : public testing::ReloadedLibrary {
 protected:
  // Looks at it as it is at first, when it is the same, and when it is another one.
  void expect_noticed(Modules& modules, Mark mark) {
    constexpr std::int64_t kLater = 1'000'000'000;
    load('a', mark);
    ASSERT_TRUE(modules.refresh(kLater).ok());
    const std::shared_ptr<const Module> first = modules.find(address(), kLater);
    ASSERT_NE(first, nullptr);
    load('a', mark);
    ASSERT_TRUE(modules.refresh(2 * kLater).ok());
    EXPECT_EQ(modules.find(address(), 2 * kLater), first);
    EXPECT_EQ(modules.unloads(), 0U);
    load('b', mark);
    ASSERT_TRUE(modules.refresh(3 * kLater).ok());
    EXPECT_NE(modules.find(address(), 3 * kLater), first);
    EXPECT_EQ(modules.unloads(), 1U);
  }
};

TEST_F(ReloadedModule, OfThisProcessIsAnotherOneIfTheFileIs) {
  for (const Mark mark : {Mark::kBuildId, Mark::kFirstBytes}) {
    Modules modules;
    expect_noticed(modules, mark);
  }
}

TEST_F(ReloadedModule, OfAnotherProcessIsAnotherOneIfTheFileIs) {
  for (const Mark mark : {Mark::kBuildId, Mark::kFirstBytes}) {
    Modules modules{os::Pid{::getpid()}};
    expect_noticed(modules, mark);
  }
}

// A page of code of no file. Each is somewhere else.
class CodePage {
 public:
  CodePage() : start_(::mmap(nullptr, kPage, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {}
  CodePage(const CodePage&) = delete;
  CodePage& operator=(const CodePage&) = delete;
  CodePage(CodePage&& from) noexcept : start_(std::exchange(from.start_, MAP_FAILED)) {}
  CodePage& operator=(CodePage&&) = delete;
  ~CodePage() {
    if (start_ != MAP_FAILED) ::munmap(start_, kPage);
  }
  // Whether it is found when it is met at a time.
  [[nodiscard]] bool is_found_by(Modules& modules, std::int64_t time_ns) const {
    const auto address = reinterpret_cast<std::uint64_t>(start_);
    (void)modules.current()->step_at(address);
    EXPECT_TRUE(modules.refresh(time_ns).ok());
    return modules.current()->find(address) != nullptr;
  }

 private:
  void* start_;
};

TEST(Modules, OfAnotherProcessAreFoundWhenTheyAreMetOneAfterTheOther) {
  constexpr std::int64_t kNow = 1'000'000'000, kMillisecond = 1'000'000;
  Modules modules{os::Pid{::getpid()}};
  ASSERT_TRUE(modules.refresh(kNow).ok());
  // GIVEN code that is new, and more of it a moment later
  const CodePage first;
  EXPECT_TRUE(first.is_found_by(modules, kNow + kMillisecond));
  const CodePage second;
  EXPECT_TRUE(second.is_found_by(modules, kNow + 2 * kMillisecond));
  // WHEN there is ever more in no time THEN it is not looked for without end, but some time later
  std::vector<CodePage> more;
  do more.emplace_back();
  while (more.back().is_found_by(modules, kNow + 3 * kMillisecond));
  EXPECT_TRUE(more.back().is_found_by(modules, 2 * kNow));
}

}  // namespace
}  // namespace plimsoll::native
