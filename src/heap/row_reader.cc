#include "heap/row_reader.h"

#include <algorithm>
#include <utility>

#include "base/chunk.h"

namespace plimsoll::heap {
namespace {

constexpr std::uint64_t kLargestObject = std::uint64_t{1} << 48U;  // bytes

}  // namespace

struct RowReader::Columns {
  std::size_t rows;
  VarintCursor types, sizes, refcounts, addresses, shapes;
  std::string_view kinds, low_targets, middle_targets;
  VarintCursor high_targets, names, texts;
  std::string_view details;
  VarintCursor hashes;

  explicit Columns(VarintCursor& cursor)
      : rows(cursor.count()),
        types(cursor.bytes()),
        sizes(cursor.bytes()),
        refcounts(cursor.bytes()),
        addresses(cursor.bytes()),
        shapes(cursor.bytes()),
        kinds(cursor.bytes()),
        low_targets(cursor.bytes()),
        middle_targets(cursor.bytes()),
        high_targets(cursor.bytes()),
        names(cursor.bytes()),
        texts(cursor.bytes()),
        details(cursor.bytes()),
        hashes(cursor.bytes()) {}
};

struct RowReader::ColumnsOfVersion1 {
  std::size_t rows;
  VarintCursor types, sizes, refcounts, addresses, degrees;
  std::string_view kinds;
  VarintCursor targets, names, texts;

