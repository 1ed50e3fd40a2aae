#include "heap/snapshot_reader.h"

#include <algorithm>
#include <array>
#include <optional>
#include <thread>
#include <utility>

#include "base/chunk.h"
#include "base/file_bytes.h"
#include "base/varint.h"
#include "heap/row_reader.h"
#include "heap/snapshot_format.h"

namespace plimsoll::heap {
namespace {

using file::Section;

// Of addresses, and of stretches of memory: sums of two do not overflow.
constexpr std::uint64_t kHighestAddress = std::uint64_t{1} << 62U;
constexpr std::uint64_t kMostSaid = std::uint64_t{1} << 48U;     // bytes of an object
constexpr std::uint32_t kLargestPool = std::uint32_t{1} << 24U;  // bytes, and blocks

// Reads sections into a Snapshot. Targets of edges are checked at the end: they may lead to later nodes.
class Decoder {
 public:
  // `raw_bytes`: as many as all chunks will have, more or less.
  Decoder(Snapshot& snapshot, std::uint64_t raw_bytes)
      : snapshot_(snapshot), rows_(snapshot), raw_expected_(raw_bytes) {}

  // From now on edges are read by a thread beside, if the system gives one. False if not.
  bool read_beside() { return rows_.edges().read_beside(); }
  // What was given to it, and to wait until it is done with the first so many.
  [[nodiscard]] std::uint64_t blocks_beside() { return rows_.edges().blocks(); }
  void wait_for(std::uint64_t blocks) { rows_.edges().wait_for(blocks); }

  bool chunk(std::string_view raw) {
    raw_read_ += raw.size();
    rows_.progress(raw_read_, raw_expected_ = std::max(raw_expected_, raw_read_));
    VarintCursor cursor(raw);
    while (!cursor.at_end()) {
      const std::uint64_t kind = cursor.varint();
      const std::string_view payload = cursor.bytes();
      if (cursor.failed() || !section(kind, payload)) return false;
    }
    return true;
  }

  // After the last chunk; false if the thread beside met something that cannot be.
  bool finish() {
    if (!rows_.edges().finish()) return false;
    if (!has_nodes_) snapshot_.object_count = snapshot_.type.size();
    for (Type& type : snapshot_.types)
      if (type.object >= snapshot_.object_count) type.object = kNoNode;
    if (!snapshot_.generation.empty()) snapshot_.generation.resize(snapshot_.object_count, Generation::kUnknown);
    while (!snapshot_.hashed.empty() && snapshot_.hashed.back() >= snapshot_.object_count) {
      snapshot_.hashed.pop_back();
      snapshot_.hash.pop_back();
    }
    std::erase_if(snapshot_.buffers, [&](const Buffer& each) { return each.owner >= snapshot_.object_count; });
    resolve_edges();
    resolve_stacks();
    add_said_bytes();
    replace_texts();
    sort_memory();
    std::erase_if(snapshot_.weak, [&](const auto& edge) { return edge.second >= snapshot_.type.size(); });
    return true;
  }

 private:
  bool section(std::uint64_t kind, std::string_view payload) {
    VarintCursor cursor(payload);
    switch (static_cast<Section>(kind)) {
      case Section::kMeta: return meta(cursor);
      case Section::kTypes: return types(cursor);
      case Section::kNames: return names(cursor);
      case Section::kObjects: return !has_nodes_ && rows_.rows_of_version_1(cursor);
      case Section::kNodes: return begin_nodes(cursor) && rows_.rows_of_version_1(cursor);
      case Section::kObjectRows: return !has_nodes_ && rows_.rows(cursor);
      case Section::kNodeRows: return begin_nodes(cursor) && rows_.rows(cursor);
      case Section::kClasses: return classes(cursor);
      case Section::kEnd: return end(cursor);
      case Section::kDetails: return rows_.details_of_version_1(cursor);
      case Section::kPools: return pools(cursor);
      case Section::kRegions: return regions(cursor);
      case Section::kAllocations: return allocations(cursor);
      case Section::kBuffers: return buffers(cursor);
      case Section::kSaid: return said(cursor);
      case Section::kStacks: return read_stacks(payload, snapshot_.allocated, stack_of_);
    }
    return true;  // a section of a newer minor version
  }

  bool meta(VarintCursor& cursor) {
    while (!cursor.at_end()) {
      const std::string_view name = cursor.bytes();
      const std::string_view value = cursor.bytes();
      if (cursor.failed()) return false;
      snapshot_.meta.emplace_back(name, value);
    }
    return true;
  }

  bool types(VarintCursor& cursor) {
    while (!cursor.at_end()) {
      const std::string_view name = cursor.bytes();
      if (cursor.failed()) return false;
      snapshot_.types.push_back({std::string(name), kNoNode});
    }
    return true;
  }

