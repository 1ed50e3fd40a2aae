#include "heap/edge_reader.h"

#include <utility>

namespace plimsoll::heap {
namespace {

constexpr std::size_t kMostWaiting = 2;  // blocks

}  // namespace

EdgePattern& EdgeReader::pattern_of(std::uint32_t type) {
  TypePattern& found = by_type_[type];
  if (found.block != block_) found = {block_, {}};
  return found.pattern;
}

template <typename Columns>
std::size_t EdgeReader::read_rows(Columns& columns, const EdgeRows& rows) {
  ++block_;
  by_type_.resize(rows.type_count);
  Graph& graph = snapshot_.graph;
  const std::size_t before = graph.targets.size();
  resize_edges(before + rows.most_edges, rows.room);
  rows.room.make(graph.first, rows.types.size());
  std::size_t row = 0;
  auto end = static_cast<std::uint32_t>(before);  // of the edges of good rows
  for (; row < rows.types.size(); ++row) {
    const Node holder = rows.first + static_cast<Node>(row);
    const std::size_t weak = snapshot_.weak.size();
    EdgePattern& pattern = pattern_of(rows.types[row]);
    std::uint64_t degree = 0;
    if (!columns.begin_row(pattern, degree) || degree > before + rows.most_edges - end) break;
    std::uint32_t place = end;
    bool is_good = true;
    for (std::uint64_t i = 0; i < degree && is_good; ++i) {
      RowEdge edge;
      is_good = columns.next(holder, edge);
      if (edge.kind == EdgeKind::kWeak) {
        snapshot_.weak.emplace_back(holder, edge.target);
        continue;
      }
      if (edge.kind == EdgeKind::kType)
        edge.target = rows.types[row];
      else
        highest_ = std::max(highest_, edge.target);
      graph.targets[place] = edge.target;
      snapshot_.kind[place] = edge.kind;
      snapshot_.name[place++] = edge.name;
    }
    if (!is_good) {
      snapshot_.weak.resize(weak);
      break;
    }
    columns.end_row(pattern);
    graph.first.push_back(end = place);
  }
  resize_edges(end, rows.room);
  return row;
}

std::size_t EdgeReader::read(EdgeColumns& columns, const EdgeRows& rows) { return read_rows(columns, rows); }
std::size_t EdgeReader::read(EdgeColumnsOfVersion1& columns, const EdgeRows& rows) { return read_rows(columns, rows); }

void EdgeReader::resize_edges(std::size_t count, const ColumnRoom& room) {
  const auto resize = [&](auto& column) {
    if (count > column.size()) room.make(column, count - column.size());
    column.resize(count);
  };
  resize(snapshot_.graph.targets);
  resize(snapshot_.kind);
  resize(snapshot_.name);
}

// ---- beside ----

bool EdgeReader::read_beside() {
  return thread_.start("plimsoll-edges", [this] { run(); });
}

void EdgeReader::put(const EdgeColumns& columns, std::vector<std::uint32_t> names, EdgeRows rows) {
  ++put_;
  {
    std::unique_lock lock(mutex_);
    has_changed_.wait(lock, [this] { return blocks_.size() < kMostWaiting; });
    blocks_.push_back({columns, std::move(names), std::move(rows)});
  }
  has_changed_.notify_all();
}

void EdgeReader::wait_for(std::uint64_t blocks) {
  std::unique_lock lock(mutex_);
  has_changed_.wait(lock, [&] { return done_ >= blocks; });
}

void EdgeReader::stop(Waiting waiting) {
  if (!thread_.is_there()) return;
  {
    const std::lock_guard guard(mutex_);
    if (waiting == Waiting::kDropped) blocks_.clear();
    is_over_ = true;
  }
  has_changed_.notify_all();
  thread_.join();
}

bool EdgeReader::finish() {
  stop(Waiting::kRead);
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  return !has_failed_;
}

void EdgeReader::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    has_changed_.wait(lock, [this] { return !blocks_.empty() || is_over_; });
    if (blocks_.empty()) return;
    Block block = std::move(blocks_.front());
    blocks_.pop_front();
    const bool goes_on = !has_failed_;
    lock.unlock();
    has_changed_.notify_all();
    bool is_good = false;
    std::exception_ptr error;
    try {
      block.columns.names = block.names;
      is_good = goes_on && read(block.columns, block.rows) == block.rows.types.size() && block.columns.at_end();
    } catch (...) {  // there is no memory: whoever waits is told
      error = std::current_exception();
    }
    lock.lock();
    if (!is_good) has_failed_ = true;
    if (error) error_ = error;
    ++done_;
    has_changed_.notify_all();
  }
}

}  // namespace plimsoll::heap
