// cpython/offset_reader.h: the numbers of a table of offsets that an interpreter publishes.
#pragma once

#include <cstdint>
#include <cstring>

namespace plimsoll::cpython {

// No structure of the interpreter that we look into is larger; a larger number in the table is damage.
inline constexpr std::uint64_t kLargestStructure = 1U << 20U;

// Reads numbers by place and checks each offset against the size of its structure; remembers the first failure.
class OffsetReader {
 public:
  explicit OffsetReader(const unsigned char* bytes) : bytes_(bytes) {}

  [[nodiscard]] std::uint64_t word(std::size_t place) const {
    std::uint64_t value = 0;
    std::memcpy(&value, bytes_ + place * sizeof value, sizeof value);
    return value;
  }
  // The offset at `place` of a field of `width` bytes in the structure whose size is at `size_place`.
  std::uint32_t field(const char* name, std::size_t size_place, std::size_t place, std::uint64_t width) {
    const std::uint64_t size = word(size_place);
    const std::uint64_t offset = word(place);
    if (size > kLargestStructure || offset > size || size - offset < width) return fail(name);
    return static_cast<std::uint32_t>(offset);
  }
  // The size of a structure, at `place`.
  std::uint32_t size(const char* name, std::size_t place) {
    return word(place) > kLargestStructure ? fail(name) : static_cast<std::uint32_t>(word(place));
  }
  // Notes that a number is impossible.
  void refuse(const char* name) {
    if (bad_field_ == nullptr) bad_field_ = name;
  }
  // The first number that was; null if none was.
  [[nodiscard]] const char* bad_field() const { return bad_field_; }

 private:
  std::uint32_t fail(const char* name) {
    refuse(name);
    return 0;
  }

  const unsigned char* bytes_;
  const char* bad_field_ = nullptr;
};

}  // namespace plimsoll::cpython