  bool names(VarintCursor& cursor) {
    while (!cursor.at_end()) {
      const std::string_view name = cursor.bytes();
      if (cursor.failed()) return false;
      snapshot_.names.emplace_back(name);
    }
    return true;
  }

  bool begin_nodes(VarintCursor& cursor) {
    const std::uint64_t first = cursor.varint();
    if (cursor.failed() || first != snapshot_.type.size()) return false;
    if (!has_nodes_) snapshot_.object_count = snapshot_.type.size();
    has_nodes_ = true;
    return true;
  }

  bool classes(VarintCursor& cursor) {
    while (!cursor.at_end()) {
      const std::uint64_t type = cursor.varint();
      const std::uint64_t object = cursor.bounded(kMostNodes);
      if (cursor.failed() || type >= snapshot_.types.size()) return false;
      snapshot_.types[type].object = static_cast<Node>(object);
    }
    return true;
  }

  // Of rows that have been read: they stand behind them in the same chunk.
  bool allocations(VarintCursor& cursor) {
    std::uint64_t node = cursor.varint();
    VarintCursor skipped(cursor.bytes());
    VarintCursor stacks(cursor.bytes());
    if (cursor.failed() || node > snapshot_.type.size()) return false;
    while (!skipped.at_end()) {
      node += skipped.bounded(kMostNodes);
      const auto stack = static_cast<std::uint32_t>(stacks.bounded(UINT32_MAX));
      if (skipped.failed() || stacks.failed() || node >= snapshot_.type.size()) return false;
      allocated_.emplace_back(static_cast<Node>(node), stack);
      ++node;
    }
    return true;
  }

  bool pools(VarintCursor& cursor) {
    std::uint64_t address = 0;
    for (bool is_first = true; !cursor.at_end(); is_first = false) {
      const std::uint64_t step = cursor.bounded(kHighestAddress / file::kPoolUnit);
      if (step == 0 && !is_first) return false;
      address += step * file::kPoolUnit;
      Pool pool{address, 0, 0, 0, 0};
      for (std::uint32_t* number : {&pool.block_bytes, &pool.used, &pool.capacity, &pool.arena})
        *number = static_cast<std::uint32_t>(cursor.bounded(UINT32_MAX));
      if (cursor.failed() || address > kHighestAddress) return false;
      if (pool.used > pool.capacity || pool.block_bytes > kLargestPool || pool.capacity > kLargestPool) return false;
      snapshot_.pools.push_back(pool);
    }
    return true;
  }

  bool regions(VarintCursor& cursor) {
    std::uint64_t start = 0, end = 0;
    while (!cursor.at_end()) {
      start += cursor.bounded(kHighestAddress);
      Region region;
      region.start = start;
      region.size = cursor.bounded(kHighestAddress);
      region.resident = cursor.bounded(region.size);
      const std::uint64_t flags = cursor.varint();
      region.is_writable = (flags & 1U) != 0;
      region.is_executable = (flags & 2U) != 0;
      region.name = cursor.bytes();
      if (cursor.failed() || start > kHighestAddress || start < end) return false;
      end = start + region.size;
      snapshot_.regions.push_back(std::move(region));
    }
    return true;
  }

  // Owners are checked at the end, when it is known which nodes are objects.
  bool buffers(VarintCursor& cursor) {
    std::uint64_t owner = snapshot_.buffers.empty() ? 0 : snapshot_.buffers.back().owner;
    while (!cursor.at_end()) {
      owner += cursor.bounded(kMostNodes);
      Buffer buffer;
      buffer.owner = static_cast<Node>(owner);
      buffer.start = cursor.bounded(kHighestAddress);
      buffer.size = cursor.bounded(kHighestAddress);
      if (cursor.failed() || owner >= kMostNodes) return false;
      snapshot_.buffers.push_back(buffer);
    }
    return true;
  }

  // Of objects that have been read.
  bool said(VarintCursor& cursor) {
    std::uint64_t node = 0;
    for (bool is_first = true; !cursor.at_end(); is_first = false) {
      const std::uint64_t step = cursor.bounded(kMostNodes);
      if (step == 0 && !is_first) return false;
      node += step;
      const std::uint64_t bytes = cursor.bounded(kMostSaid);
      const std::string_view text = cursor.bytes();
      if (cursor.failed() || node >= snapshot_.type.size()) return false;
      if (bytes != 0) said_bytes_.emplace_back(static_cast<Node>(node), bytes);
      if (text.empty()) continue;  // which leaves what there was
      said_texts_ += text;
      if (said_texts_.size() + snapshot_.texts.size() > UINT32_MAX) return false;
      said_.push_back({static_cast<Node>(node), static_cast<std::uint32_t>(said_texts_.size() - text.size()),
                       static_cast<std::uint32_t>(text.size())});
    }
    return true;
  }

