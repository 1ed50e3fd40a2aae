#include "memory/image.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

namespace plimsoll::memory {

Result<Room> Room::make(std::size_t size) {
  if (size == 0) return Room{};
  void* start = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (start == MAP_FAILED) return system_error("no memory for a copy of " + std::to_string(size) + " bytes", errno);
  ::madvise(start, size, MADV_HUGEPAGE);  // fewer faults; where it cannot be, nothing is lost
  ::madvise(start, size, MADV_DONTDUMP);  // what is not ours does not belong into a core file of ours
  return Room(start, size);
}

Room::Room(Room&& other) noexcept
    : start_(std::exchange(other.start_, nullptr)), size_(std::exchange(other.size_, 0)) {}

Room& Room::operator=(Room&& other) noexcept {
  std::swap(start_, other.start_);
  std::swap(size_, other.size_);
  return *this;
}

Room::~Room() {
  if (start_ != nullptr) ::munmap(start_, size_);
}

void Room::prepare(std::size_t size) const {
#ifdef MADV_POPULATE_WRITE
  if (start_ != nullptr) ::madvise(start_, std::min(size, size_), MADV_POPULATE_WRITE);
#endif
}

void Image::add(Address start, std::span<const std::byte> bytes) {
  // An address space ends somewhere: no piece goes round.
  const std::uint64_t size = std::min<std::uint64_t>(bytes.size(), ~raw(start));
  if (size == 0) return;
  pieces_.push_back({raw(start), size, bytes.data()});
}

void Image::add_file(Address start, std::uint64_t size, std::shared_ptr<const UniqueFd> file, std::uint64_t offset) {
  files_.push_back({raw(start), std::min(size, ~raw(start)), std::move(file), offset});
}

void Image::seal() {
  const auto before = [](const auto& a, const auto& b) { return a.start < b.start; };
  std::stable_sort(pieces_.begin(), pieces_.end(), before);
  std::stable_sort(files_.begin(), files_.end(), before);
  std::vector<Piece> apart;
  for (Piece piece : pieces_) {
    if (!apart.empty()) {
      const std::uint64_t end = apart.back().start + apart.back().size;
      const std::uint64_t covered = end > piece.start ? std::min(end - piece.start, piece.size) : 0;
      piece.start += covered;
      piece.size -= covered;
      piece.bytes += covered;
      const bool follows = end == piece.start && apart.back().bytes + apart.back().size == piece.bytes;
      if (follows) apart.back().size += piece.size;
      if (follows) continue;
    }
    if (piece.size > 0) apart.push_back(piece);
  }
  pieces_ = std::move(apart);
  copied_bytes_ = 0;
  for (const Piece& piece : pieces_) copied_bytes_ += piece.size;
  recent_.fill(nullptr);
}

const Image::Piece* Image::piece_of(std::uint64_t at) const {
  const auto after = std::upper_bound(pieces_.begin(), pieces_.end(), at,
                                      [](std::uint64_t address, const Piece& piece) { return address < piece.start; });
  if (after == pieces_.begin()) return nullptr;
  const Piece& piece = *std::prev(after);
  return at - piece.start < piece.size ? &piece : nullptr;
}

bool Image::read_across(Address at, void* out, std::size_t size) const {
  auto* to = static_cast<std::byte*>(out);
  std::uint64_t from = raw(at);
  while (size > 0) {
    std::uint64_t here = 0;
    if (const Piece* piece = piece_of(from); piece != nullptr) {
      here = std::min<std::uint64_t>(size, piece->size - (from - piece->start));
      std::memcpy(to, piece->bytes + (from - piece->start), here);
    } else {
      const Page* page = file_page(from);
      if (page == nullptr) return false;
      // Up to the end of the page, or to a copied byte, which is newer than the file.
      const auto next = std::upper_bound(pieces_.begin(), pieces_.end(), from,
                                         [](std::uint64_t address, const Piece& p) { return address < p.start; });
      here = std::min<std::uint64_t>(size, kPageSize - from % kPageSize);
      if (next != pieces_.end()) here = std::min(here, next->start - from);
      std::memcpy(to, page->data() + from % kPageSize, here);
    }
    to += here;
    from += here;
    size -= here;
  }
  return true;
}

const Image::Page* Image::file_page(std::uint64_t at) const {
  const std::uint64_t start = at / kPageSize * kPageSize;
  if (const auto known = file_pages_.find(start); known != file_pages_.end()) return known->second.get();
  const auto after = std::upper_bound(files_.begin(), files_.end(), at,
                                      [](std::uint64_t address, const FilePiece& p) { return address < p.start; });
  if (after == files_.begin() || file_pages_.size() >= kMostFilePages) return nullptr;
  const FilePiece& piece = *std::prev(after);
  if (at - piece.start >= piece.size || start < piece.start) return nullptr;
  static constexpr Page kZeros{};
  if (!piece.file) return &kZeros;
  auto page = std::make_unique<Page>();
  const auto offset = static_cast<off_t>(piece.offset + (start - piece.start));
  const ssize_t got = ::pread(piece.file->get(), page->data(), kPageSize, offset);
  if (got <= 0) page.reset();  // remembered, too: a file that has been cut is not asked again
  return file_pages_.emplace(start, std::move(page)).first->second.get();
}

}  // namespace plimsoll::memory
