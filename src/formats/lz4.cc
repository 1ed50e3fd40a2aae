// formats/lz4.cc: by liblz4, block by block.
#include "formats/lz4.h"

#include <lz4frame.h>

#include <array>
#include <memory>

namespace plimsoll::formats {
namespace {

struct FreeContext {
  void operator()(LZ4F_dctx* context) const { ::LZ4F_freeDecompressionContext(context); }
};
using Context = std::unique_ptr<LZ4F_dctx, FreeContext>;

Context make_context() {
  LZ4F_dctx* context = nullptr;
  if (::LZ4F_isError(::LZ4F_createDecompressionContext(&context, LZ4F_VERSION)) != 0U) return nullptr;
  return Context(context);
}

}  // namespace

bool is_lz4(std::string_view bytes) { return bytes.starts_with(std::string_view("\x04\x22\x4D\x18", 4)); }

Result<std::string> unpack_lz4(std::string_view bytes, std::size_t limit) {
  const Context context = make_context();
  if (context == nullptr) return Error{ErrorKind::kSystem, "no memory to unpack an LZ4 file"};
  std::string plain;
  std::array<char, 65536> block;
  while (true) {
    std::size_t read = bytes.size();
    std::size_t written = block.size();
    const std::size_t hint = ::LZ4F_decompress(context.get(), block.data(), &written, bytes.data(), &read, nullptr);
    if (::LZ4F_isError(hint) != 0U) return plain;
    if (plain.size() + written > limit)
      return Error{ErrorKind::kBadInput, "an LZ4 file that unpacks to more than " + std::to_string(limit) + " bytes"};
    plain.append(block.data(), written);
    bytes.remove_prefix(read);
    if (read == 0 && written == 0) return plain;  // the end, or all that there is
  }
}

}  // namespace plimsoll::formats