  // This and replace_texts() once for all sections, however many there are: they go over all nodes.
  void add_said_bytes() {
    if (said_bytes_.empty()) return;
    std::vector<std::uint64_t> sizes = snapshot_.size.values();
    for (const auto& [node, bytes] : said_bytes_) sizes[node] += bytes;
    snapshot_.size = WideColumn(sizes);
  }

  // What was said last of a node takes the place of its text.
  void replace_texts() {
    if (said_.empty() || snapshot_.texts.size() + said_texts_.size() > UINT32_MAX) return;
    std::stable_sort(said_.begin(), said_.end(), [](const SaidText& a, const SaidText& b) { return a.node < b.node; });
    const std::string before = std::exchange(snapshot_.texts, {});
    const std::vector<Node> nodes = std::exchange(snapshot_.text_node, {});
    const std::vector<std::uint32_t> ends = std::exchange(snapshot_.text_end, {});
    const auto put = [&](Node node, std::string_view text) {
      snapshot_.texts += text;
      snapshot_.text_node.push_back(node);
      snapshot_.text_end.push_back(static_cast<std::uint32_t>(snapshot_.texts.size()));
    };
    std::size_t next = 0;
    const auto put_said_up_to = [&](Node node) {
      for (; next < said_.size() && said_[next].node <= node; ++next)
        if (next + 1 == said_.size() || said_[next + 1].node != said_[next].node)
          put(said_[next].node, std::string_view(said_texts_).substr(said_[next].start, said_[next].size));
    };
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      put_said_up_to(nodes[i]);
      if (!snapshot_.text_node.empty() && snapshot_.text_node.back() == nodes[i]) continue;
      const std::uint32_t start = i == 0 ? 0 : ends[i - 1];
      put(nodes[i], std::string_view(before).substr(start, ends[i] - start));
    }
    put_said_up_to(kNoNode);
  }

  bool end(VarintCursor& cursor) {
    const std::uint64_t objects = cursor.varint();
    const std::uint64_t nodes = cursor.varint();
    snapshot_.lost_edges = cursor.varint();
    snapshot_.complete =
        !cursor.failed() && nodes == snapshot_.type.size() && objects == (has_nodes_ ? snapshot_.object_count : nodes);
    return !cursor.failed();
  }

  // Edges to a class, whose target is the number of the type so far. False if there is a class that is not in the file.
  bool resolve_classes() {
    std::vector<Node>& targets = snapshot_.graph.targets;
    for (std::size_t edge = 0; edge < targets.size(); ++edge) {
      if (snapshot_.kind[edge] != EdgeKind::kType) continue;
      const Node object = snapshot_.types[targets[edge]].object;
      if (object == kNoNode) return false;
      targets[edge] = object;
    }
    return true;
  }

  // A file that somebody else has written may have several sections of these, in any order.
  void sort_memory() {
    std::vector<Pool>& pools = snapshot_.pools;
    std::stable_sort(pools.begin(), pools.end(), [](const Pool& a, const Pool& b) { return a.address < b.address; });
    const auto is_same = [](const Pool& a, const Pool& b) { return a.address == b.address; };
    pools.erase(std::unique(pools.begin(), pools.end(), is_same), pools.end());
    std::vector<Region>& regions = snapshot_.regions;
    std::stable_sort(regions.begin(), regions.end(),
                     [](const Region& a, const Region& b) { return a.start < b.start; });
    std::uint64_t end = 0;
    std::erase_if(regions, [&](const Region& region) {
      if (region.start < end) return true;  // inside the one before
      end = region.start + region.size;
      return false;
    });
  }

  // Edges to a class get their target; edges that lead nowhere, of damaged files, are left out and counted.
  void resolve_edges() {
    if (rows_.edges().highest_target() < snapshot_.type.size() && resolve_classes()) return;
    Graph& graph = snapshot_.graph;
    std::uint32_t kept = 0;
    std::uint32_t edge = 0;
    for (Node node = 0; node < snapshot_.type.size(); ++node) {
      for (; edge < graph.first[node + 1]; ++edge) {
        const bool is_type = snapshot_.kind[edge] == EdgeKind::kType;
        const Node target = is_type ? snapshot_.types[snapshot_.type[node]].object : graph.targets[edge];
        if (target >= snapshot_.type.size()) {
          ++snapshot_.lost_edges;
          continue;
        }
        graph.targets[kept] = target;
        snapshot_.kind[kept] = snapshot_.kind[edge];
        snapshot_.name[kept++] = snapshot_.name[edge];
      }
      graph.first[node + 1] = kept;
    }
    graph.targets.resize(kept);
    snapshot_.kind.resize(kept);
    snapshot_.name.resize(kept);
  }

