// nursery/testing.h: a small VM's objects, for tests and measurements only. No product code may include it.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "nursery/heap.h"

namespace plimsoll::nursery::testing {

// A node of a graph. `name` tells one from the other wherever it moves.
struct Node : Object {
  static constexpr std::size_t kFields = 3;
  std::uint64_t name;
  std::array<Node*, kFields> to;
};

inline constexpr TypeId kNode{0};
inline constexpr TypeId kBytes{1};

inline void trace_node(Object& object, Visitor& visitor) {
  for (Node*& field : static_cast<Node&>(object).to) visitor.visit(field);
}
inline constexpr std::array<Type, 2> kTypes{Type{"node", trace_node}, Type{"bytes", nullptr}};

// Keeps everything it is told.
class Notes final : public Observer {
 public:
  // A sample and what became of it.
  struct Note {
    Sample sample{};
    bool is_settled = false;
    Fate fate = Fate::kDied;
  };
  void sampled(const Sample& sample) override { notes.push_back({sample}); }
  void settled(std::uint64_t number, Fate fate) override {
    notes[number].is_settled = true;
    notes[number].fate = fate;
  }
  void collected(const CollectionEvent& event) override { events.push_back(event); }

  std::vector<Note> notes;
  std::vector<CollectionEvent> events;
};

inline std::unique_ptr<Heap> heap_with(HeapSettings settings) {
  settings.types = kTypes;
  return Heap::create(settings).take();
}

}  // namespace plimsoll::nursery::testing
