// native/byte_cursor.h: reads what DWARF is made of from bytes that may be anything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace plimsoll::native {

// A place in a run of bytes. Reading beyond the end yields zeros and makes it bad for good: check is_good() at the end.
class ByteCursor {
 public:
  explicit ByteCursor(std::span<const std::byte> bytes, std::size_t at = 0) : bytes_(bytes), at_(at) {
    if (at > bytes.size()) fail();
  }

  template <typename Integer>
  Integer fixed() {
    Integer value{};
    if (bytes_.size() - at_ < sizeof value) {
      fail();
      return value;
    }
    std::memcpy(&value, bytes_.data() + at_, sizeof value);
    at_ += sizeof value;
    return value;
  }
  std::uint8_t byte() { return fixed<std::uint8_t>(); }
  // LEB128. Bits beyond 64 are lost.
  std::uint64_t uleb() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; is_good_; shift += 7) {
      const std::uint8_t next = byte();
      if (shift < 64) value |= std::uint64_t{next & 0x7fU} << shift;
      if ((next & 0x80U) == 0) break;
    }
    return value;
  }
  std::int64_t sleb() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; is_good_;) {
      const std::uint8_t next = byte();
      if (shift < 64) value |= std::uint64_t{next & 0x7fU} << shift;
      shift += 7;
      if ((next & 0x80U) != 0) continue;
      if ((next & 0x40U) != 0 && shift < 64) value |= ~std::uint64_t{0} << shift;
      break;
    }
    return static_cast<std::int64_t>(value);
  }
  std::span<const std::byte> take(std::uint64_t size) {
    if (bytes_.size() - at_ < size) {
      fail();
      return {};
    }
    const auto taken = bytes_.subspan(at_, static_cast<std::size_t>(size));
    at_ += taken.size();
    return taken;
  }

  [[nodiscard]] bool is_good() const { return is_good_; }
  [[nodiscard]] bool at_end() const { return at_ == bytes_.size(); }
  [[nodiscard]] std::size_t position() const { return at_; }
  void fail() {
    is_good_ = false;
    at_ = bytes_.size();
  }

 private:
  std::span<const std::byte> bytes_;
  std::size_t at_;
  bool is_good_ = true;
};

}  // namespace plimsoll::native
