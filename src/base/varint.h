// base/varint.h: LEB128 integers, the only number encoding inside a .plim section.
//
// Unsigned: 7 bits a byte, least significant group first, high bit set on all but the last byte; at most 10 bytes.
// Signed: zigzag (0, -1, 1, -2, ... -> 0, 1, 2, 3, ...) before the unsigned encoding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace plimsoll {

constexpr std::uint64_t zigzag(std::int64_t value) {
  return (static_cast<std::uint64_t>(value) << 1U) ^ static_cast<std::uint64_t>(value >> 63);
}
constexpr std::int64_t unzigzag(std::uint64_t value) {
  return static_cast<std::int64_t>(value >> 1U) ^ -static_cast<std::int64_t>(value & 1U);
}

inline void put_varint(std::string& out, std::uint64_t value) {
  while (value >= 0x80U) {
    out.push_back(static_cast<char>(value | 0x80U));
    value >>= 7U;
  }
  out.push_back(static_cast<char>(value));
}
inline void put_signed(std::string& out, std::int64_t value) { put_varint(out, zigzag(value)); }
// A byte string: its length as a varint, then its bytes.
inline void put_bytes(std::string& out, std::string_view bytes) {
  put_varint(out, bytes.size());
  out.append(bytes);
}

// Reads what the put_ functions wrote, from bytes that may be hostile. After a read past the end or an overlong
// varint, failed() is true for good and every further read returns 0 or an empty view.
class VarintCursor {
 public:
  explicit VarintCursor(std::string_view bytes) : bytes_(bytes) {}

  [[nodiscard]] bool failed() const { return failed_; }
  [[nodiscard]] bool at_end() const { return position_ == bytes_.size(); }
  [[nodiscard]] std::size_t remaining() const { return bytes_.size() - position_; }

  std::uint64_t varint() {
    // Nearly all numbers of a profile are one byte.
    if (position_ < bytes_.size() && static_cast<unsigned char>(bytes_[position_]) < 0x80U)
      return static_cast<unsigned char>(bytes_[position_++]);
    const auto [value, size] = long_varint(bytes_.substr(position_));
    if (size == 0) return fail();
    position_ += size;
    return value;
  }
  std::int64_t signed_varint() { return unzigzag(varint()); }

  // A varint that must not exceed `limit`; used for counts and indices before anything is allocated.
  std::uint64_t bounded(std::uint64_t limit) {
    const std::uint64_t value = varint();
    return value <= limit ? value : fail();
  }
  // A count of items that take at least one byte each: never more than the bytes that remain.
  std::size_t count() {
    const std::uint64_t value = varint();
    return static_cast<std::size_t>(value <= remaining() ? value : fail());
  }

  std::string_view bytes() { return take(count()); }
  // So many bytes, or fewer if there are no more: then failed() is true.
  std::string_view take(std::size_t size) {
    if (size > remaining()) {
      fail();
      return {};
    }
    const std::string_view view = bytes_.substr(position_, size);
    position_ += size;
    return view;
  }
  // The bytes up to the next one of zero, which is taken, too; if there is none, failed() is true.
  std::string_view zero_terminated() {
    const std::size_t end = bytes_.find('\0', position_);
    if (end == std::string_view::npos) {
      fail();
      return {};
    }
    const std::string_view text = bytes_.substr(position_, end - position_);
    position_ = end + 1;
    return text;
  }

 private:
  // A number and the bytes that it takes; 0 if there is none. By value: whose cursor is a local variable keeps it in
  // registers, as no address of it goes anywhere.
  struct Long {
    std::uint64_t value;
    std::size_t size;
  };
  static Long long_varint(std::string_view bytes) {
    Long read{0, 0};
    for (unsigned shift = 0; shift < 70 && read.size < bytes.size(); shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes[read.size++]);
      if (shift == 63 && (byte & 0x7eU) != 0) break;
      read.value |= static_cast<std::uint64_t>(byte & 0x7fU) << shift;
      if ((byte & 0x80U) == 0) return read;
    }
    return {0, 0};
  }
  std::uint64_t fail() {
    failed_ = true;
    position_ = bytes_.size();
    return 0;
  }

  std::string_view bytes_;
  std::size_t position_ = 0;
  bool failed_ = false;
};

}  // namespace plimsoll
