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

// Reads through pages, each copied once when it is first needed, until forget(). Not more than kMostPages of them:
// however a process lies about itself, a look at it ends. Used by one thread.
class PagedReader {
 public:
  static constexpr std::size_t kPageSize = 4096;  // or a part of one: pages may be larger
  static constexpr std::size_t kMostPages = 16384;

  // Some bytes of a page, which has a number: those from `begin` on, to before `end`.
  struct Part {
    std::uint64_t page = 0;
    std::uint32_t begin = 0, end = 0;
    bool operator==(const Part&) const = default;
  };

  explicit PagedReader(const RemoteReader& memory) : memory_(memory) {}

  template <typename Word>
  [[nodiscard]] bool load(Address at, Word& out) const {
    const std::byte* bytes = window(at, sizeof out);
    if (bytes == nullptr) [[unlikely]]
      return read(at, &out, sizeof out);
    std::memcpy(&out, bytes, sizeof out);
    return true;
  }
  [[nodiscard]] bool read(Address at, void* out, std::size_t size) const;
  // Where the copy of so many bytes stands, until forget(); null if they are not on one page, or cannot be read.
  [[nodiscard, gnu::always_inline]] inline const std::byte* window(Address at, std::size_t size) const {
    const std::uint64_t number = raw(at) / kPageSize;
    const std::size_t begin = raw(at) % kPageSize, end = begin + size;
    if (end > kPageSize) [[unlikely]]
      return nullptr;
    const Copy* copy = recent_[number % kRecent];
    if (copy == nullptr || copy->number != number || begin < copy->begin || end > copy->end) [[unlikely]] {
      copy = copy_with(number, begin, end);
      if (copy == nullptr) return nullptr;
    }
    return copy->bytes.data() + begin;
  }
  // The next reads copy again. Keeps the room.
  void forget();
  // Copies parts of different pages in one call, which is faster and leaves little time between them. Those after one
  // that cannot be read are left for later. Where more of a page is needed, all of it is copied then.
  void copy_together(std::span<const Part> parts);
  // How many pages have been read since forget(), and what of them, in the order of the first time; the first `most`.
  // Of pages that were copied as a whole, in steps; of others at least the part that was asked for.
  [[nodiscard]] std::size_t visited_count() const { return visited_.size(); }
  void visited(std::vector<Part>& out, std::size_t most) const;
  static constexpr std::size_t kStep = 64;
  // Bytes that were read otherwise, and are to be seen from now on.
  void replace(Address at, std::span<const std::byte> bytes);

 private:
  // A page as far as it is here.
  struct Copy {
    std::uint64_t number = 0;
    std::uint32_t begin = 0, end = 0;                // what was read, in steps; `end` is 0 until something is
    std::uint32_t copied_begin = 0, copied_end = 0;  // what is here
    std::array<std::byte, kPageSize> bytes;
  };
  // Copies what is not here of a page. What is stays as it is, as nothing that was read changes until forget().
  [[nodiscard]] bool complete(Copy& copy) const;
  // The copy of a page that has these bytes; null if they cannot be read.
  [[nodiscard]] const Copy* copy_with(std::uint64_t number, std::size_t begin, std::size_t end) const;
  [[nodiscard]] Copy* find(std::uint64_t number) const;
  // Room for a page that is not here yet; null if there are too many.
  [[nodiscard]] Copy* add(std::uint64_t number) const;
  // The last one that was added is not.
  void remove_last() const;

  const RemoteReader& memory_;
  std::vector<RemoteReader::Block> blocks_;  // of copy_together; kept for its room
  mutable std::vector<std::unique_ptr<Copy>> copies_;
  mutable std::size_t count_ = 0;  // of these that are in use
  static constexpr std::size_t kRecent = 16;
  // By number: one of those that share a place is found without a search, as a walk goes to and fro between frames and
  // their code. The others are in `rest_`, which is empty for most walks.
  mutable std::array<Copy*, kRecent> recent_{};
  mutable boost::unordered_flat_map<std::uint64_t, Copy*> rest_;
  mutable std::vector<Copy*> visited_;
};

}  // namespace plimsoll::memory
