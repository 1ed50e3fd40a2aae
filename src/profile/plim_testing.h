// profile/plim_testing.h: .plim files put together by hand, for tests and fuzzers. Not part of the product.
#pragma once

#include <zlib.h>

#include <string>
#include <string_view>

#include "base/chunk.h"
#include "base/varint.h"
#include "profile/plim_format.h"
#include "profile/plim_writer.h"

namespace plimsoll::profile {

// A chunk of version 2 that holds `raw` as it is, with a right checksum. By docs/format.md, not by the code under test.
inline std::string old_plim_chunk(std::string_view raw) {
  constexpr std::uint32_t kStoredRaw = 0;
  std::string chunk;
  put_u32(chunk, kStoredRaw);
  put_u32(chunk, static_cast<std::uint32_t>(raw.size()));
  put_u32(chunk, static_cast<std::uint32_t>(raw.size()));
  uLong crc = ::crc32(0, reinterpret_cast<const Bytef*>(chunk.data()), static_cast<uInt>(chunk.size()));
  crc = ::crc32(crc, reinterpret_cast<const Bytef*>(raw.data()), static_cast<uInt>(raw.size()));
  put_u32(chunk, static_cast<std::uint32_t>(crc));
  chunk.append(raw);
  return chunk;
}

// A file of version 2 with one such chunk.
inline std::string old_plim_file_with_chunk(std::string_view raw) {
  constexpr std::uint32_t kOldVersion = 2;
  std::string file(plim::kMagic);
  put_u32(file, kOldVersion);
  return file + old_plim_chunk(raw);
}

// A file with one chunk, of `raw` as it is and `packed`.
inline std::string plim_file_with_chunk(std::string_view raw, std::string_view packed = {}) {
  std::string head, rest;
  put_u32(head, static_cast<std::uint32_t>(raw.size()));
  put_varint(rest, packed.size());
  rest.append(raw).append(packed);
  uLong crc = ::crc32(0, reinterpret_cast<const Bytef*>(head.data()), static_cast<uInt>(head.size()));
  crc = ::crc32(crc, reinterpret_cast<const Bytef*>(rest.data()), static_cast<uInt>(rest.size()));
  put_u32(head, static_cast<std::uint32_t>(crc));
  return PlimEncoder::file_header() + head + rest;
}

}  // namespace plimsoll::profile
