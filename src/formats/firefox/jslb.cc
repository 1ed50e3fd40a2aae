// formats/firefox/jslb.cc: a table of slabs, then their bytes; all numbers are little endian.
#include "formats/firefox/jslb.h"

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "base/chunk.h"
#include "formats/json_values.h"

namespace plimsoll::formats::firefox {
namespace {

namespace json = boost::json;

constexpr std::string_view kMagic("\xDC\xDF\x4A\x53\x4C\x42\x01\x00", 8);
constexpr std::size_t kHeaderBytes = 20, kEntryBytes = 12;
constexpr std::uint32_t kVersion = 1;
constexpr std::string_view kPlaceholder = "$s";
static_assert(std::endian::native == std::endian::little, "numbers are copied as they are");

// A slab, and whether it has found its place.
struct Slab {
  SlabType type{};
  std::string_view bytes;
  bool is_used = false;
};

Error bad(const std::string& what, std::size_t at) {
  return {ErrorKind::kBadInput, "not a whole JSLB file: " + what + " at byte " + std::to_string(at)};
}

template <typename Number>
json::array numbers(std::string_view bytes, const json::storage_ptr& storage) {
  json::array column(storage);
  column.reserve(bytes.size() / sizeof(Number));
  for (std::size_t at = 0; at + sizeof(Number) <= bytes.size(); at += sizeof(Number)) {
    Number number;
    std::memcpy(&number, bytes.data() + at, sizeof number);
    column.emplace_back(number);
  }
  return column;
}

json::array column_of(const Slab& slab, const json::storage_ptr& storage) {
  switch (slab.type) {
    case SlabType::kI8: return numbers<std::int8_t>(slab.bytes, storage);
    case SlabType::kU8: return numbers<std::uint8_t>(slab.bytes, storage);
    case SlabType::kI16: return numbers<std::int16_t>(slab.bytes, storage);
    case SlabType::kU16: return numbers<std::uint16_t>(slab.bytes, storage);
    case SlabType::kI32: return numbers<std::int32_t>(slab.bytes, storage);
    case SlabType::kU32: return numbers<std::uint32_t>(slab.bytes, storage);
    case SlabType::kF32: return numbers<float>(slab.bytes, storage);
    case SlabType::kF64: return numbers<double>(slab.bytes, storage);
    case SlabType::kI64: return numbers<std::int64_t>(slab.bytes, storage);
    default: return numbers<std::uint64_t>(slab.bytes, storage);
  }
}

// Puts slabs into the places that stand for them.
class Assembly {
 public:
  Assembly(std::vector<Slab> slabs, json::storage_ptr storage)
      : slabs_(std::move(slabs)), storage_(std::move(storage)) {}

  Result<json::value> assemble(std::size_t root) {
    Result<json::value> value = take(root);
    if (!value.ok()) return value;
    // Not by recursion: JSON texts in JSON texts may be as deep as there are slabs. A slab is put in once, so it ends.
    open_.push_back(&value.value());
    while (!open_.empty()) {
      json::value& next = *open_.back();
      open_.pop_back();
      if (const Status filled = fill(next); !filled.ok()) return filled.error();
    }
    return value;
  }

 private:
  Result<json::value> take(std::size_t index) {
    if (index >= slabs_.size() || slabs_[index].is_used)
      return Error{ErrorKind::kBadInput,
                   "a JSLB file whose slab " + std::to_string(index) + " is missing or stands in two places"};
    Slab& slab = slabs_[index];
    slab.is_used = true;
    if (slab.type == SlabType::kJson) return parse_json(slab.bytes, storage_);
    return json::value(column_of(slab, storage_));
  }

