#include "heap/row_reader.h"

#include <algorithm>

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

// ---- edges ----

// begin_row() tells how many edges the next row has, next() gives one after the other, end_row() ends it; each but the
// last is false if that cannot be.
struct RowReader::Edges {
  RowReader& reader;
  VarintCursor shapes;
  std::string_view kinds, low_targets, middle_targets;
  VarintCursor high_targets;
  std::size_t next_target = 0;
  Pattern own;            // of the next row with a shape of its own
  Pattern at;             // of the row
  std::size_t types = 0;  // edges to the class that it has
  bool is_own = false;

  Edges(RowReader& owner, const Columns& columns)
      : reader(owner),
        shapes(columns.shapes),
        kinds(columns.kinds),
        low_targets(columns.low_targets.substr(0, columns.middle_targets.size())),
        middle_targets(columns.middle_targets),
        high_targets(columns.high_targets) {}

  bool begin_row(Node node, std::uint64_t& degree) {
    const std::uint64_t shape = shapes.varint();
    if (shapes.failed() || shape > kinds.size() - own.kinds + 1) return false;
    is_own = shape != 0;
    if (is_own) own.degree = static_cast<std::uint32_t>(shape - 1);
    at = is_own ? own : reader.rows_of_type(reader.snapshot_.type[node]).pattern;
    degree = at.degree;
    types = 0;
    return true;
  }
  bool next(Node holder, EdgeKind& kind, Node& target, std::uint32_t& name) {
    kind = static_cast<EdgeKind>(kinds[at.kinds++]);
    name = 0;
    if (kind == EdgeKind::kType) {
      ++types;
      target = kNoNode;  // see Decoder::resolve_edges
      return true;
    }
    if (static_cast<std::uint8_t>(kind) >= kEdgeKindCount || next_target == low_targets.size()) return false;
    const std::uint64_t high = high_targets.bounded(kMostNodes >> 15U);
    const std::uint64_t step = static_cast<std::uint8_t>(low_targets[next_target]) |
                               std::uint64_t{static_cast<std::uint8_t>(middle_targets[next_target])} << 8U |
                               high << 16U;
    ++next_target;
    const std::int64_t sum = std::int64_t{holder} + unzigzag(step);
    if (high_targets.failed() || sum < 0 || sum >= static_cast<std::int64_t>(kMostNodes)) return false;
    target = static_cast<Node>(sum);
    if (kind != EdgeKind::kNamed) return true;
    if (at.names == reader.names_.size()) return false;
    name = reader.names_[at.names++];
    return true;
  }
  void end_row(Node node) {
    if (!is_own) return;
    const bool is_pattern = own.degree <= file::kLongestPattern && types <= 1;
    reader.rows_of_type(reader.snapshot_.type[node]).pattern = is_pattern ? own : Pattern{};
    own = {at.kinds, at.names, 0};
  }
  [[nodiscard]] bool at_end() const { return own.kinds == kinds.size(); }
};

struct RowReader::EdgesOfVersion1 {
  VarintCursor degrees;
  std::string_view kinds;
  VarintCursor targets, names;
  std::size_t name_count;

  EdgesOfVersion1(const RowReader& reader, const ColumnsOfVersion1& columns)
      : degrees(columns.degrees),
        kinds(columns.kinds),
        targets(columns.targets),
        names(columns.names),
        name_count(reader.snapshot_.names.size()) {}

  bool begin_row(Node, std::uint64_t& degree) {
    degree = degrees.varint();
    return !degrees.failed() && degree <= kinds.size();
  }
  bool next(Node holder, EdgeKind& kind, Node& target, std::uint32_t& name) {
    kind = static_cast<EdgeKind>(kinds.front());
    kinds.remove_prefix(1);
    target = kNoNode;
    name = 0;
    if (static_cast<std::uint8_t>(kind) >= kEdgeKindCount) return false;
    if (kind != EdgeKind::kType) {
      std::int64_t sum = 0;
      if (__builtin_add_overflow(std::int64_t{holder}, targets.signed_varint(), &sum) || targets.failed() || sum < 0 ||
          sum >= static_cast<std::int64_t>(kMostNodes))
        return false;
      target = static_cast<Node>(sum);
    }
    if (kind != EdgeKind::kNamed) return true;
    const std::uint64_t number = names.varint();
    name = static_cast<std::uint32_t>(number);
    return !names.failed() && number < name_count;
  }
  void end_row(Node) {}
  [[nodiscard]] bool at_end() const { return kinds.empty(); }
};

