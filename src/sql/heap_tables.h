// sql/heap_tables.h: a heap snapshot as tables: objects, edges, types, meta, and those of wasted memory.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "heap/analysis.h"
#include "heap/places.h"
#include "heap/snapshot.h"
#include "sql/table.h"

namespace plimsoll::sql {

// What is computed when a statement first asks for it. For one thread.
class HeapFacts {
 public:
  // `snapshot` must outlive it.
  explicit HeapFacts(const heap::Snapshot& snapshot) : snapshot_(snapshot) {}

  [[nodiscard]] const heap::Snapshot& snapshot() const { return snapshot_; }
  const heap::Dominance& dominance();
  // What each node dominates directly.
  const heap::Graph& dominated();
  // With the weak ones.
  struct Incoming : heap::IncomingEdges {
    std::vector<std::pair<heap::Node, std::uint32_t>> weak;  // held, and index into Snapshot::weak; sorted
  };
  const Incoming& incoming();
  const std::vector<heap::TypeRow>& types();
  const heap::Places& places();
  const heap::Places& referrers();

 private:
  const heap::Snapshot& snapshot_;
  std::optional<heap::Dominance> dominance_;
  std::optional<heap::Graph> dominated_;
  std::optional<Incoming> incoming_;
  std::optional<std::vector<heap::TypeRow>> types_;
  std::optional<heap::Places> places_, referrers_;
};

// Tables of what heap/duplicates.h, waste.h, arenas.h and resident.h tell; `facts` must outlive them.
void add_waste_tables(HeapFacts& facts, std::vector<std::unique_ptr<Table>>& tables);

// All tables; `facts` must outlive them.
std::vector<std::unique_ptr<Table>> heap_tables(HeapFacts& facts);

}  // namespace plimsoll::sql
