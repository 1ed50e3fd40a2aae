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

std::uint32_t crc32_of(std::string_view a, std::string_view b) {
  uLong crc = ::crc32(0, nullptr, 0);
  for (const std::string_view part : {a, b})
    crc = ::crc32(crc, reinterpret_cast<const Bytef*>(part.data()), static_cast<uInt>(part.size()));
  return static_cast<std::uint32_t>(crc);
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
  const std::size_t bound = ZSTD_compressBound(raw.size());
  const std::unique_ptr<char[]> stored = std::make_unique_for_overwrite<char[]>(bound);
  const std::size_t size = ZSTD_compress(stored.get(), bound, raw.data(), raw.size(), level);
  const bool is_smaller = ZSTD_isError(size) == 0 && size < raw.size();
  const std::string_view payload = is_smaller ? std::string_view(stored.get(), size) : raw;
  std::string chunk;
  chunk.reserve(kChunkHeaderSize + payload.size());
  put_u32(chunk, is_smaller ? kStoredZstd : kStoredRaw);
  put_u32(chunk, static_cast<std::uint32_t>(raw.size()));
  put_u32(chunk, static_cast<std::uint32_t>(payload.size()));
  put_u32(chunk, crc32_of(chunk, payload));
  chunk += payload;
  return chunk;
}

bool next_chunk(std::string_view& bytes, std::uint64_t most, std::string& raw) {
  if (bytes.size() < kChunkHeaderSize) return false;
  const std::uint32_t codec = u32_at(bytes, 0);
  const std::uint32_t raw_size = u32_at(bytes, 4);
  const std::uint32_t stored_size = u32_at(bytes, 8);
  if (raw_size > most || stored_size > bytes.size() - kChunkHeaderSize) return false;
  const std::string_view stored = bytes.substr(kChunkHeaderSize, stored_size);
  if (crc32_of(bytes.substr(0, 12), stored) != u32_at(bytes, 12)) return false;
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