// Those of `rows` rows from `first` on; how many there were before one whose edges cannot be.
template <typename EdgeColumns>
std::size_t RowReader::edges(EdgeColumns& columns, Node first, std::size_t rows, std::size_t most_edges) {
  Graph& graph = snapshot_.graph;
  const std::size_t before = graph.targets.size();
  resize_edges(before + most_edges);
  make_room(graph.first, rows);
  Node* const targets = graph.targets.data();
  EdgeKind* const kinds = snapshot_.kind.data();
  std::uint32_t* const names = snapshot_.name.data();
  std::size_t row = 0;
  auto end = static_cast<std::uint32_t>(before);  // of the edges of good rows
  for (; row < rows; ++row) {
    const Node holder = first + static_cast<Node>(row);
    const std::size_t weak = snapshot_.weak.size();
    std::uint64_t degree = 0;
    if (!columns.begin_row(holder, degree) || degree > before + most_edges - end) break;
    std::uint32_t edge = end;
    bool is_good = true;
    for (std::uint64_t i = 0; i < degree && is_good; ++i) {
      EdgeKind kind{};
      Node target = 0;
      std::uint32_t name = 0;
      is_good = columns.next(holder, kind, target, name);
      if (kind == EdgeKind::kWeak) {
        snapshot_.weak.emplace_back(holder, target);
        continue;
      }
      targets[edge] = target;
      kinds[edge] = kind;
      names[edge++] = name;
    }
    if (!is_good) {
      snapshot_.weak.resize(weak);
      break;
    }
    columns.end_row(holder);
    end = edge;
    graph.first.push_back(end);
  }
  resize_edges(end);
  return row;
}

void RowReader::resize_edges(std::size_t count) {
  const auto resize = [&](auto& column) {
    if (count > column.size()) make_room(column, count - column.size());
    column.resize(count);
  };
  resize(snapshot_.graph.targets);
  resize(snapshot_.kind);
  resize(snapshot_.name);
}

// ---- rows ----

bool RowReader::rows(VarintCursor& cursor) {
  Columns columns(cursor);
  // Each edge but those to classes has a target, and each row has one of those at most, or else kinds of its own.
  const std::size_t most_edges = columns.low_targets.size() + columns.kinds.size() + columns.rows;
  if (cursor.failed() || snapshot_.type.size() + columns.rows > kMostNodes ||
      snapshot_.kind.size() + most_edges > kMostEdges)
    return false;
  ++block_;
  by_type_.resize(snapshot_.types.size());
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
  names_.clear();
  while (!columns.names.at_end()) {
    const std::uint64_t name = columns.names.varint();
    if (columns.names.failed() || name >= snapshot_.names.size()) break;
    names_.push_back(static_cast<std::uint32_t>(name));
  }
  Edges read(*this, columns);
  good = edges(read, first, good, most_edges);
  cut(first + good);
  return good == columns.rows && read.at_end() && texts(columns.texts, first);
}

bool RowReader::rows_of_version_1(VarintCursor& cursor) {
  ColumnsOfVersion1 columns(cursor);
  if (cursor.failed() || snapshot_.type.size() + columns.rows > kMostNodes ||
      snapshot_.kind.size() + columns.kinds.size() > kMostEdges)
    return false;
  const auto first = static_cast<Node>(snapshot_.type.size());
  std::size_t good = types(columns.types, columns.rows);
  good = append(snapshot_.size, columns.sizes, good, [](std::uint64_t& size) { return size <= kLargestObject; });
  good = addresses(columns.addresses, good);
  good = refcounts(columns.refcounts, good);
  EdgesOfVersion1 read(*this, columns);
  good = edges(read, first, good, columns.kinds.size());
  cut(first + good);
  return good == columns.rows && read.at_end() && texts(columns.texts, first);
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

std::size_t RowReader::details(std::string_view details, VarintCursor hashes, Node first, std::size_t rows) {
  make_room(snapshot_.hashed, hashes.remaining() / sizeof(std::uint64_t));
  make_room(snapshot_.hash, hashes.remaining() / sizeof(std::uint64_t));
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
    make_room(generations, snapshot_.type.size() - generations.size());
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
  make_room(column, rows);
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
  make_room(column, rows);
  for (std::size_t row = 0; row < rows; ++row) {
    std::uint64_t number = numbers.varint();
    if (numbers.failed() || !convert(number)) return row;
    column.push_back(number);
  }
  return rows;
}

// Room for more of a column, and for as much as the rest of the file will have if it is like what has been read: a
// column that is copied touches its pages twice, and that takes longer than decoding it. Pages that nothing is
// written to are no memory.
template <typename Column>
void RowReader::make_room(Column& column, std::size_t more) const {
  const std::size_t needed = column.size() + more;
  if (needed <= column.capacity()) return;
  constexpr double kSlack = 1.5;
  const double expected = kSlack * static_cast<double>(needed) / part_read_;
  // Nothing takes less than a byte.
  const auto most = static_cast<double>(most_expected_);
  column.reserve(std::max(needed + needed / 4, static_cast<std::size_t>(std::min(expected, most))));
}

}  // namespace plimsoll::heap