  // Replaces a value that stands for a slab, else notes what is in it.
  Status fill(json::value& value) {
    if (json::array* elements = value.if_array()) {
      for (json::value& element : *elements)
        if (element.is_structured()) open_.push_back(&element);
      return Ok{};
    }
    json::object* members = value.if_object();
    if (members == nullptr) return Ok{};
    const json::value* slab =
        members->size() == 1 ? members->if_contains({kPlaceholder.data(), kPlaceholder.size()}) : nullptr;
    if (slab == nullptr) {
      for (auto& member : *members)
        if (member.value().is_structured()) open_.push_back(&member.value());
      return Ok{};
    }
    const std::optional<std::size_t> index = index_of(slab, slabs_.size());
    Result<json::value> content = take(index.value_or(slabs_.size()));
    if (!content.ok()) return content.error();
    const bool has_places = content.value().is_object() || slabs_[*index].type == SlabType::kJson;
    value = content.take();
    if (has_places) open_.push_back(&value);
    return Ok{};
  }

  std::vector<Slab> slabs_;
  json::storage_ptr storage_;
  std::vector<json::value*> open_;
};

}  // namespace

std::size_t Slabs::add(SlabType type, std::string bytes) {
  columns_.push_back({type, std::move(bytes)});
  return columns_.size();  // slab 0 is the root
}

Result<std::string> Slabs::file(std::string_view root, std::uint64_t limit) const {
  constexpr std::uint64_t kAlignment = 8;  // of any column, for readers that look at it in place
  const auto aligned = [](std::uint64_t at) { return (at + kAlignment - 1) / kAlignment * kAlignment; };
  const std::uint64_t count = columns_.size() + 1;
  const std::uint64_t start = aligned(kHeaderBytes + count * kEntryBytes);
  std::uint64_t size = aligned(start + root.size());
  for (const Column& column : columns_) size = aligned(size + column.bytes.size());
  if (size > limit)
    return Error{ErrorKind::kUnsupported,
                 "the profile takes " + std::to_string(size) +
                     " bytes, and a JSLB file has 4 GiB at most: write -f firefox, which is JSON"};
  std::string out(kMagic);
  out.reserve(size);
  for (const std::uint64_t number : {std::uint64_t{kVersion}, count, std::uint64_t{0}})
    put_u32(out, static_cast<std::uint32_t>(number));
  std::uint64_t at = start;
  const auto entry = [&](SlabType type, std::uint64_t bytes) {
    for (const std::uint64_t number : {std::uint64_t{static_cast<std::uint32_t>(type)}, at, bytes})
      put_u32(out, static_cast<std::uint32_t>(number));
    at = aligned(at + bytes);
  };
  entry(SlabType::kJson, root.size());
  for (const Column& column : columns_) entry(column.type, column.bytes.size());
  const auto data = [&](std::string_view bytes) {
    out.resize(aligned(out.size()));
    out += bytes;
  };
  data(root);
  for (const Column& column : columns_) data(column.bytes);
  return out;
}

bool is_jslb(std::string_view bytes) { return bytes.starts_with(kMagic); }

Result<json::value> parse_jslb(std::string_view bytes, json::storage_ptr storage) {
  if (!is_jslb(bytes) || bytes.size() < kHeaderBytes) return bad("the header is cut", bytes.size());
  if (const std::uint32_t version = u32_at(bytes, 8); version != kVersion)
    return Error{ErrorKind::kUnsupported,
                 "a JSLB file of version " + std::to_string(version) + ": version 1 can be read"};
  const std::size_t count = u32_at(bytes, 12);
  if (count > (bytes.size() - kHeaderBytes) / kEntryBytes) return bad("the table of slabs is cut", bytes.size());
  std::vector<Slab> slabs;
  slabs.reserve(count);
  for (std::size_t at = kHeaderBytes; slabs.size() < count; at += kEntryBytes) {
    const std::uint32_t type = u32_at(bytes, at);
    const std::size_t offset = u32_at(bytes, at + 4);
    const std::size_t size = u32_at(bytes, at + 8);
    if (type > static_cast<std::uint32_t>(SlabType::kJson)) return bad("an unknown type of slab", at);
    if (offset > bytes.size() || size > bytes.size() - offset) return bad("a slab that is cut, told of", at);
    slabs.push_back({static_cast<SlabType>(type), bytes.substr(offset, size)});
  }
  return Assembly(std::move(slabs), std::move(storage)).assemble(u32_at(bytes, 16));
}

}  // namespace plimsoll::formats::firefox
