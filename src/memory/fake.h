// memory/fake.h: a drawing of memory for tests. Not part of the product.
#pragma once

#include <cstring>
#include <map>
#include <string>

#include "base/ids.h"

namespace plimsoll::memory {

// A sparse memory: bytes exist where a test has put them, every other address is unreadable.
class FakeMemory {
 public:
  // Writes an integer (little endian, as on every machine we support).
  template <typename T>
  void put(Address at, T value) {
    unsigned char bytes[sizeof(T)];
    std::memcpy(bytes, &value, sizeof value);
    for (std::size_t i = 0; i < sizeof(T); ++i) bytes_[raw(at) + i] = bytes[i];
  }
  void put(Address at, Address value) { put(at, raw(value)); }
  void put_bytes(Address at, std::string_view text) {
    for (std::size_t i = 0; i < text.size(); ++i) bytes_[raw(at) + i] = static_cast<unsigned char>(text[i]);
  }

  template <typename T>
  [[nodiscard]] bool load(Address at, T& out) const {
    return read(at, &out, sizeof out);
  }
  [[nodiscard]] bool read(Address at, void* out, std::size_t size) const {
    auto* to = static_cast<unsigned char*>(out);
    for (std::size_t i = 0; i < size; ++i) {
      const auto found = bytes_.find(raw(at) + i);
      if (found == bytes_.end()) return false;
      to[i] = found->second;
    }
    return true;
  }

 private:
  std::map<std::uint64_t, unsigned char> bytes_;
};

}  // namespace plimsoll::memory
