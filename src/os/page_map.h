// os/page_map.h: which pages of another process's memory there are.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/unique_fd.h"
#include "os/process.h"

namespace plimsoll::os {

// Pages side by side that there are, in memory or in swap; addresses.
struct PageRun {
  std::uint64_t start = 0, end = 0;
  bool is_of_file = false;  // as they are in the file that is mapped, or shared with other processes
  bool operator==(const PageRun&) const = default;
};

// The pages of a process. Takes as long as there are pages, where the kernel can be asked for those that there are
// (Linux 6.7, PAGEMAP_SCAN), and else as long as there are addresses: of a GB without pages 5 us, and 1 ms; sanitizers
// map fifteen thousand. Used by one thread.
class PageMap {
 public:
  explicit PageMap(Pid pid);

  // Those between two addresses of whole pages, in order; good until the next call. None if nobody may know, or the
  // process has ended.
  std::optional<std::span<const PageRun>> runs(std::uint64_t start, std::uint64_t end);

 private:
  // What came of a question.
  enum class Told : std::uint8_t { kAll, kCannotBeAsked, kNothing };
  Told ask(std::uint64_t start, std::uint64_t end);
  bool read(std::uint64_t start, std::uint64_t end);
  void add(const PageRun& run);

  UniqueFd fd_;
  bool can_ask_ = true;
  std::vector<PageRun> runs_;
};

}  // namespace plimsoll::os
