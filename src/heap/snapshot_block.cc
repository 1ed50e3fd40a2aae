#include "heap/snapshot_block.h"

#include <algorithm>

#include "base/varint.h"

namespace plimsoll::heap {
using file::Section;

void put_section(std::string& out, Section kind, std::string_view payload) {
  put_varint(out, static_cast<std::uint64_t>(kind));
  put_bytes(out, payload);
}

void SectionPieces::add(Section kind, std::string_view payload) {
  std::string head;
  put_varint(head, static_cast<std::uint64_t>(kind));
  put_varint(head, payload.size());
  put_head(std::move(head));
  pieces_.push_back(payload);
}

void SectionPieces::add(Section kind, std::initializer_list<std::uint64_t> numbers,
                        std::span<const std::string_view> columns) {
  std::vector<std::string> heads(columns.size());
  for (const std::uint64_t number : numbers) put_varint(heads[0], number);
  std::size_t size = 0;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    put_varint(heads[i], columns[i].size());
    size += heads[i].size() + columns[i].size();
  }
  std::string head;
  put_varint(head, static_cast<std::uint64_t>(kind));
  put_varint(head, size);
  heads[0].insert(0, head);
  for (std::size_t i = 0; i < columns.size(); ++i) {
    put_head(std::move(heads[i]));
    pieces_.push_back(columns[i]);
  }
}

SectionPieces SnapshotBlock::sections() const {
  SectionPieces out;
  if (!new_types.empty()) out.add(Section::kTypes, new_types);
  if (!new_names.empty()) out.add(Section::kNames, new_names);
  if (rows > 0) {
    std::array<std::string_view, kColumnCount> views;
    std::transform(columns.begin(), columns.end(), views.begin(), [](const ColumnBytes& each) { return each.view(); });
    if (are_objects)
      out.add(Section::kObjects, {rows}, views);
    else
      out.add(Section::kNodes, {first_row, rows}, views);
    const std::string_view all_generations = has_generations ? generations.view() : std::string_view{};
    if (has_generations || !hashes.empty())
      out.add(Section::kDetails, {first_row}, std::array{all_generations, hashed.view(), hashes.view()});
    if (!allocated_by.empty())
      out.add(Section::kAllocations, {first_row}, std::array{allocated_rows.view(), allocated_by.view()});
  }
  if (!buffers.empty()) out.add(Section::kBuffers, buffers);
  return out;
}

void SnapshotBlock::clear() {
  for (std::string* text : {&new_types, &new_names, &buffers}) text->clear();
  for (ColumnBytes& column : columns) column.clear();
  for (ColumnBytes* column : {&generations, &hashed, &hashes, &allocated_rows, &allocated_by}) column->clear();
  has_generations = false;
  rows = 0;
}

}  // namespace plimsoll::heap
