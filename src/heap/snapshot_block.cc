#include "heap/snapshot_block.h"

#include "base/varint.h"

namespace plimsoll::heap {
using file::Section;

void put_section(std::string& out, Section kind, std::string_view payload) {
  put_varint(out, static_cast<std::uint64_t>(kind));
  put_bytes(out, payload);
}

std::string SnapshotBlock::sections() const {
  std::string out, payload;
  if (!new_types.empty()) put_section(out, Section::kTypes, new_types);
  if (!new_names.empty()) put_section(out, Section::kNames, new_names);
  if (rows > 0) {
    std::size_t bytes = 256;  // and some for lengths
    for (const ColumnBytes& column : columns) bytes += column.size();
    payload.reserve(bytes);
    out.reserve(out.size() + bytes + generations.size() + hashed.size() + hashes.size());
    if (!are_objects) put_varint(payload, first_row);
    put_varint(payload, rows);
    for (const ColumnBytes& column : columns) put_bytes(payload, column.view());
    put_section(out, are_objects ? Section::kObjects : Section::kNodes, payload);
  }
  if (rows > 0 && (has_generations || !hashes.empty())) {
    payload.clear();
    put_varint(payload, first_row);
    put_bytes(payload, has_generations ? generations.view() : std::string_view{});
    put_bytes(payload, hashed.view());
    put_bytes(payload, hashes.view());
    put_section(out, Section::kDetails, payload);
  }
  if (rows > 0 && !allocated_by.empty()) {
    payload.clear();
    put_varint(payload, first_row);
    put_bytes(payload, allocated_rows.view());
    put_bytes(payload, allocated_by.view());
    put_section(out, Section::kAllocations, payload);
  }
  if (!buffers.empty()) put_section(out, Section::kBuffers, buffers);
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
