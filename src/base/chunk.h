// base/chunk.h: how our files hold their bytes: in chunks, each whole or not there.
//
// Chunk header: u32 codec, u32 raw size, u32 stored size, u32 CRC-32 of the first 12 bytes and the stored bytes; then
// the stored bytes. Numbers are little endian. docs/format.md and docs/heap-format.md are the specifications.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace plimsoll {

// The header and bytes of a chunk, compressed at zstd's `level` if that makes them fewer.
std::string make_chunk(std::string_view raw, int level);
// The same of raw bytes that are in pieces, at most 2^32 - 1 in all.
std::string make_chunk(std::span<const std::string_view> pieces, int level);
// The raw bytes of the chunk at the front of `bytes`, which is moved behind it. False at the end, at a cut and at
// damage, and if the chunk has more than `most` raw bytes: reading stops there and keeps what came before.
bool next_chunk(std::string_view& bytes, std::uint64_t most, std::string& raw);
// How many raw bytes the chunks say that they have, `most` at most. Nothing is unpacked or checked: they may be others.
std::uint64_t raw_bytes_of(std::string_view chunks, std::uint64_t most);

void put_u16(std::string& out, std::uint16_t value);
void put_u32(std::string& out, std::uint32_t value);
// `at` + 4 must not be more than there are.
std::uint32_t u32_at(std::string_view bytes, std::size_t at);

}  // namespace plimsoll
