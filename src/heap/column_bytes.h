// heap/column_bytes.h: the bytes of a snapshot's columns, of which a piece at a time stays in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

namespace plimsoll::heap {

// Some bytes of a column, those that follow what was there before.
struct ColumnPiece {
  std::unique_ptr<char[]> bytes;
  std::size_t room = 0, size = 0;

  [[nodiscard]] std::string_view view() const { return {bytes.get(), size}; }
};

// Takes columns as they grow.
class ColumnSink {
 public:
  virtual ~ColumnSink() = default;
  // Takes what is in the piece, and leaves an empty one in its place, which may be another.
  virtual void take(std::size_t column, ColumnPiece& piece) = 0;
};

// Bytes that grow, quicker at small numbers than std::string: room for one is made before it is written. A piece that
// is full goes to the sink.
class ColumnBytes {
 public:
  [[gnu::always_inline]] void number(std::uint64_t value) {
    if (value < 0x80U)
      byte(static_cast<std::uint8_t>(value));
    else
      long_number(value);
  }
  [[gnu::always_inline]] void byte(std::uint8_t value) {
    if (piece_.size == piece_.room) [[unlikely]]
      make_room(1);
    piece_.bytes[piece_.size++] = static_cast<char>(value);
  }
  // 8 bytes, little endian.
  void word(std::uint64_t value) {
    char* at = room(sizeof value);
    for (unsigned i = 0; i < sizeof value; ++i) at[i] = static_cast<char>(value >> (8 * i));
    piece_.size += sizeof value;
  }
  void text(std::string_view text) {
    number(text.size());
    text.copy(room(text.size()), text.size());
    piece_.size += text.size();
  }

  // How many bytes it has, with those that the sink has.
  [[nodiscard]] std::size_t size() const { return gone_ + piece_.size; }
  [[nodiscard]] bool empty() const { return size() == 0; }
  // Where it goes, and as which column. Before the first byte.
  void flow_to(ColumnSink& sink, std::size_t column) {
    sink_ = &sink;
    column_ = column;
  }
  // The sink gets the rest.
  void flush();
  // It has no bytes again; what the sink has is not its own any more.
  void begin_anew() { gone_ = 0; }

 private:
  static constexpr std::size_t kLongestVarint = 10;
  char* room(std::size_t more) {
    if (piece_.room - piece_.size < more) make_room(more);
    return piece_.bytes.get() + piece_.size;
  }
  void make_room(std::size_t more);
  void long_number(std::uint64_t value);

  ColumnSink* sink_ = nullptr;
  std::size_t column_ = 0;
  ColumnPiece piece_;
  std::size_t gone_ = 0;
};

}  // namespace plimsoll::heap
