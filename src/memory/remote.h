// memory/remote.h: reads another process's memory, with process_vm_readv: nothing is written, nothing stopped.
#pragma once

#include <sys/types.h>

#include <array>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "base/ids.h"

namespace plimsoll::memory {

// Each read is a system call. What the process writes meanwhile may be read torn, from one page to the next and within.
class RemoteReader {
 public:
  // Some bytes.
  struct Range {
    Address at{};
    std::size_t size = 0;
  };

  explicit RemoteReader(pid_t process) : process_(process) {}

  template <typename Word>
  [[nodiscard]] bool load(Address at, Word& out) const {
    return read(at, &out, sizeof out);
  }
  [[nodiscard]] bool read(Address at, void* out, std::size_t size) const;
  // Reads the ranges one after another, in their order, into `out`, where they stand side by side. In few calls. False
  // if any byte is not readable.
  [[nodiscard]] bool read_all(std::span<const Range> ranges, std::byte* out) const;
  // Reads as many bytes of each address as fit to where it says, in few calls. How many could be read, counted from the
  // first, until one could not.
  struct Block {
    Address at{};
    std::span<std::byte> out;
  };
  [[nodiscard]] std::size_t read_blocks(std::span<const Block> blocks) const;

 private:
  pid_t process_;
};

// Reads through whole pages, each copied once when it is first needed, until forget(). Not more than kMostPages of
// them: however a process lies about itself, a look at it ends.
class PagedReader {
 public:
  static constexpr std::size_t kPageSize = 4096;  // or a part of one: pages may be larger
  static constexpr std::size_t kMostPages = 16384;

  explicit PagedReader(const RemoteReader& memory) : memory_(memory) {}

  template <typename Word>
  [[nodiscard]] bool load(Address at, Word& out) const {
    const std::size_t offset = raw(at) % kPageSize;
    if (offset > kPageSize - sizeof out) return read(at, &out, sizeof out);
    const std::byte* page = page_of(raw(at) / kPageSize);
    if (page == nullptr) return false;
    std::memcpy(&out, page + offset, sizeof out);
    return true;
  }
  [[nodiscard]] bool read(Address at, void* out, std::size_t size) const {
    auto* to = static_cast<std::byte*>(out);
    while (size > 0) {
      const std::size_t offset = raw(at) % kPageSize;
      const std::size_t here = size < kPageSize - offset ? size : kPageSize - offset;
      const std::byte* page = page_of(raw(at) / kPageSize);
      if (page == nullptr) return false;
      std::memcpy(to, page + offset, here);
      to += here;
      size -= here;
      at = offset_by(at, here);
    }
    return true;
  }
  // The next reads copy again. Keeps the room.
  void forget() {
    places_.clear();
    visited_.clear();
    recent_.fill({});
  }
  // Copies pages, as numbers of pages, in one call, which is faster and leaves little time between them. Those after
  // one that cannot be read are left for later.
  void copy_together(std::span<const std::uint64_t> numbers);
  // The pages that have been read since forget(), in the order of the first time.
  [[nodiscard]] std::span<const std::uint64_t> visited() const { return visited_; }
  // Bytes that were read otherwise, and are to be seen from now on.
  void replace(Address at, std::span<const std::byte> bytes);

 private:
  static constexpr std::uint64_t kNoPage = ~std::uint64_t{0};
  using Page = std::array<std::byte, kPageSize>;
  [[nodiscard]] const std::byte* page_of(std::uint64_t number) const {
    const Recent& recent = recent_[number % kRecent];
    return recent.number == number ? recent.page : find_page(number);
  }
  [[nodiscard]] const std::byte* find_page(std::uint64_t number) const;

  const RemoteReader& memory_;
  std::vector<RemoteReader::Block> blocks_;  // of copy_together; kept for its room
  // Where a page is in pages_, and whether it has been read.
  struct Place {
    std::uint32_t index = 0;
    bool is_visited = false;
  };
  mutable boost::unordered_flat_map<std::uint64_t, Place> places_;  // by number
  mutable std::vector<std::uint64_t> visited_;
  mutable std::vector<std::unique_ptr<Page>> pages_;
  static constexpr std::size_t kRecent = 16;
  // One that was read lately, found without a search: a walk goes to and fro between frames and their code.
  struct Recent {
    std::uint64_t number = kNoPage;
    const std::byte* page = nullptr;
  };
  mutable std::array<Recent, kRecent> recent_{};
};

}  // namespace plimsoll::memory
