#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>

#include "os/page_map.h"

namespace plimsoll::os {
namespace {

// Of a word of /proc/PID/pagemap: in memory, in swap, of a file or shared.
constexpr std::uint64_t kPresent = std::uint64_t{1} << 63U, kSwapped = std::uint64_t{1} << 62U,
                        kOfFile = std::uint64_t{1} << 61U;

// Of linux/fs.h since 6.7, where they are PAGEMAP_SCAN, page_region, pm_scan_arg and PAGE_IS_*.
constexpr std::uint64_t kIsOfFile = 1U << 2U, kIsPresent = 1U << 3U, kIsSwapped = 1U << 4U;
struct Region {
  std::uint64_t start, end, categories;
};
struct Question {
  std::uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages, category_inverted, category_mask,
      category_anyof_mask, return_mask;
};
const unsigned long kScan = _IOWR('f', 16, Question);  // NOLINT(google-runtime-int): what ioctl takes

}  // namespace

PageMap::PageMap(Pid pid)
    : fd_(::open(("/proc/" + std::to_string(static_cast<int>(pid)) + "/pagemap").c_str(), O_RDONLY | O_CLOEXEC)) {}

std::optional<std::span<const PageRun>> PageMap::runs(std::uint64_t start, std::uint64_t end) {
  if (!fd_.is_open()) return std::nullopt;
  runs_.clear();
  Told told = can_ask_ ? ask(start, end) : Told::kCannotBeAsked;
  if (told == Told::kCannotBeAsked) {
    can_ask_ = false;
    told = read(start, end) ? Told::kAll : Told::kNothing;
  }
  if (told != Told::kAll) return std::nullopt;
  return runs_;
}

PageMap::Told PageMap::ask(std::uint64_t start, std::uint64_t end) {
  std::array<Region, 1024> found;
  Question question{};
  question.size = sizeof question;
  question.vec = reinterpret_cast<std::uint64_t>(found.data());
  question.vec_len = found.size();
  question.end = end;
  question.category_anyof_mask = kIsPresent | kIsSwapped;
  question.return_mask = kIsPresent | kIsSwapped | kIsOfFile;
  for (question.start = start; question.start < end; question.start = question.walk_end) {
    const int count = ::ioctl(fd_.get(), kScan, &question);
    if (count < 0) return errno == ENOTTY ? Told::kCannotBeAsked : Told::kNothing;
    for (const Region& region : std::span(found).first(static_cast<std::size_t>(count)))
      add({region.start, region.end, (region.categories & kIsOfFile) != 0});
    if (question.walk_end <= question.start) return Told::kNothing;  // there is no memory any more
  }
  return Told::kAll;
}

bool PageMap::read(std::uint64_t start, std::uint64_t end) {
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  std::array<std::uint64_t, 8192> words;
  while (start < end) {
    const std::size_t wanted = std::min<std::uint64_t>((end - start) / page, words.size());
    const auto place = static_cast<off_t>(start / page * sizeof(std::uint64_t));
    const ssize_t got = ::pread(fd_.get(), words.data(), wanted * sizeof(std::uint64_t), place);
    if (got < static_cast<ssize_t>(sizeof(std::uint64_t))) return false;
    for (const std::uint64_t word : std::span(words).first(static_cast<std::size_t>(got) / sizeof(std::uint64_t))) {
      if ((word & (kPresent | kSwapped)) != 0) add({start, start + page, (word & kOfFile) != 0});
      start += page;
    }
  }
  return true;
}

void PageMap::add(const PageRun& run) {
  if (!runs_.empty() && runs_.back().end == run.start && runs_.back().is_of_file == run.is_of_file)
    runs_.back().end = run.end;
  else
    runs_.push_back(run);
}

}  // namespace plimsoll::os
