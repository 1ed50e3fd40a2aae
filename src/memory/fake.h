// memory/fake.h: a drawing of memory for tests. Not part of the product.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <unordered_map>

#include "base/ids.h"

namespace plimsoll::memory {

// A sparse memory: bytes exist where a test has put them, every other address is unreadable.
class FakeMemory {
 public:
  // Writes an integer (little endian, as on every machine we support).
  template <typename T>
  void put(Address at, T value) {
    char bytes[sizeof(T)];
    std::memcpy(bytes, &value, sizeof value);
    put_bytes(at, {bytes, sizeof bytes});
  }
  void put(Address at, Address value) { put(at, raw(value)); }
  void put_bytes(Address at, std::string_view text) {
    for (std::size_t i = 0; i < text.size(); ++i) {
      const std::uint64_t address = raw(at) + i;
      Page& page = pages_[address / kPageSize];
      page.bytes[address % kPageSize] = static_cast<unsigned char>(text[i]);
      page.exists.set(address % kPageSize);
    }
  }
  // Makes bytes unreadable again.
  void erase(Address at, std::size_t size) {
    for (std::uint64_t address = raw(at); address != raw(at) + size; ++address)
      if (const auto page = pages_.find(address / kPageSize); page != pages_.end())
        page->second.exists.reset(address % kPageSize);
  }

  template <typename T>
  [[nodiscard]] bool load(Address at, T& out) const {
    return read(at, &out, sizeof out);
  }
  [[nodiscard]] bool read(Address at, void* out, std::size_t size) const {
    auto* to = static_cast<unsigned char*>(out);
    auto page = pages_.end();
    for (std::size_t i = 0; i < size; ++i) {
      const std::uint64_t address = raw(at) + i;
      if (i == 0 || address % kPageSize == 0) page = pages_.find(address / kPageSize);
      if (page == pages_.end() || !page->second.exists[address % kPageSize]) return false;
      to[i] = page->second.bytes[address % kPageSize];
    }
    return true;
  }

 private:
  static constexpr std::uint64_t kPageSize = 4096;
  // Bytes, and which of them were put.
  struct Page {
    std::array<unsigned char, kPageSize> bytes{};
    std::bitset<kPageSize> exists;
  };
  std::unordered_map<std::uint64_t, Page> pages_;
};

}  // namespace plimsoll::memory
