#include "base/chunk_stream.h"

#include <zlib.h>

#include <algorithm>

#include "base/chunk.h"
#include "base/varint.h"

namespace plimsoll {
namespace {

constexpr std::size_t kHeaderSize = 8;
constexpr std::uint32_t kSizeBits = 30;
constexpr std::uint32_t kSizeMask = (std::uint32_t{1} << kSizeBits) - 1;
constexpr int kWindowLog = 18;         // 256 KiB of what came before
constexpr int kTableLog = 15;          // of the compressor's two tables: a quarter of a MB, for 0.6 % of the file
constexpr int kLargestWindowLog = 23;  // that a reader makes room for
enum Storage : std::uint32_t { kRaw = 0, kFrame = 1, kNextBlocks = 2 };

std::uint32_t crc32_of(std::string_view head, std::string_view rest) {
  const uLong crc = ::crc32(0, reinterpret_cast<const Bytef*>(head.data()), static_cast<uInt>(head.size()));
  return static_cast<std::uint32_t>(
      ::crc32(crc, reinterpret_cast<const Bytef*>(rest.data()), static_cast<uInt>(rest.size())));
}

bool is_error(std::size_t result) { return ZSTD_isError(result) != 0; }

std::string with_header(Storage storage, std::string_view stored, std::string_view packed) {
  std::string head, rest;
  put_u32(head, static_cast<std::uint32_t>(stored.size()) | (std::uint32_t{storage} << kSizeBits));
  put_bytes(rest, packed);  // its size comes first, its bytes last
  rest.insert(rest.size() - packed.size(), stored);
  put_u32(head, crc32_of(head, rest));
  return head + rest;
}

}  // namespace

std::string ChunkStreamWriter::add(std::string_view raw, std::string_view packed) {
  const Storage storage = context_ ? kNextBlocks : kFrame;
  std::string stored;
  if ((context_ || begin()) && compress(raw, stored)) return with_header(storage, stored, packed);
  context_.reset();  // there was no memory for it
  return with_header(kRaw, raw, packed);
}

bool ChunkStreamWriter::begin() {
  room_.resize(ZSTD_CStreamOutSize());
  context_.reset(ZSTD_createCCtx());
  return context_ && !is_error(ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_compressionLevel, level_)) &&
         !is_error(ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_windowLog, kWindowLog)) &&
         !is_error(ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_hashLog, kTableLog)) &&
         !is_error(ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_chainLog, kTableLog));
}

bool ChunkStreamWriter::compress(std::string_view raw, std::string& stored) {
  ZSTD_inBuffer from{raw.data(), raw.size(), 0};
  // (By the piece: room for as much as it might become at worst would be touched in vain.)
  for (std::size_t left = 1; left != 0;) {
    ZSTD_outBuffer to{room_.data(), room_.size(), 0};
    left = ZSTD_compressStream2(context_.get(), &to, &from, ZSTD_e_flush);
    if (is_error(left)) return false;
    stored.append(room_.data(), to.pos);
  }
  // All of it has left the compressor then, and the next call goes on with what it has seen.
  return from.pos == from.size;
}

bool ChunkStreamReader::next(std::string_view& bytes, std::uint64_t most, std::string& raw, std::string_view& packed) {
  if (bytes.size() < kHeaderSize) return false;
  VarintCursor rest(bytes.substr(kHeaderSize));
  const std::uint64_t packed_size = rest.varint();
  const std::string_view stored = rest.take(u32_at(bytes, 0) & kSizeMask);
  if (packed_size > rest.remaining()) return false;
  packed = rest.take(packed_size);
  if (rest.failed()) return false;
  const std::size_t size = bytes.size() - rest.remaining();
  if (crc32_of(bytes.substr(0, 4), bytes.substr(kHeaderSize, size - kHeaderSize)) != u32_at(bytes, 4)) return false;
  const std::uint32_t storage = u32_at(bytes, 0) >> kSizeBits;
  bytes.remove_prefix(size);
  switch (storage) {
    case kRaw: raw.assign(stored.substr(0, most)); return stored.size() <= most;
    case kFrame: return begin() && unpack(stored, most, raw);
    case kNextBlocks: return context_ && unpack(stored, most, raw);
    default: return false;
  }
}

bool ChunkStreamReader::begin() {
  context_.reset(ZSTD_createDCtx());
  return context_ && !is_error(ZSTD_DCtx_setParameter(context_.get(), ZSTD_d_windowLogMax, kLargestWindowLog));
}

bool ChunkStreamReader::unpack(std::string_view stored, std::uint64_t most, std::string& raw) {
  constexpr std::size_t kFirstRoom = 4096;
  ZSTD_inBuffer from{stored.data(), stored.size(), 0};
  std::size_t size = 0;
  raw.resize(std::max(raw.size(), kFirstRoom));
  while (true) {
    ZSTD_outBuffer to{raw.data(), raw.size(), size};
    if (is_error(ZSTD_decompressStream(context_.get(), &to, &from)) || to.pos > most) return false;
    size = to.pos;
    if (size == raw.size()) {
      raw.resize(raw.size() * 2);  // there may be more that waits for room
    } else if (from.pos == from.size) {
      raw.resize(size);
      return true;
    }
  }
}

}  // namespace plimsoll
