#include "heap/snapshot_block.h"

#include <algorithm>
#include <utility>

#include "base/varint.h"

namespace plimsoll::heap {
namespace {

using file::Section;

// Of a full piece. There are about twenty of them at most: one for each column, and those that wait to be compressed.
// Of half the size they would take 1.5 MB less, and the file is 3 % larger, for each is compressed by itself.
constexpr std::size_t kPieceBytes = std::size_t{1} << 17U;

}  // namespace

void ColumnBytes::flush() {
  if (piece_.size == 0) return;
  gone_ += piece_.size;
  sink_->take(column_, piece_);
}

void ColumnBytes::make_room(std::size_t more) {
  flush();
  if (piece_.room >= more) return;
  const std::size_t room = std::max(more, kPieceBytes);
  piece_ = {std::make_unique_for_overwrite<char[]>(room), room, 0};
}

void ColumnBytes::long_number(std::uint64_t value) {
  char* at = room(kLongestVarint);
  char* const start = at;
  while (value >= 0x80U) {
    *at++ = static_cast<char>(value | 0x80U);
    value >>= 7U;
  }
  *at++ = static_cast<char>(value);
  piece_.size += static_cast<std::size_t>(at - start);
}

void put_section(std::string& out, Section kind, std::string_view payload) {
  put_varint(out, static_cast<std::uint64_t>(kind));
  put_bytes(out, payload);
}

void SnapshotBlock::add_columns(std::vector<ChunkPart>& out, Section kind, std::initializer_list<std::uint64_t> numbers,
                                std::span<const Column> which) const {
  std::vector<ChunkPart> parts(which.size());
  for (const std::uint64_t number : numbers) put_varint(parts[0].bytes, number);
  std::size_t size = 0;
  for (std::size_t i = 0; i < which.size(); ++i) {
    const std::size_t column_size = columns[which[i]].size();
    put_varint(parts[i].bytes, column_size);
    if (column_size != 0) parts[i].column = which[i];
    size += parts[i].bytes.size() + column_size;
  }
  std::string head;
  put_varint(head, static_cast<std::uint64_t>(kind));
  put_varint(head, size);
  parts[0].bytes.insert(0, head);
  std::move(parts.begin(), parts.end(), std::back_inserter(out));
}

std::vector<ChunkPart> SnapshotBlock::sections() const {
  std::vector<ChunkPart> out;
  std::string new_words;
  if (!new_types.empty()) put_section(new_words, Section::kTypes, new_types);
  if (!new_names.empty()) put_section(new_words, Section::kNames, new_names);
  if (!new_words.empty()) out.push_back({std::move(new_words), ChunkPart::kNoColumn});
  if (rows > 0) {
    constexpr std::array kRows{kTypes,         kSizes,       kRefcounts, kAddresses, kShapes,  kKinds, kLowTargets,
                               kMiddleTargets, kHighTargets, kNames,     kTexts,     kDetails, kHashes};
    if (are_objects)
      add_columns(out, Section::kObjectRows, {rows}, kRows);
    else
      add_columns(out, Section::kNodeRows, {first_row, rows}, kRows);
    if (!columns[kAllocatedBy].empty())
      add_columns(out, Section::kAllocations, {first_row}, std::array{kAllocatedRows, kAllocatedBy});
  }
  if (!buffers.empty()) {
    std::string section;
    put_section(section, Section::kBuffers, buffers);
    out.push_back({std::move(section), ChunkPart::kNoColumn});
  }
  return out;
}

void SnapshotBlock::clear() {
  for (std::string* text : {&new_types, &new_names, &buffers}) text->clear();
  for (ColumnBytes& column : columns) column.begin_anew();
  rows = 0;
}

}  // namespace plimsoll::heap
