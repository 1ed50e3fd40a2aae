// formats/firefox/jslb.h: the binary container that the Firefox Profiler reads and writes beside JSON (".jslb").
//
// JSON texts and columns of numbers, "slabs", in one file; {"$s": N} in a JSON text stands for slab N.
#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace plimsoll::formats::firefox {

// What a slab holds, by the numbers in the file.
enum class SlabType : std::uint32_t { kI8, kU8, kI16, kU16, kI32, kU32, kF32, kF64, kI64, kU64, kJson };

// The columns of a container that is being written.
class Slabs {
 public:
  static constexpr std::uint64_t kLargestFile = UINT32_MAX;  // bytes: offsets have 32 bits

  // Takes a column, little endian; gives the number that stands for it in the JSON text.
  std::size_t add(SlabType type, std::string bytes);
  // The container with a JSON text as its root. kUnsupported if it would be larger than `limit`.
  [[nodiscard]] Result<std::string> file(std::string_view root, std::uint64_t limit = kLargestFile) const;

 private:
  // A column.
  struct Column {
    SlabType type;
    std::string bytes;
  };
  std::vector<Column> columns_;
};

bool is_jslb(std::string_view bytes);

// The value of the root slab, with every slab in its place, in memory of `storage`'s. kBadInput says at which byte the
// container is cut or makes no sense; a slab that would stand in several places, or in itself, does not.
Result<boost::json::value> parse_jslb(std::string_view bytes, boost::json::storage_ptr storage);

}  // namespace plimsoll::formats::firefox
