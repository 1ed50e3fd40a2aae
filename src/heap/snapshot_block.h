// heap/snapshot_block.h: rows of a snapshot that go to the file together.
#pragma once

#include <array>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <initializer_list>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "heap/graph.h"
#include "heap/snapshot_format.h"

namespace plimsoll::heap {

// Bytes that grow, quicker at small numbers than std::string: room for one is made before it is written.
class ColumnBytes {
 public:
  ColumnBytes() = default;
  ColumnBytes(ColumnBytes&& other) noexcept { swap(other); }
  ColumnBytes& operator=(ColumnBytes&& other) noexcept {
    swap(other);
    return *this;
  }
  ~ColumnBytes() = default;

  void number(std::uint64_t value) {
    char* at = room(kLongestVarint);
    while (value >= 0x80U) {
      *at++ = static_cast<char>(value | 0x80U);
      value >>= 7U;
    }
    *at++ = static_cast<char>(value);
    size_ = static_cast<std::size_t>(at - bytes_.get());
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
  [[nodiscard]] std::string_view view() const { return {bytes_.get(), size_}; }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  void clear() { size_ = 0; }

 private:
  static constexpr std::size_t kLongestVarint = 10;
  void swap(ColumnBytes& other) noexcept {
    std::swap(bytes_, other.bytes_);
    std::swap(capacity_, other.capacity_);
    std::swap(size_, other.size_);
  }
  // What realloc gave is given back.
  struct Free {
    void operator()(char* bytes) const { std::free(bytes); }
  };
  char* room(std::size_t more) {
    if (capacity_ - size_ < more) grow(more);
    return bytes_.get() + size_;
  }
  // By realloc, which moves the pages of large ones, and touches none that is not written yet.
  void grow(std::size_t more) {
    const std::size_t capacity = 2 * capacity_ + more + 4096;
    auto* bytes = static_cast<char*>(std::realloc(bytes_.get(), capacity));
    if (bytes == nullptr) throw std::bad_alloc();
    static_cast<void>(bytes_.release());
    bytes_.reset(bytes);
    capacity_ = capacity;
  }
  std::unique_ptr<char, Free> bytes_;
  std::size_t capacity_ = 0, size_ = 0;
};

void put_section(std::string& out, file::Section kind, std::string_view payload);

// Bytes of sections, most of which stay where they are.
class SectionPieces {
 public:
  // A section of some bytes.
  void add(file::Section kind, std::string_view payload);
  // A section of a few numbers, and columns with their lengths.
  void add(file::Section kind, std::initializer_list<std::uint64_t> numbers, std::span<const std::string_view> columns);
  [[nodiscard]] std::span<const std::string_view> all() const { return pieces_; }

 private:
  void put_head(std::string bytes) { pieces_.emplace_back(heads_.emplace_back(std::move(bytes))); }
  std::deque<std::string> heads_;  // which stay where they are, too
  std::vector<std::string_view> pieces_;
};

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

  // The sections of the file that it is, for as long as it is not changed; none if there is nothing in it.
  [[nodiscard]] SectionPieces sections() const;
  // Keeps the memory.
  void clear();
};

}  // namespace plimsoll::heap
