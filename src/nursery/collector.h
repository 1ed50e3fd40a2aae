// nursery/collector.h: who is reachable. Moves survivors out of the nursery, and marks and sweeps the old space in
// steps.
//
// Steps of marking are only taken when the nursery is empty, at the end of a minor collection (or, if it cannot be
// emptied as memory is out, all at once). So one write barrier
// serves both: an old object that is stored to is put on the list of changed objects once; the next minor collection
// looks at it for references to young objects, and if it had been marked already, it is marked anew, with what it
// refers to now. Marking ends when nothing is left to mark and no root refers to an unmarked object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "nursery/object.h"
#include "nursery/observer.h"
#include "nursery/old_space.h"

namespace plimsoll::nursery {

// A root's place in the list of all roots; takes itself out when it ends.
struct RootLink {
  Object* object = nullptr;
  RootLink* previous = nullptr;
  RootLink* next = nullptr;

  RootLink() = default;
  RootLink(const RootLink&) = delete;
  RootLink& operator=(const RootLink&) = delete;
  ~RootLink() {
    if (previous != nullptr) previous->next = next;
    if (next != nullptr) next->previous = previous;
  }
};

// The collector of one heap.
class Collector {
 public:
  Collector(std::span<const Type> types, char* nursery, std::size_t nursery_bytes, std::size_t most_bytes)
      : types_(types),
        nursery_(nursery),
        nursery_bytes_(nursery_bytes),
        old_(most_bytes),
        threshold_(nursery_bytes * 4) {}
  Collector(const Collector&) = delete;
  Collector& operator=(const Collector&) = delete;
  ~Collector();

  void link_root(RootLink& root);
  // The write barrier's slow path: `holder` is old, and about to change for the first time since the last collection.
  void remember(Object* holder);
  // A new large object, as young as those in the nursery; nullptr if memory is out.
  Object* allocate_large(TypeId type, std::size_t size);
  // A sampled object whose fate is to be told.
  void watch(std::uint64_t sample, Object* object) { watched_.emplace_back(sample, object); }

  // Empties the nursery, of which `used` bytes are in use, then takes a step of what the old space needs. False if
  // memory is out, even after what is dead outside the nursery has been freed: nothing has moved.
  bool collect_minor(std::size_t used, Observer* observer, Statistics& counts);
  // Finishes the collection of the old space that is under way, if one is, or makes a whole one. After collect_minor.
  void collect_major(Observer* observer, Statistics& counts);
  [[nodiscard]] const OldSpace& old_space() const { return old_; }
  [[nodiscard]] bool is_idle() const { return phase_ == Phase::kIdle; }
  // Bytes of large objects that were allocated since the last minor collection.
  [[nodiscard]] std::size_t young_large_bytes() const { return young_large_bytes_; }

 private:
  friend class Visitor;
  // What the old space is going through.
  enum class Phase : std::uint8_t { kIdle, kMarking, kSweeping };

  void visit_young(Object*& field);
  void visit_old(Object* object);
  void trace(Object& object, Visitor& visitor) const {
    if (const auto of_type = types_[static_cast<std::size_t>(object.type())].trace) of_type(object, visitor);
  }
  Object* promote(Object* object);
  void settle(Object* object);  // it is old now
  void trace_roots(Visitor& visitor);
  void tell_fates(Observer* observer, Statistics& counts);
  void free_young_large();
  void begin_marking();
  void step(std::size_t bytes, Observer* observer, Statistics& counts);
  void mark(std::size_t bytes, Observer* observer);
  // Collections of the old space, and of young large objects, that leave the nursery as it is: for when there is no
  // memory to move anything to. Objects in the nursery are marked like old ones meanwhile, and none of them is freed.
  void collect_in_place(std::size_t used, Observer* observer, Statistics& counts);
  void finish_in_place(std::size_t used, Observer* observer, Statistics& counts);
  void unmark_young(std::size_t used);
  void free_unmarked_young(Observer* observer);
  [[nodiscard]] bool is_marked(const Object& object) const { return (object.word_ & Object::kMark) == mark_; }
  void sweep(std::size_t bytes, Observer* observer, Statistics& counts);

  const std::span<const Type> types_;
  char* const nursery_;
  const std::size_t nursery_bytes_;
  OldSpace old_;
  RootLink roots_;                 // before the first one
  std::vector<Object*> changed_;   // old objects that were stored to
  std::vector<Object*> promoted_;  // not traced yet, in a minor collection
  std::vector<Object*> to_mark_;   // marked, not traced yet
  std::vector<Object*> young_large_;
  std::size_t young_large_bytes_ = 0;
  std::vector<std::pair<std::uint64_t, Object*>> watched_;
  std::uint64_t promoted_bytes_ = 0;  // in the minor collection under way
  std::uint64_t marked_bytes_ = 0;    // in the step under way
  std::uint64_t mark_ = 0;            // kMark or 0: what living objects have
  std::size_t threshold_;             // old bytes at which marking begins
  Phase phase_ = Phase::kIdle;
};

// Goes through the fields of an object.
class Visitor {
 public:
  template <typename T>
  void visit(T*& field) {
    if (field == nullptr) return;
    Object* object = field;
    if (wants_ == Wants::kYoung) {
      collector_.visit_young(object);
      field = static_cast<T*>(object);
    } else {
      collector_.visit_old(object);
    }
  }

 private:
  friend class Collector;
  // Which references it is after.
  enum class Wants : std::uint8_t { kYoung, kOld };
  Visitor(Collector& collector, Wants wants) : collector_(collector), wants_(wants) {}

  Collector& collector_;
  const Wants wants_;
};

}  // namespace plimsoll::nursery
