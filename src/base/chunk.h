// base/chunk.h: how our files hold their bytes: in chunks, each whole or not there.
//
// Chunk header: u32 codec, u32 raw size, u32 stored size, u32 CRC-32 of the first 12 bytes and the stored bytes; then
// the stored bytes. Numbers are little endian. docs/format.md and docs/heap-format.md are the specifications.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

struct ZSTD_CCtx_s;

namespace plimsoll {

// The header and bytes of a chunk, compressed at zstd's `level` if that makes them fewer.
std::string make_chunk(std::string_view raw, int level);
// The raw bytes of the chunk at the front of `bytes`, which is moved behind it. False at the end, at a cut and at
// damage, and if the chunk has more than `most` raw bytes: reading stops there and keeps what came before.
bool next_chunk(std::string_view& bytes, std::uint64_t most, std::string& raw);
// How many raw bytes the chunks say that they have, `most` at most. Nothing is unpacked or checked: they may be others.
std::uint64_t raw_bytes_of(std::string_view chunks, std::uint64_t most);

// Compresses bytes that come piece by piece, so that they need not be together for a chunk.
class FrameCompressor {
 public:
  // Of bytes that are the same as earlier ones, from `shortest_match` on are not stored again; 0: as the level has it.
  FrameCompressor(int level, int shortest_match);
  // The piece as a zstd frame, which may be a few bytes longer than it; empty if there is no memory for that.
  std::string frame(std::string_view piece);

 private:
  // zstd's own.
  struct FreeContext {
    void operator()(ZSTD_CCtx_s* context) const;
  };
  std::unique_ptr<ZSTD_CCtx_s, FreeContext> context_;
  std::unique_ptr<char[]> room_;
  std::size_t room_size_ = 0;
};
// What stands in front of a chunk of such frames, one after the other; they have `raw_size` bytes.
std::string chunk_head(std::uint32_t raw_size, std::span<const std::string_view> frames);

void put_u16(std::string& out, std::uint16_t value);
void put_u32(std::string& out, std::uint32_t value);
// `at` + 4 must not be more than there are.
std::uint32_t u32_at(std::string_view bytes, std::size_t at);

}  // namespace plimsoll
