// profile/plim_testing.h: .plim files put together by hand, for tests and fuzzers. Not part of the product.
#pragma once

#include <zlib.h>

#include <string>
#include <string_view>

#include "profile/plim_format.h"
#include "profile/plim_writer.h"

namespace plimsoll::profile {

inline void append_u32(std::string& out, std::uint32_t value) {
  for (unsigned shift = 0; shift < 32; shift += 8) out.push_back(static_cast<char>(value >> shift));
}

// A chunk that holds `raw` as it is, with a right checksum.
inline std::string plim_chunk(std::string_view raw) {
  std::string chunk;
  constexpr std::uint32_t kStoredRaw = 0;  // by docs/format.md, not by the code under test
  append_u32(chunk, kStoredRaw);
  append_u32(chunk, static_cast<std::uint32_t>(raw.size()));
  append_u32(chunk, static_cast<std::uint32_t>(raw.size()));
  uLong crc = ::crc32(0, reinterpret_cast<const Bytef*>(chunk.data()), static_cast<uInt>(chunk.size()));
  crc = ::crc32(crc, reinterpret_cast<const Bytef*>(raw.data()), static_cast<uInt>(raw.size()));
  append_u32(chunk, static_cast<std::uint32_t>(crc));
  chunk.append(raw);
  return chunk;
}

// A file of one such chunk.
inline std::string plim_file_with_chunk(std::string_view raw) { return PlimEncoder::file_header() + plim_chunk(raw); }

}  // namespace plimsoll::profile
