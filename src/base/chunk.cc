#include "base/chunk.h"

#include <zlib.h>
#include <zstd.h>

#include <algorithm>

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

std::string head_of(std::uint32_t codec, std::size_t raw_size, std::span<const std::string_view> stored) {
  std::size_t stored_size = 0;
  for (const std::string_view part : stored) stored_size += part.size();
  std::string head;
  put_u32(head, codec);
  put_u32(head, static_cast<std::uint32_t>(raw_size));
  put_u32(head, static_cast<std::uint32_t>(stored_size));
  put_u32(head, crc32_of(head, stored));
  return head;
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

std::string make_chunk(std::string_view raw, int level) {
  const std::string frame = FrameCompressor(level, 0).frame(raw);
  const bool is_less = !frame.empty() && frame.size() < raw.size();
  const std::string_view stored = is_less ? std::string_view(frame) : raw;
  std::string chunk = head_of(is_less ? kStoredZstd : kStoredRaw, raw.size(), std::span(&stored, 1));
  chunk += stored;
  return chunk;
}

FrameCompressor::FrameCompressor(int level, int shortest_match) : context_(ZSTD_createCCtx()) {
  if (!context_) return;
  ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_compressionLevel, level);
  ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_minMatch, shortest_match);
}

void FrameCompressor::FreeContext::operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }

std::string FrameCompressor::frame(std::string_view piece) {
  const std::size_t most = ZSTD_compressBound(piece.size());
  if (room_size_ < most) {
    // Not filled with zeros first: pages that are not written take no memory.
    room_ = std::make_unique_for_overwrite<char[]>(most);
    room_size_ = most;
  }
  if (!context_) return {};
  const std::size_t made = ZSTD_compress2(context_.get(), room_.get(), most, piece.data(), piece.size());
  return ZSTD_isError(made) == 0 ? std::string(room_.get(), made) : std::string{};
}

std::string chunk_head(std::uint32_t raw_size, std::span<const std::string_view> frames) {
  return head_of(kStoredZstd, raw_size, frames);
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
