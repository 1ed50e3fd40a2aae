#include <algorithm>

#include "cpython/code_object.h"
#include "heap/image_view.h"

namespace plimsoll::heap {
namespace {

using cpython::KeysStyle;
using cpython::ValuesStyle;

// Two thirds of a table can be used.
std::uint64_t usable(std::uint64_t size) { return size * 2 / 3; }

// PyDictKeysObject of 3.9 and 3.10: dk_refcnt, dk_size, dk_lookup, dk_usable, dk_nentries, dk_indices.
KeyTable sized_table(const ImageView& view, Address keys) {
  KeyTable table;
  const std::uint64_t size = view.word(keys, 8);
  const std::uint64_t width = size <= 0xff ? 1 : size <= 0xffff ? 2 : size <= 0xffffffffU ? 4 : 8;
  constexpr std::uint64_t kIndices = 40, kEntry = 24;
  constexpr std::uint64_t kLargest = std::uint64_t{1} << 36U;
  table.references = view.word(keys, 0);
  table.count = view.word(keys, 32);
  table.capacity = usable(size);
  table.entries = offset_by(keys, kIndices + size * width);
  table.bytes = kIndices + size * width + table.capacity * kEntry;
  table.has_hashes = true;
  table.is_shared = true;  // what the instances of a class share is told by the class only
  table.is_sound = size != 0 && size <= kLargest && (size & (size - 1)) == 0 && table.count <= size;
  return table;
}

// From 3.11 on: dk_refcnt, dk_log2_size, dk_log2_index_bytes, dk_kind, dk_version, dk_usable, dk_nentries, dk_indices.
KeyTable table_of_kind(const ImageView& view, Address keys) {
  KeyTable table;
  constexpr std::uint64_t kIndices = 32;
  constexpr std::uint8_t kLargestLog = 36, kGeneral = 0, kSplit = 2;
  const auto log2_size = view.number<std::uint8_t>(keys, 8);
  const auto log2_bytes = view.number<std::uint8_t>(keys, 9);
  const auto kind = view.number<std::uint8_t>(keys, 10);
  const std::uint64_t free = view.word(keys, 16);
  table.references = view.word(keys, 0);
  table.count = view.word(keys, 24);
  if (log2_size > kLargestLog || log2_bytes > kLargestLog + 3 || kind > kSplit) return table;
  const std::uint64_t size = std::uint64_t{1} << log2_size;
  if (table.count > size || free > size) return table;
  table.has_hashes = kind == kGeneral;
  table.is_shared = kind == kSplit;
  table.capacity = table.is_shared ? table.count + free : usable(size);
  table.entries = offset_by(keys, kIndices + (std::uint64_t{1} << log2_bytes));
  table.bytes = kIndices + (std::uint64_t{1} << log2_bytes) + usable(size) * (table.has_hashes ? 24 : 16);
  table.is_sound = true;
  return table;
}

}  // namespace

KeyTable key_table(const ImageView& view, Address keys) {
  if (is_null(keys)) return {};
  return view.fields().keys_style == KeysStyle::kSized ? sized_table(view, keys) : table_of_kind(view, keys);
}

Address shared_values(const ImageView& view, Address values) {
  // capacity, size, embedded and valid stand in front, in 8 bytes.
  return view.fields().values_style == ValuesStyle::kInside ? offset_by(values, 8) : values;
}

std::string text_of(const ImageView& view, Address text, std::uint64_t most) {
  const auto& unicode = view.layout().unicode;
  const std::uint64_t length = std::min(view.word(text, unicode.length), most);
  const std::uint32_t state = view.number<std::uint32_t>(text, unicode.state) >> unicode.kind_shift;
  const std::uint32_t width = state & 7U;
  const bool is_compact = (state & 8U) != 0, is_ascii = (state & 16U) != 0;
  std::string out;
  if (is_null(text) || (width != 1 && width != 2 && width != 4)) return out;
  Address data = offset_by(text, is_ascii ? unicode.ascii_size : unicode.compact_size);
  if (!is_compact) data = view.pointer(text, unicode.compact_size);
  std::string bytes(length * width, '\0');
  if (!view.image().read(data, bytes.data(), bytes.size())) return out;
  for (std::size_t at = 0; at < bytes.size(); at += width) {
    std::uint32_t character = 0;
    for (std::uint32_t i = 0; i < width; ++i)
      character |= std::uint32_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
    cpython::append_utf8(out, character);
  }
  return out;
}

std::string c_text(const ImageView& view, Address at) {
  constexpr std::size_t kLongest = 255;
  std::string text;
  for (char letter = 0; text.size() < kLongest && !is_null(at) && view.spend(1);) {
    if (!view.image().load(at, letter) || letter == 0) break;
    text += letter;
    at = offset_by(at, 1);
  }
  return text;
}

Address entry_of(const ImageView& view, Address dict, std::string_view name) {
  constexpr std::uint64_t kMost = 1U << 16U;
  Address found{};
  if (is_null(dict) || view.word(dict, cpython::container_field::kDictUsed) > kMost) return found;
  each_item(view, dict, [&](Address key, Address value) {
    if (is_null(found) && view.word(key, view.layout().unicode.length) == name.size() &&
        text_of(view, key, name.size()) == name)
      found = value;
  });
  return found;
}

}  // namespace plimsoll::heap
