#include "base/chunk.h"

#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <memory>

namespace plimsoll {
namespace {

constexpr std::size_t kChunkHeaderSize = 16;
constexpr std::uint32_t kStoredRaw = 0;
constexpr std::uint32_t kStoredZstd = 1;

std::uint32_t crc32_of(std::string_view head, std::span<const std::string_view> stored) {
  uLong crc = ::crc32(0, nullptr, 0);
  const auto add = [&](std::string_view part) {  // (of no bytes at all, it would begin anew)
    if (!part.empty()) crc = ::crc32(crc, reinterpret_cast<const Bytef*>(part.data()), static_cast<uInt>(part.size()));
  };
  add(head);
  for (const std::string_view part : stored) add(part);
  return static_cast<std::uint32_t>(crc);
}

struct FreeContext {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
};

// Writes them compressed to `out`, which has room for as many bytes. Returns how many they are now; 0 if not fewer.
std::size_t compress(std::span<const std::string_view> pieces, std::size_t size, int level, char* out) {
  const std::unique_ptr<ZSTD_CCtx, FreeContext> context(ZSTD_createCCtx());
  if (!context || ZSTD_isError(ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, level)) != 0) return 0;
  if (pieces.size() == 1) {  // needs no buffers
    const std::size_t made = ZSTD_compress2(context.get(), out, size, pieces[0].data(), pieces[0].size());
    return ZSTD_isError(made) == 0 && made < size ? made : 0;
  }
  if (ZSTD_isError(ZSTD_CCtx_setPledgedSrcSize(context.get(), size)) != 0) return 0;
  ZSTD_outBuffer to{out, size, 0};
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const bool is_last = i + 1 == pieces.size();
    ZSTD_inBuffer from{pieces[i].data(), pieces[i].size(), 0};
    const std::size_t left = ZSTD_compressStream2(context.get(), &to, &from, is_last ? ZSTD_e_end : ZSTD_e_continue);
    const bool is_taken = ZSTD_isError(left) == 0 && from.pos == from.size && (!is_last || left == 0);
    if (!is_taken) return 0;  // there is no room for it
  }
  return to.pos < size ? to.pos : 0;
}

}  // namespace

void put_u16(std::string& out, std::uint16_t value) {
  out.push_back(static_cast<char>(value & 0xffU));
  out.push_back(static_cast<char>(value >> 8U));
}

void put_u32(std::string& out, std::uint32_t value) {
  for (unsigned shift = 0; shift < 32; shift += 8) out.push_back(static_cast<char>(value >> shift));
}

std::uint32_t u32_at(std::string_view bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (unsigned i = 0; i < 4; ++i) value |= std::uint32_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
  return value;
}

std::string make_chunk(std::string_view raw, int level) { return make_chunk(std::span(&raw, 1), level); }

std::string make_chunk(std::span<const std::string_view> pieces, int level) {
  std::size_t raw_size = 0;
  for (const std::string_view piece : pieces) raw_size += piece.size();
  // Not filled with zeros first: pages that are not written take no memory.
  const std::unique_ptr<char[]> room = std::make_unique_for_overwrite<char[]>(raw_size);
  const std::size_t compressed_size = compress(pieces, raw_size, level, room.get());
  const std::string_view compressed(room.get(), compressed_size);
  const std::span<const std::string_view> stored = compressed_size != 0 ? std::span(&compressed, 1) : pieces;
  const std::size_t stored_size = compressed_size != 0 ? compressed_size : raw_size;
  std::string chunk;
  chunk.reserve(kChunkHeaderSize + stored_size);
  put_u32(chunk, compressed_size != 0 ? kStoredZstd : kStoredRaw);
  put_u32(chunk, static_cast<std::uint32_t>(raw_size));
  put_u32(chunk, static_cast<std::uint32_t>(stored_size));
  put_u32(chunk, crc32_of(chunk, stored));
  for (const std::string_view piece : stored) chunk += piece;
  return chunk;
}

bool next_chunk(std::string_view& bytes, std::uint64_t most, std::string& raw) {
  if (bytes.size() < kChunkHeaderSize) return false;
  const std::uint32_t codec = u32_at(bytes, 0);
  const std::uint32_t raw_size = u32_at(bytes, 4);
  const std::uint32_t stored_size = u32_at(bytes, 8);
  if (raw_size > most || stored_size > bytes.size() - kChunkHeaderSize) return false;
  const std::string_view stored = bytes.substr(kChunkHeaderSize, stored_size);
  if (crc32_of(bytes.substr(0, 12), std::span(&stored, 1)) != u32_at(bytes, 12)) return false;
  bytes.remove_prefix(kChunkHeaderSize + stored_size);
  if (codec == kStoredRaw) {
    raw.assign(stored);
    return stored_size == raw_size;
  }
  raw.resize(raw_size);
  return codec == kStoredZstd && ZSTD_decompress(raw.data(), raw.size(), stored.data(), stored.size()) == raw_size;
}

std::uint64_t raw_bytes_of(std::string_view chunks, std::uint64_t most) {
  std::uint64_t bytes = 0;
  while (chunks.size() >= kChunkHeaderSize && bytes < most) {
    bytes += u32_at(chunks, 4);
    chunks.remove_prefix(std::min<std::size_t>(chunks.size(), kChunkHeaderSize + u32_at(chunks, 8)));
  }
  return std::min(bytes, most);
}

}  // namespace plimsoll
