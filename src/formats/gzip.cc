// formats/gzip.cc: a deflate stream with a gzip header.
#include "formats/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <limits>

namespace plimsoll::formats {
namespace {

// A million samples as JSON (25 MB) take 0.7 s and 9.8 MB at this level, 2.5 s and 9.1 MB at zlib's default.
constexpr int kLevel = 4;
constexpr int kGzipWindowBits = 15 + 16;  // the largest window; +16 selects the gzip header
constexpr int kMemoryLevel = 8;           // zlib's default

}  // namespace

Result<std::string> gzip(std::string_view bytes) {
  z_stream stream{};
  if (deflateInit2(&stream, kLevel, Z_DEFLATED, kGzipWindowBits, kMemoryLevel, Z_DEFAULT_STRATEGY) != Z_OK)
    return Error{ErrorKind::kSystem, "cannot compress: zlib got no memory"};

  std::string out;
  std::array<char, 65536> buffer;
  int state = Z_OK;
  do {
    // zlib counts input in 32 bits: feed what it can count.
    const std::size_t part = std::min<std::size_t>(bytes.size(), std::numeric_limits<uInt>::max());
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));  // zlib reads only
    stream.avail_in = static_cast<uInt>(part);
    bytes.remove_prefix(part);
    const int flush = bytes.empty() ? Z_FINISH : Z_NO_FLUSH;
    do {
      stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
      stream.avail_out = static_cast<uInt>(buffer.size());
      state = deflate(&stream, flush);
      out.append(buffer.data(), buffer.size() - stream.avail_out);
    } while (stream.avail_out == 0);
  } while (state != Z_STREAM_END);
  deflateEnd(&stream);
  return out;
}

}  // namespace plimsoll::formats