  explicit ColumnsOfVersion1(VarintCursor& cursor)
      : rows(cursor.count()),
        types(cursor.bytes()),
        sizes(cursor.bytes()),
        refcounts(cursor.bytes()),
        addresses(cursor.bytes()),
        degrees(cursor.bytes()),
        kinds(cursor.bytes()),
        targets(cursor.bytes()),
        names(cursor.bytes()),
        texts(cursor.bytes()) {}
};

// ---- rows ----

bool RowReader::rows(VarintCursor& cursor) {
  Columns columns(cursor);
  // All edges but those to classes have a target. Of these a row has one at most, or else kinds of its own.
  const auto to_class = std::count(columns.kinds.begin(), columns.kinds.end(), static_cast<char>(EdgeKind::kType));
  const std::size_t most_edges = columns.low_targets.size() + static_cast<std::size_t>(to_class) + columns.rows;
  const std::uint64_t edges_before = edges_.is_beside() ? most_edges_ : snapshot_.kind.size();
  if (cursor.failed() || snapshot_.type.size() + columns.rows > kMostNodes || edges_before + most_edges > kMostEdges)
    return false;
  begin_block();
  const auto first = static_cast<Node>(snapshot_.type.size());
  std::size_t good = types(columns.types, columns.rows);  // rows before the first with a number that cannot be
  good = append(snapshot_.size, columns.sizes, good, [&](std::uint64_t& size) {
    std::uint64_t& usual = rows_of_type(snapshot_.type[snapshot_.size.size()]).size;
    if (size != 0) usual = size - 1;
    size = usual;
    return size <= kLargestObject;
  });
  good = addresses(columns.addresses, good);
  good = refcounts(columns.refcounts, good);
  good = details(columns.details, columns.hashes, first, good);
  names(columns.names);
  EdgeColumns read{columns.shapes,         columns.kinds,        columns.low_targets,
                   columns.middle_targets, columns.high_targets, names_};
  if (edges_.is_beside()) {
    most_edges_ += most_edges;
    if (good == columns.rows) edges_.put(read, std::move(names_), edge_rows(first, good, most_edges));
    return good == columns.rows && texts(columns.texts, first);
  }
  good = edges_.read(read, edge_rows(first, good, most_edges));
  cut(first + good);
  return good == columns.rows && read.at_end() && texts(columns.texts, first);
}

EdgeRows RowReader::edge_rows(Node first, std::size_t rows, std::size_t most_edges) const {
  const auto start = snapshot_.type.begin() + first;
  return {first, {start, start + static_cast<std::ptrdiff_t>(rows)}, snapshot_.types.size(), most_edges, room_};
}

bool RowReader::rows_of_version_1(VarintCursor& cursor) {
  if (edges_.is_beside()) return false;  // there are not so many that this would be worth it
  ColumnsOfVersion1 columns(cursor);
  if (cursor.failed() || snapshot_.type.size() + columns.rows > kMostNodes ||
      snapshot_.kind.size() + columns.kinds.size() > kMostEdges)
    return false;
  begin_block();
  const auto first = static_cast<Node>(snapshot_.type.size());
  std::size_t good = types(columns.types, columns.rows);
  good = append(snapshot_.size, columns.sizes, good, [](std::uint64_t& size) { return size <= kLargestObject; });
  good = addresses(columns.addresses, good);
  good = refcounts(columns.refcounts, good);
  EdgeColumnsOfVersion1 read{columns.degrees, columns.kinds, columns.targets, columns.names, snapshot_.names.size()};
  good = edges_.read(read, edge_rows(first, good, columns.kinds.size()));
  cut(first + good);
  return good == columns.rows && read.at_end() && texts(columns.texts, first);
}

void RowReader::begin_block() {
  ++block_;
  by_type_.resize(snapshot_.types.size());
}

// Columns of one length, also after damage.
void RowReader::cut(std::size_t nodes) {
  snapshot_.type.resize(nodes);
  snapshot_.size.resize(nodes);
  snapshot_.address.resize(nodes);
  snapshot_.refcount.resize(nodes);
  if (snapshot_.generation.size() > nodes) snapshot_.generation.resize(nodes);
  while (!snapshot_.hashed.empty() && snapshot_.hashed.back() >= nodes) {
    snapshot_.hashed.pop_back();
    snapshot_.hash.pop_back();
  }
}

// One column after the other, which is quicker than row by row. Each tells how many of `rows` rows there were before
// one that cannot be.
std::size_t RowReader::types(VarintCursor numbers, std::size_t rows) {
  return append(snapshot_.type, numbers, rows, [&](std::uint64_t type, std::uint32_t& out) {
    out = static_cast<std::uint32_t>(type);
    return type < snapshot_.types.size();
  });
}

std::size_t RowReader::addresses(VarintCursor numbers, std::size_t rows) {
  std::uint64_t address = 0;
  return append(snapshot_.address, numbers, rows, [&](std::uint64_t& step) {
    step = address += step * 8;
    return true;
  });
}

std::size_t RowReader::refcounts(VarintCursor numbers, std::size_t rows) {
  return append(snapshot_.refcount, numbers, rows, [](std::uint64_t count, std::uint32_t& out) {
    out = static_cast<std::uint32_t>(count);
    return count <= UINT32_MAX;
  });
}

// Up to one that there is not.
void RowReader::names(VarintCursor numbers) {
  names_.clear();
  while (!numbers.at_end()) {
    const std::uint64_t name = numbers.varint();
    if (numbers.failed() || name >= snapshot_.names.size()) return;
    names_.push_back(static_cast<std::uint32_t>(name));
  }
}

std::size_t RowReader::details(std::string_view details, VarintCursor hashes, Node first, std::size_t rows) {
  room_.make(snapshot_.hashed, hashes.remaining() / sizeof(std::uint64_t));
  room_.make(snapshot_.hash, hashes.remaining() / sizeof(std::uint64_t));
  rows = std::min(rows, details.size());
  for (std::size_t row = 0; row < rows; ++row) {
    const Node node = first + static_cast<Node>(row);
    std::uint8_t& usual = rows_of_type(snapshot_.type[node]).details;
    if (details[row] != 0) usual = static_cast<std::uint8_t>(details[row]);
    if (usual > 2 * file::kHasHash) return row;
    const bool has_hash = usual > file::kHasHash;
    put_generation(node, static_cast<Generation>(usual - 1 - (has_hash ? file::kHasHash : 0)));
    if (has_hash && !put_hash(node, hashes)) return row;
  }
  return rows;
}

bool RowReader::details_of_version_1(VarintCursor& cursor) {
  const std::uint64_t first = cursor.varint();
  const std::string_view generations = cursor.bytes();
  VarintCursor skipped(cursor.bytes());
  VarintCursor hashes(cursor.bytes());
  const std::size_t rows = snapshot_.type.size();
  if (cursor.failed() || first > rows || generations.size() > rows - first) return false;
  auto node = static_cast<Node>(first);
  for (const char generation : generations) {
    const auto number = static_cast<std::uint8_t>(generation);
    if (number >= kGenerationCount) return false;
    put_generation(node++, static_cast<Generation>(number));
  }
  if (!snapshot_.hashed.empty() && snapshot_.hashed.back() >= first) return false;
  for (std::uint64_t hashed = first; !skipped.at_end(); ++hashed) {
    hashed += skipped.bounded(kMostNodes);
    if (skipped.failed() || hashed >= rows || !put_hash(static_cast<Node>(hashed), hashes)) return false;
  }
  return true;
}

// Of no object is it known, so far or at all, as long as there are none.
void RowReader::put_generation(Node node, Generation generation) {
  auto& generations = snapshot_.generation;
  if (generations.empty() && generation == Generation::kUnknown) return;
  if (generations.size() <= node) {
    room_.make(generations, snapshot_.type.size() - generations.size());
    generations.resize(snapshot_.type.size(), Generation::kUnknown);
  }
  generations[node] = generation;
}

bool RowReader::put_hash(Node node, VarintCursor& hashes) {
  const std::string_view bytes = hashes.take(sizeof(std::uint64_t));
  if (hashes.failed()) return false;
  snapshot_.hashed.push_back(node);
  snapshot_.hash.push_back(u32_at(bytes, 0) | std::uint64_t{u32_at(bytes, 4)} << 32U);
  return true;
}

bool RowReader::texts(VarintCursor& cursor, Node first) {
  std::uint64_t node = first;
  while (!cursor.at_end()) {
    node += cursor.bounded(kMostNodes);
    const std::string_view text = cursor.bytes();
    if (cursor.failed() || node >= snapshot_.type.size() || snapshot_.texts.size() + text.size() > UINT32_MAX)
      return false;
    snapshot_.texts += text;
    snapshot_.text_node.push_back(static_cast<Node>(node));
    snapshot_.text_end.push_back(static_cast<std::uint32_t>(snapshot_.texts.size()));
    ++node;
  }
  return true;
}

// ---- columns ----

// Appends up to `rows` numbers to a column, as `convert` makes them into its values; how many there were before one
// that it does not take.
template <typename T, typename Convert>
std::size_t RowReader::append(std::vector<T>& column, VarintCursor numbers, std::size_t rows, Convert convert) {
  room_.make(column, rows);
  const std::size_t before = column.size();
  column.resize(before + rows);
  T* out = column.data() + before;
  for (std::size_t row = 0; row < rows; ++row) {
    const std::uint64_t number = numbers.varint();
    if (numbers.failed() || !convert(number, out[row])) return row;
  }
  return rows;
}

// Likewise; `convert` changes them.
template <typename Convert>
std::size_t RowReader::append(WideColumn& column, VarintCursor numbers, std::size_t rows, Convert convert) {
  room_.make(column, rows);
  for (std::size_t row = 0; row < rows; ++row) {
    std::uint64_t number = numbers.varint();
    if (numbers.failed() || !convert(number)) return row;
    column.push_back(number);
  }
  return rows;
}

}  // namespace plimsoll::heap
