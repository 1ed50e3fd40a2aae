// memory/image.h: a copy of a process's memory: what was copied out of it, and what can be read from files still.
#pragma once

#include <array>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace plimsoll::memory {

// Room for copies, of whole pages, which the system gives when they are first written. Movable, not copyable.
class Room {
 public:
  Room() = default;
  // An error if there is no address space for it.
  static Result<Room> make(std::size_t size);
  Room(Room&& other) noexcept;
  Room& operator=(Room&& other) noexcept;
  Room(const Room&) = delete;
  Room& operator=(const Room&) = delete;
  ~Room();

  // Has the pages ready, so that writing does not wait for them.
  void prepare(std::size_t size) const;
  [[nodiscard]] std::span<std::byte> bytes() const { return {static_cast<std::byte*>(start_), size_}; }

 private:
  Room(void* start, std::size_t size) : start_(start), size_(size) {}
  void* start_ = nullptr;
  std::size_t size_ = 0;
};

// A Reader of a copy. Pieces are added, then it is sealed, then read; for one thread. Nothing is written back.
class Image {
 public:
  // Copied bytes, as they stood at an address. They are not owned: see keep(). Pieces do not overlap; of two that do,
  // which a damaged file may have, each address is read from one of them.
  void add(Address start, std::span<const std::byte> bytes);
  // What can be read from a file, from an offset on: pages that the process had mapped and not written to. Read when
  // they are needed, kMostFilePages of them at most.
  void add_file(Address start, std::uint64_t size, std::shared_ptr<const UniqueFd> file, std::uint64_t offset);
  // What the process has never touched: zeros.
  void add_zeros(Address start, std::uint64_t size) { add_file(start, size, nullptr, 0); }
  // Owns room in which pieces lie.
  void keep(Room room) { rooms_.push_back(std::move(room)); }
  void seal();

  template <typename Word>
  [[nodiscard]] bool load(Address at, Word& out) const {
    if (const std::byte* found = find(raw(at), sizeof out); found != nullptr) {
      std::memcpy(&out, found, sizeof out);
      return true;
    }
    return read_across(at, &out, sizeof out);
  }
  [[nodiscard]] bool read(Address at, void* out, std::size_t size) const {
    if (const std::byte* found = find(raw(at), size); found != nullptr) {
      std::memcpy(out, found, size);
      return true;
    }
    return read_across(at, out, size);
  }
  // Whether bytes were copied; what only a file has does not count.
  [[nodiscard]] bool has_copy(Address at, std::size_t size) const { return find(raw(at), size) != nullptr; }
  // visit(address) for each multiple of `step` at which a byte was copied.
  template <typename Visit>
  void each_copied(std::uint64_t step, Visit visit) const {
    for (const Piece& piece : pieces_)
      for (std::uint64_t at = (piece.start + step - 1) / step * step; at - piece.start < piece.size; at += step)
        visit(Address{at});
  }
  // How many bytes were copied.
  [[nodiscard]] std::uint64_t copied_bytes() const { return copied_bytes_; }

 private:
  static constexpr std::uint64_t kPageSize = 4096;
  static constexpr std::size_t kMostFilePages = 65536;
  // Bytes that lie side by side.
  struct Piece {
    std::uint64_t start = 0, size = 0;
    const std::byte* bytes = nullptr;
  };
  // The same, in a file.
  struct FilePiece {
    std::uint64_t start = 0, size = 0;
    std::shared_ptr<const UniqueFd> file;
    std::uint64_t offset = 0;
  };
  using Page = std::array<std::byte, kPageSize>;

  // Where the bytes are if one piece has all of them; else null.
  [[nodiscard]] const std::byte* find(std::uint64_t at, std::uint64_t size) const {
    constexpr unsigned kNearBits = 20;  // a MiB is often of one piece
    const Piece*& recent = recent_[(at >> kNearBits) % recent_.size()];
    if (recent != nullptr)
      if (const std::byte* found = inside(*recent, at, size); found != nullptr) return found;
    const Piece* piece = piece_of(at);
    if (piece == nullptr) return nullptr;
    recent = piece;
    return inside(*piece, at, size);
  }
  static const std::byte* inside(const Piece& piece, std::uint64_t at, std::uint64_t size) {
    const std::uint64_t from = at - piece.start;
    return from < piece.size && piece.size - from >= size ? piece.bytes + from : nullptr;
  }
  [[nodiscard]] const Piece* piece_of(std::uint64_t at) const;
  [[nodiscard]] bool read_across(Address at, void* out, std::size_t size) const;
  // The page of a file at an address; null if there is none.
  [[nodiscard]] const Page* file_page(std::uint64_t at) const;

  std::vector<Piece> pieces_;  // sealed: by address, side by side or apart
  std::vector<FilePiece> files_;
  std::vector<Room> rooms_;
  std::uint64_t copied_bytes_ = 0;
  mutable std::array<const Piece*, 1024> recent_{};                                     // by address; null: not known
  mutable boost::unordered_flat_map<std::uint64_t, std::unique_ptr<Page>> file_pages_;  // by address
};

}  // namespace plimsoll::memory
