// base/chunk_stream.h: chunks of one stream, each whole or not there, that are compressed with what those before them
// had: a chunk of a few hundred bytes alone has nothing to be compressed with.
//
// Chunk header: u32 stored size in its lower 30 bits, and how it is stored in the upper two: 0 = raw, 1 = the beginning
// of a zstd frame, 2 = the next blocks of the frame before it; u32 CRC-32 of all other bytes of the chunk. Then the
// size of what is compressed already, a varint; the stored bytes; and those. Numbers are little endian. docs/format.md
// is the specification.
#pragma once

#include <zstd.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace plimsoll {

// Makes chunks, each of which needs those before it. 1 MB is kept for that.
class ChunkStreamWriter {
 public:
  explicit ChunkStreamWriter(int level) : level_(level) {}

  // The header and bytes of a chunk with `raw`, which has less than 2^30 bytes, and `packed`, which is left as it is.
  std::string add(std::string_view raw, std::string_view packed);

 private:
  // What a context is freed by.
  struct Free {
    void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  };
  bool begin();
  bool compress(std::string_view raw, std::string& chunk);

  const int level_;
  std::unique_ptr<ZSTD_CCtx, Free> context_;  // null: no frame has been begun
  std::vector<char> room_;                    // for what comes out of it
};

// Reads them, in their order.
class ChunkStreamReader {
 public:
  // The two parts of the chunk at the front of `bytes`, which is moved behind it. False at the end, at a cut and at
  // damage, and if the chunk has more than `most` raw bytes: reading stops there and keeps what came before.
  bool next(std::string_view& bytes, std::uint64_t most, std::string& raw, std::string_view& packed);

 private:
  // What a context is freed by.
  struct Free {
    void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
  };
  bool begin();
  bool unpack(std::string_view stored, std::uint64_t most, std::string& raw);

  std::unique_ptr<ZSTD_DCtx, Free> context_;  // null: no frame has begun
};

}  // namespace plimsoll
