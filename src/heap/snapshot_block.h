// heap/snapshot_block.h: rows of a snapshot that go to the file together.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "heap/graph.h"
#include "heap/snapshot_format.h"

namespace plimsoll::heap {

// Bytes that grow, quicker at small numbers than std::string: room for one is made before it is written.
class ColumnBytes {
 public:
  void number(std::uint64_t value) {
    char* at = room(kLongestVarint);
    while (value >= 0x80U) {
      *at++ = static_cast<char>(value | 0x80U);
      value >>= 7U;
    }
    *at++ = static_cast<char>(value);
    size_ = static_cast<std::size_t>(at - bytes_.data());
  }
  void byte(std::uint8_t value) {
    *room(1) = static_cast<char>(value);
    ++size_;
  }
  // 8 bytes, little endian.
  void word(std::uint64_t value) {
    char* at = room(sizeof value);
    for (unsigned i = 0; i < sizeof value; ++i) at[i] = static_cast<char>(value >> (8 * i));
    size_ += sizeof value;
  }
  void text(std::string_view text) {
    number(text.size());
    text.copy(room(text.size()), text.size());
    size_ += text.size();
  }
  [[nodiscard]] std::string_view view() const { return {bytes_.data(), size_}; }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  void clear() { size_ = 0; }

 private:
  static constexpr std::size_t kLongestVarint = 10;
  char* room(std::size_t more) {
    if (bytes_.size() - size_ < more) bytes_.resize(2 * bytes_.size() + more + 4096);
    return bytes_.data() + size_;
  }
  std::vector<char> bytes_;
  std::size_t size_ = 0;
};

void put_section(std::string& out, file::Section kind, std::string_view payload);

// What SnapshotWriter collects before it goes to the file: rows of objects or of other nodes, in columns, and the types
// and names that are new with them.
struct SnapshotBlock {
  // In the order of the file.
  enum Column { kTypes, kSizes, kRefcounts, kAddresses, kDegrees, kKinds, kTargets, kNames, kTexts, kColumnCount };

  std::string new_types, new_names, buffers;
  std::array<ColumnBytes, kColumnCount> columns;
  ColumnBytes generations, hashed, hashes, allocated_rows, allocated_by;
  bool are_objects = true;
  bool has_generations = false;  // a row has one
  Node first_row = 0;
  std::size_t rows = 0;

  // The sections of the file that it is; empty if there is nothing in it.
  [[nodiscard]] std::string sections() const;
  // Keeps the memory.
  void clear();
};

}  // namespace plimsoll::heap
