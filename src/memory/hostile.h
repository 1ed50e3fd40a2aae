// memory/hostile.h: memory made of a fuzzer's bytes. Not part of the product.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/ids.h"

namespace plimsoll::memory {

// Words whose upper 16 bits are one of `marks` become `linked(mark, word)`: so a fuzzer finds pointers without knowing
// where they lead.
template <typename Linked>
void link_words(std::span<std::byte> bytes, std::span<const std::uint64_t> marks, Linked linked) {
  for (std::size_t i = 0; i + sizeof(std::uint64_t) <= bytes.size(); i += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, &bytes[i], sizeof word);
    const auto mark = std::find(marks.begin(), marks.end(), word >> 48U);
    if (mark == marks.end()) continue;
    word = linked(*mark, word);
    std::memcpy(&bytes[i], &word, sizeof word);
  }
}

// The bytes stand at small addresses, and most pointers lead somewhere, as all but the lowest 16 bits of an address
// are ignored. It counts what is asked of it, as work that has a limit has one in loads, however fast the machine is.
// From a load on, which its first bytes name, all bytes are others: a process goes on while it is looked at.
class HostileMemory {
 public:
  HostileMemory(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {
    if (size < kHead) return;
    std::uint16_t turn = 0;
    std::memcpy(&turn, data, sizeof turn);
    changes_at_ = turn == 0 ? UINT64_MAX : turn;
    flip_ = data[sizeof turn];
    data_ = data + kHead;
    size_ = size - kHead;
  }

  template <typename T>
  bool load(Address at, T& out) const {
    return read(at, &out, sizeof out);
  }
  bool read(Address at, void* out, std::size_t size) const {
    ++loads_;
    const std::uint64_t offset = raw(at) & 0xffffU;
    if (offset > size_ || size > size_ - offset) return false;
    std::memcpy(out, data_ + offset, size);
    if (loads_ >= changes_at_ && size > 0) static_cast<std::uint8_t*>(out)[loads_ % size] ^= flip_;
    return true;
  }
  // Whether so few loads were enough. Stops the fuzzer if not.
  void expect_at_most(std::uint64_t loads) const {
    if (loads_ > loads) __builtin_trap();
  }

 private:
  static constexpr std::size_t kHead = 3;
  const std::uint8_t* data_;
  std::size_t size_;
  std::uint64_t changes_at_ = UINT64_MAX;
  std::uint8_t flip_ = 0;
  mutable std::uint64_t loads_ = 0;
};

}  // namespace plimsoll::memory
