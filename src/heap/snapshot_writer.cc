#include "heap/snapshot_writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/chunk.h"
#include "base/new_file.h"
#include "base/varint.h"
#include "heap/snapshot_format.h"

namespace plimsoll::heap {
namespace {

using file::Section;

// Rows of a section, and bytes of its edges or texts: whichever is reached first ends it. With the largest row, one
// object that holds a hundred million others, a chunk would be too large; end_node checks bytes as edges come.
constexpr std::size_t kFullBlock = 1U << 16U;
constexpr std::size_t kFullColumn = std::size_t{4} << 20U;

void put_section(std::string& out, Section kind, std::string_view payload) {
  put_varint(out, static_cast<std::uint64_t>(kind));
  put_bytes(out, payload);
}

// The errno of what failed, or 0.
int write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written >= 0) bytes.remove_prefix(static_cast<std::size_t>(written));
    if (written < 0 && errno != EINTR) return errno;
  }
  return 0;
}

}  // namespace

Result<SnapshotWriter> SnapshotWriter::create(const std::string& path) {
  SnapshotWriter writer;
  Result<UniqueFd> file = begin_new_file(path);
  if (!file.ok()) return file.error();
  writer.fd_ = file.take();
  // A file that was there before may have been open to others; a pipe or device is whose it is.
  struct stat facts {};
  if (::fstat(writer.fd_.get(), &facts) != 0) return system_error("cannot examine " + path, errno);
  if (S_ISREG(facts.st_mode) && ::fchmod(writer.fd_.get(), 0600) != 0)
    return system_error("cannot protect " + path, errno);
  writer.path_ = path;
  const std::string header = std::move(writer.bytes_);
  writer.bytes_.clear();
  writer.write(header);
  return writer;
}

void SnapshotWriter::begin_file() {
  bytes_ = file::kMagic;
  put_u16(bytes_, file::kMajorVersion);
  put_u16(bytes_, file::kMinorVersion);
}

std::uint32_t SnapshotWriter::add_type(std::string_view name) {
  put_bytes(new_types_, name);
  return types_++;
}

std::uint32_t SnapshotWriter::add_name(std::string_view name) {
  put_bytes(new_names_, name);
  return names_++;
}

void SnapshotWriter::begin_node(std::uint32_t type, std::uint64_t size, std::uint32_t refcount, Address address) {
  columns_[kTypes].number(type);
  columns_[kSizes].number(size);
  columns_[kRefcounts].number(refcount);
  columns_[kAddresses].number((raw(address) - address_) / 8);
  address_ = raw(address);
  degree_ = 0;
}

void SnapshotWriter::put_edge(EdgeKind kind, Node target) {
  columns_[kKinds].byte(static_cast<std::uint8_t>(kind));
  if (kind != EdgeKind::kType) columns_[kTargets].number(zigzag(std::int64_t{target} - std::int64_t{node_}));
  ++degree_;
  ++edges_;
}

void SnapshotWriter::named_edge(Node target, std::uint32_t name) {
  put_edge(EdgeKind::kNamed, target);
  columns_[kNames].number(name);
}

void SnapshotWriter::text(std::string_view text) {
  columns_[kTexts].number(rows_ - text_row_);
  columns_[kTexts].text(text);
  text_row_ = rows_ + 1;
}

void SnapshotWriter::content_hash(std::uint64_t hash) {
  hashed_.number(rows_ - hashed_row_);
  hashes_.word(hash);
  hashed_row_ = rows_ + 1;
}

void SnapshotWriter::allocated_by(std::uint32_t stack) {
  allocated_rows_.number(rows_ - allocated_row_);
  allocated_by_.number(stack);
  allocated_row_ = rows_ + 1;
}

void SnapshotWriter::buffer(std::uint64_t start, std::uint64_t size) {
  put_varint(buffers_, node_ - buffer_owner_);
  put_varint(buffers_, start);
  put_varint(buffers_, size);
  buffer_owner_ = node_;
}

void SnapshotWriter::end_node() {
  columns_[kDegrees].number(degree_);
  generations_.byte(static_cast<std::uint8_t>(generation_));
  has_generations_ = has_generations_ || generation_ != Generation::kUnknown;
  generation_ = Generation::kUnknown;
  ++node_;
  ++rows_;
  const bool is_full =
      rows_ == kFullBlock || columns_[kTargets].size() > kFullColumn || columns_[kTexts].size() > kFullColumn;
  if (is_full) end_block();
}

void SnapshotWriter::end_objects() {
  end_block();
  objects_ = node_;
}

void SnapshotWriter::end_block() {
  std::string raw;
  for (auto [kind, texts] : {std::pair{Section::kTypes, &new_types_}, std::pair{Section::kNames, &new_names_}}) {
    if (!texts->empty()) put_section(raw, kind, *texts);
    texts->clear();
  }
  if (rows_ > 0) {
    std::size_t bytes = 256;  // and some for lengths
    for (const Bytes& column : columns_) bytes += column.size();
    std::string payload;
    payload.reserve(bytes);
    raw.reserve(raw.size() + bytes + generations_.size() + hashed_.size() + hashes_.size());
    if (objects_ != kNoNode) put_varint(payload, node_ - rows_);
    put_varint(payload, rows_);
    for (Bytes& column : columns_) {
      put_bytes(payload, column.view());
      column.clear();
    }
    put_section(raw, objects_ == kNoNode ? Section::kObjects : Section::kNodes, payload);
    if (has_generations_ || hashes_.size() != 0) {
      payload.clear();
      put_varint(payload, node_ - rows_);
      put_bytes(payload, has_generations_ ? generations_.view() : std::string_view{});
      put_bytes(payload, hashed_.view());
      put_bytes(payload, hashes_.view());
      put_section(raw, Section::kDetails, payload);
    }
    if (allocated_by_.size() != 0) {
      payload.clear();
      put_varint(payload, node_ - rows_);
      put_bytes(payload, allocated_rows_.view());
      put_bytes(payload, allocated_by_.view());
      put_section(raw, Section::kAllocations, payload);
    }
  }
  if (!buffers_.empty()) put_section(raw, Section::kBuffers, buffers_);
  buffers_.clear();
  generations_.clear();
  hashed_.clear();
  hashes_.clear();
  allocated_rows_.clear();
  allocated_by_.clear();
  has_generations_ = false;
  rows_ = text_row_ = hashed_row_ = allocated_row_ = 0;
  address_ = 0;
  if (!raw.empty()) write_chunk(raw);
}

void SnapshotWriter::write_chunk(std::string_view raw) {
  if (raw.size() > file::kLargestChunk) {  // one object with tens of millions of references
    error_ = error_ != 0 ? error_ : EFBIG;
    return;
  }
  write(make_chunk(raw, file::kCompressionLevel));
}

void SnapshotWriter::write(std::string_view bytes) {
  file_bytes_ += bytes.size();
  if (!fd_.is_open()) {
    bytes_ += bytes;
    return;
  }
  if (error_ == 0) error_ = write_all(fd_.get(), bytes);
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
  write_chunk(raw);
  if (error_ == 0) return Ok{};
  return system_error("cannot write " + path_, error_);
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