  void resolve_stacks() {
    if (snapshot_.allocated.frames.empty()) return;
    snapshot_.allocated.of.assign(snapshot_.object_count, AllocationStacks::kNone);
    for (const auto& [node, number] : allocated_)
      if (node < snapshot_.object_count && number < stack_of_.size()) snapshot_.allocated.of[node] = stack_of_[number];
  }

  Snapshot& snapshot_;
  RowReader rows_;
  std::vector<std::pair<Node, std::uint32_t>> allocated_;   // and the numbers of their stacks
  std::vector<std::uint32_t> stack_of_;                     // by number
  std::vector<std::pair<Node, std::uint64_t>> said_bytes_;  // that objects have more
  // What an object is called, in said_texts_.
  struct SaidText {
    Node node = 0;
    std::uint32_t start = 0, size = 0;
  };
  std::vector<SaidText> said_;
  std::string said_texts_;
  std::uint64_t raw_read_ = 0, raw_expected_;  // bytes of chunks
  bool has_nodes_ = false;
};

Snapshot read_chunks(std::string_view chunks, std::uint64_t budget) {
  Snapshot snapshot;
  Decoder decoder(snapshot, raw_bytes_of(chunks, budget));
  std::string raw;
  while (next_chunk(chunks, std::min<std::uint64_t>(file::kLargestChunk, budget), raw)) {
    budget -= raw.size();
    if (!decoder.chunk(raw)) {
      snapshot.complete = false;
      break;
    }
  }
  decoder.finish();
  return snapshot;
}

// Likewise, with a thread for the edges. None if there is no thread, or if anything in a chunk cannot be: what is to be
// kept then is found out by going one after the other.
std::optional<Snapshot> read_chunks_beside(std::string_view chunks, std::uint64_t budget) {
  constexpr std::size_t kAtOnce = 3;                         // chunks: of which edges are read, that wait, and the next
  constexpr std::size_t kLongChunk = std::size_t{1} << 24U;  // one at a time of these
  Snapshot snapshot;
  // The bytes of chunks outlive the thread that reads them.
  std::array<std::string, kAtOnce> raw;
  std::array<std::uint64_t, kAtOnce> blocks{};
  Decoder decoder(snapshot, raw_bytes_of(chunks, budget));
  if (!decoder.read_beside()) return std::nullopt;
  for (std::size_t i = 0;; i = (i + 1) % kAtOnce) {
    decoder.wait_for(blocks[i]);
    if (!next_chunk(chunks, std::min<std::uint64_t>(file::kLargestChunk, budget), raw[i])) break;
    budget -= raw[i].size();
    if (!decoder.chunk(raw[i])) return std::nullopt;
    blocks[i] = decoder.blocks_beside();
    if (raw[i].size() < kLongChunk) continue;
    decoder.wait_for(blocks[i]);
    raw[i] = {};
  }
  if (!decoder.finish()) return std::nullopt;
  return snapshot;
}

bool is_worth_it(ReadBeside beside, std::string_view chunks) {
  constexpr std::size_t kLongFile = std::size_t{1} << 20U;
  if (beside != ReadBeside::kIfWorthIt) return beside == ReadBeside::kAlways;
  return chunks.size() >= kLongFile && std::thread::hardware_concurrency() > 1;
}

}  // namespace

Result<Snapshot> read_snapshot(std::string_view bytes, ReadBeside beside) {
  if (!bytes.starts_with(file::kMagic) || bytes.size() < file::kFileHeaderSize)
    return Error{ErrorKind::kBadInput, "not a heap snapshot of Plimsoll"};
  const auto major = static_cast<unsigned char>(bytes[8]) + 256U * static_cast<unsigned char>(bytes[9]);
  if (major == 0 || major > file::kMajorVersion)
    return Error{ErrorKind::kBadInput, "format version " + std::to_string(major) +
                                           "; this Plimsoll reads versions up to " +
                                           std::to_string(file::kMajorVersion)};
  const std::uint64_t budget = file::kRatioFree + file::kLargestRatio * bytes.size();
  bytes.remove_prefix(file::kFileHeaderSize);
  std::optional<Snapshot> read;
  if (is_worth_it(beside, bytes)) read = read_chunks_beside(bytes, budget);
  if (!read) read = read_chunks(bytes, budget);
  add_roots(*read);
  return *std::move(read);
}

Result<Snapshot> read_snapshot_file(const std::string& path) {
  const Result<FileBytes> file = FileBytes::read(path);
  if (!file.ok()) return file.error();
  if (file.value().view().empty()) return Error{ErrorKind::kBadInput, path + " is empty"};
  Result<Snapshot> snapshot = read_snapshot(file.value().view());
  if (!snapshot.ok()) return Error{snapshot.error().kind, path + ": " + snapshot.error().message};
  return snapshot;
}

}  // namespace plimsoll::heap
