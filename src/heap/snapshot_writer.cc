#include "heap/snapshot_writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/chunk.h"
#include "base/new_file.h"
#include "base/varint.h"
#include "base/write_file.h"
#include "heap/snapshot_format.h"

namespace plimsoll::heap {
namespace {

using file::Section;

}  // namespace

Result<SnapshotWriter> SnapshotWriter::create(const std::string& path) {
  Result<Replacement> begun = begin_replacement(path);
  if (!begun.ok()) return begun.error();
  Replacement file = begun.take();
  // A file that was there before may have been open to others; a pipe or device is whose it is.
  struct stat facts {};
  if (::fstat(file.fd.get(), &facts) != 0) return system_error("cannot examine " + path, errno);
  if (S_ISREG(facts.st_mode) && ::fchmod(file.fd.get(), 0600) != 0)
    return system_error("cannot protect " + path, errno);
  SnapshotWriter writer(std::move(file.fd));
  writer.path_ = path;
  writer.written_at_ = std::move(file.path);
  return writer;
}

SnapshotWriter::SnapshotWriter(UniqueFd fd) : file_(std::make_unique<SnapshotFile>(std::move(fd))) {
  std::string header(file::kMagic);
  put_u16(header, file::kMajorVersion);
  put_u16(header, file::kMinorVersion);
  file_->put(header);
  for (std::size_t i = 0; i < block_.columns.size(); ++i) block_.columns[i].flow_to(*file_, i);
}

std::uint32_t SnapshotWriter::add_type(std::string_view name) {
  put_bytes(block_.new_types, name);
  return types_++;
}

std::uint32_t SnapshotWriter::add_name(std::string_view name) {
  put_bytes(block_.new_names, name);
  return names_++;
}

void SnapshotWriter::begin_rows(TypeRows& rows) const {
  rows.block = block_number_;
  rows.details = file::kNoDetails;
  rows.size = 0;
  rows.kinds.clear();
  rows.names.clear();
}

// An edge whose kind is not the usual one at its place.
void SnapshotWriter::put_own_kind(EdgeKind kind) {
  if (!has_own_shape_) give_own_shape();
  ++degree_;
  column(Column::kKinds).byte(static_cast<std::uint8_t>(kind));
  if (!is_pattern_) return;
  // A row that follows a pattern has as many targets as edges, or one less: by that the reader knows how many there
  // are.
  std::vector<EdgeKind>& kinds = usual_->kinds;
  const bool is_second = kind == EdgeKind::kType && std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
  is_pattern_ = degree_ <= file::kLongestPattern && !is_second;
  kinds.push_back(kind);
}

void SnapshotWriter::put_own_name(std::uint32_t name) {
  if (!has_own_shape_) give_own_shape();
  column(Column::kNames).number(name);
  if (is_pattern_) usual_->names.push_back(name);
}

// The edges so far were as usual. From now on the usual is what the row has.
void SnapshotWriter::give_own_shape() {
  has_own_shape_ = true;
  usual_->kinds.resize(degree_);
  usual_->names.resize(named_);
  for (const EdgeKind kind : usual_->kinds) column(Column::kKinds).byte(static_cast<std::uint8_t>(kind));
  for (const std::uint32_t name : usual_->names) column(Column::kNames).number(name);
}

// The usual is nothing, as what the row has is no pattern.
void SnapshotWriter::forget_usual() {
  usual_->kinds.clear();
  usual_->names.clear();
  is_pattern_ = true;
}

void SnapshotWriter::text(std::string_view text) {
  column(Column::kTexts).number(block_.rows - text_row_);
  column(Column::kTexts).text(text);
  text_row_ = block_.rows + 1;
}

void SnapshotWriter::allocated_by(std::uint32_t stack) {
  column(Column::kAllocatedRows).number(block_.rows - allocated_row_);
  column(Column::kAllocatedBy).number(stack);
  allocated_row_ = block_.rows + 1;
}

void SnapshotWriter::buffer(std::uint64_t start, std::uint64_t size) {
  put_varint(block_.buffers, node_ - buffer_owner_);
  put_varint(block_.buffers, start);
  put_varint(block_.buffers, size);
  buffer_owner_ = node_;
}

void SnapshotWriter::end_objects() {
  end_block();
  objects_ = node_;
}

void SnapshotWriter::end_block() {
  block_.first_row = node_ - static_cast<Node>(block_.rows);
  block_.are_objects = objects_ == kNoNode;
  for (ColumnBytes& column : block_.columns) column.flush();
  file_->put(block_.sections());
  block_.clear();
  text_row_ = allocated_row_ = 0;
  address_ = 0;
  ++block_number_;
}

void SnapshotWriter::add_class(std::uint32_t type, Node object) {
  put_varint(classes_, type);
  put_varint(classes_, object);
}

void SnapshotWriter::add_meta(std::string_view name, std::string_view value) {
  put_bytes(meta_, name);
  put_bytes(meta_, value);
}

void SnapshotWriter::add_pools(std::span<const Pool> pools) {
  std::string payload;
  payload.reserve(pools.size() * 8);  // about so many bytes each: to grow there would take as much again
  std::uint64_t before = 0;
  for (const Pool& pool : pools) {
    put_varint(payload, (pool.address - before) / file::kPoolUnit);
    before = pool.address;
    for (const std::uint32_t number : {pool.block_bytes, pool.used, pool.capacity, pool.arena})
      put_varint(payload, number);
  }
  put_section(memory_, Section::kPools, payload);
}

void SnapshotWriter::add_regions(std::span<const Region> regions) {
  std::string payload;
  std::uint64_t before = 0;
  for (const Region& region : regions) {
    put_varint(payload, region.start - before);
    before = region.start;
    put_varint(payload, region.size);
    put_varint(payload, region.resident);
    put_varint(payload, (region.is_writable ? 1U : 0U) + (region.is_executable ? 2U : 0U));
    put_bytes(payload, region.name);
  }
  put_section(memory_, Section::kRegions, payload);
}

void SnapshotWriter::add_stacks(const AllocationStacks& stacks, const std::vector<std::uint32_t>& stack_of) {
  std::string payload;
  put_stacks(payload, stacks, stack_of);
  put_section(memory_, Section::kStacks, payload);
}

Status SnapshotWriter::finish() {
  end_block();
  std::string raw;
  std::string end;
  put_varint(end, objects_ == kNoNode ? node_ : objects_);
  put_varint(end, node_);
  put_varint(end, lost_edges_);
  put_section(raw, Section::kClasses, classes_);
  put_section(raw, Section::kMeta, meta_);
  raw += memory_;
  put_section(raw, Section::kEnd, end);
  int error = file_->finish(raw);
  if (error == 0 && written_at_ != path_ && ::rename(written_at_.c_str(), path_.c_str()) != 0) error = errno;
  if (error != 0) {
    discard();
    return system_error("cannot write " + path_, error);
  }
  return Ok{};
}

Status append_said(const std::string& path, std::span<const Said> said) {
  std::string payload;
  Node before = 0;
  for (const Said& each : said) {
    put_varint(payload, each.node - before);
    before = each.node;
    put_varint(payload, each.bytes);
    put_bytes(payload, each.text);
  }
  std::string raw;
  put_section(raw, Section::kSaid, payload);
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW));
  if (!fd.is_open()) return system_error("cannot open " + path, errno);
  if (const int error = write_all(fd.get(), make_chunk(raw, file::kCompressionLevel)); error != 0)
    return system_error("cannot write " + path, error);
  return Ok{};
}

}  // namespace plimsoll::heap
