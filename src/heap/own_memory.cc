#include "heap/own_memory.h"

#include <array>

namespace plimsoll::heap {
namespace {

namespace array = cpython::numpy_field;

struct Known {
  std::string_view c_name;
  OwnMemory kind;
  std::uint64_t least_size;  // of an object in which all its fields are
};
constexpr std::array<Known, 9> kKnown{{{"list", OwnMemory::kList, 40},
                                       {"dict", OwnMemory::kDict, 48},
                                       {"frozendict", OwnMemory::kDict, 48},
                                       {"set", OwnMemory::kSet, 64},
                                       {"frozenset", OwnMemory::kSet, 64},
                                       {"bytearray", OwnMemory::kByteArray, 56},
                                       {"array.array", OwnMemory::kArray, 48},
                                       {"_io.BytesIO", OwnMemory::kBytesIO, 40},
                                       {"numpy.ndarray", OwnMemory::kNumPy, array::kLater}}};

constexpr std::array<HiddenField, 1> kOfBytesIO{{{16, "buffer"}}};
constexpr std::array<HiddenField, 2> kOfNumPy{{{array::kBase, "base"}, {array::kDescription, "dtype"}}};
// The collector is not shown these classes' objects at all. One without a time zone is made without room for it.
constexpr std::uint32_t kHasZone = 24;
constexpr std::array<HiddenField, 1> kOfDateTime{{{40, "tzinfo", kHasZone}}};
constexpr std::array<HiddenField, 1> kOfTime{{{32, "tzinfo", kHasZone}}};
constexpr std::array<HiddenField, 2> kOfTimeZone{{{16, "offset"}, {24, "name"}}};

}  // namespace

OwnMemory own_memory_of(std::string_view c_name, std::uint64_t basic_size) {
  const auto* found =
      std::find_if(kKnown.begin(), kKnown.end(), [&](const Known& known) { return known.c_name == c_name; });
  return found != kKnown.end() && basic_size >= found->least_size ? found->kind : OwnMemory::kNone;
}

std::span<const HiddenField> hidden_fields(OwnMemory kind) {
  if (kind == OwnMemory::kBytesIO) return kOfBytesIO;
  if (kind == OwnMemory::kNumPy) return kOfNumPy;
  return {};
}

std::span<const HiddenField> hidden_fields(std::string_view c_name, std::uint64_t basic_size) {
  if (c_name == "datetime.datetime" && basic_size >= 48) return kOfDateTime;
  if (c_name == "datetime.time" && basic_size >= 40) return kOfTime;
  if (c_name == "datetime.timezone" && basic_size >= 32) return kOfTimeZone;
  return {};
}

}  // namespace plimsoll::heap
