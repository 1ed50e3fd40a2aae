#include "nursery/collector.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "base/clock.h"

namespace plimsoll::nursery {

Collector::~Collector() {
  // Roots may outlive the heap, if only to find that out.
  for (RootLink* root = roots_.next; root != nullptr;) {
    RootLink* next = std::exchange(root->next, nullptr);
    root->previous = nullptr;
    root->object = nullptr;
    root = next;
  }
  roots_.next = nullptr;
  for (Object* object : young_large_) std::free(object);
}

void Collector::link_root(RootLink& root) {
  root.previous = &roots_;
  root.next = roots_.next;
  if (roots_.next != nullptr) roots_.next->previous = &root;
  roots_.next = &root;
}

void Collector::remember(Object* holder) {
  holder->word_ &= ~Object::kBarrier;
  changed_.push_back(holder);
}

Object* Collector::allocate_large(TypeId type, std::size_t size) {
  Object* object = old_.allocate_large(size);
  if (object == nullptr) return nullptr;
  object->word_ = Object::first_word(type, size) | Object::kLarge | Object::kYoungLarge;
  young_large_.push_back(object);
  young_large_bytes_ += size;
  return object;
}

void Collector::trace_roots(Visitor& visitor) {
  for (RootLink* root = roots_.next; root != nullptr; root = root->next) visitor.visit(root->object);
}

void Collector::settle(Object* object) {
  object->word_ = (object->word_ & ~Object::kMark) | Object::kBarrier | mark_;
  promoted_bytes_ += object->size();
  promoted_.push_back(object);
  if (phase_ == Phase::kMarking) to_mark_.push_back(object);
}

Object* Collector::promote(Object* object) {
  Object* moved = old_.allocate_small(object->size());
  std::memcpy(static_cast<void*>(moved), object, object->size());
  object->word_ |= Object::kForwarded;
  object->set_link(moved);
  settle(moved);
  return moved;
}

void Collector::visit_young(Object*& field) {
  const bool is_in_nursery = static_cast<std::size_t>(reinterpret_cast<char*>(field) - nursery_) < nursery_bytes_;
  if (is_in_nursery) {
    field = field->has(Object::kForwarded) ? field->link() : promote(field);
  } else if (!young_large_.empty() && field->has(Object::kYoungLarge)) {
    field->word_ &= ~Object::kYoungLarge;
    old_.adopt_large(field);
    settle(field);
  }
}

bool Collector::collect_minor(std::size_t used, Observer* observer, Statistics& counts) {
  if (!old_.reserve(used)) {
    // Memory may be full of what has died since it was marked last.
    collect_in_place(used, observer, counts);
    if (!old_.reserve(used)) return false;
  }
  const std::int64_t start_ns = monotonic_ns();
  const std::size_t young_bytes = used + young_large_bytes_;
  promoted_bytes_ = 0;
  std::size_t bytes_anew = 0;
  Visitor visitor(*this, Visitor::Wants::kYoung);
  for (Object* object : std::exchange(changed_, {})) {
    object->word_ |= Object::kBarrier;
    trace(*object, visitor);
    if (phase_ != Phase::kMarking || !is_marked(*object)) continue;
    to_mark_.push_back(object);
    bytes_anew += object->size();
  }
  trace_roots(visitor);
  while (!promoted_.empty()) {
    Object* object = promoted_.back();
    promoted_.pop_back();
    trace(*object, visitor);
  }
  tell_fates(observer, counts);
  free_young_large();
  std::memset(nursery_, 0, used);
  ++counts.minor_collections;
  counts.promoted_bytes += promoted_bytes_;
  if (observer != nullptr)
    observer->collected({CollectionEvent::Kind::kMinor, start_ns, monotonic_ns() - start_ns, promoted_bytes_, true});
  // So quickly that the old space is marked and swept long before it has doubled; what is marked anew is no progress.
  step(2 * (young_bytes + promoted_bytes_) + bytes_anew, observer, counts);
  return true;
}

void Collector::tell_fates(Observer* observer, Statistics& counts) {
  for (const auto& [sample, object] : watched_) {
    const bool survived =
        object->has(Object::kLarge) ? !object->has(Object::kYoungLarge) : object->has(Object::kForwarded);
    if (survived) ++counts.sampled_that_survived;
    if (observer != nullptr) observer->settled(sample, survived ? Fate::kSurvived : Fate::kDied);
  }
  watched_.clear();
}

void Collector::free_young_large() {
  for (Object* object : young_large_)
    if (object->has(Object::kYoungLarge)) old_.free_large(object);
  young_large_.clear();
  young_large_bytes_ = 0;
}

// ---- the old space ----

void Collector::visit_old(Object* object) {
  if (is_marked(*object)) return;
  object->word_ ^= Object::kMark;
  to_mark_.push_back(object);
}

// The step that follows finds nothing to mark, and so looks at the roots.
void Collector::begin_marking() {
  mark_ ^= Object::kMark;
  phase_ = Phase::kMarking;
}

void Collector::step(std::size_t bytes, Observer* observer, Statistics& counts) {
  if (phase_ == Phase::kIdle && old_.used_bytes() >= threshold_) begin_marking();
  if (phase_ == Phase::kMarking)
    mark(bytes, observer);
  else if (phase_ == Phase::kSweeping)
    sweep(bytes, observer, counts);
}

void Collector::mark(std::size_t bytes, Observer* observer) {
  const std::int64_t start_ns = monotonic_ns();
  Visitor visitor(*this, Visitor::Wants::kOld);
  marked_bytes_ = 0;
  while (marked_bytes_ < bytes) {
    if (to_mark_.empty()) trace_roots(visitor);  // a root may have taken over a reference from where it was not seen
    if (to_mark_.empty()) {
      phase_ = Phase::kSweeping;
      old_.begin_sweep();
      break;
    }
    Object* object = to_mark_.back();
    to_mark_.pop_back();
    marked_bytes_ += object->size();
    trace(*object, visitor);
  }
  if (observer != nullptr)
    observer->collected(
        {CollectionEvent::Kind::kMark, start_ns, monotonic_ns() - start_ns, marked_bytes_, phase_ == Phase::kSweeping});
}

void Collector::sweep(std::size_t bytes, Observer* observer, Statistics& counts) {
  const std::int64_t start_ns = monotonic_ns();
  const bool is_done = old_.sweep(bytes, mark_);
  if (is_done) {
    phase_ = Phase::kIdle;
    ++counts.major_collections;
    threshold_ = std::max(nursery_bytes_ * 4, old_.used_bytes() * 2);
  }
  if (observer != nullptr)
    observer->collected(
        {CollectionEvent::Kind::kSweep, start_ns, monotonic_ns() - start_ns, old_.used_bytes(), is_done});
}

void Collector::collect_major(Observer* observer, Statistics& counts) {
  constexpr std::size_t kEverything = std::numeric_limits<std::size_t>::max();
  if (phase_ == Phase::kIdle) begin_marking();
  while (phase_ == Phase::kMarking) mark(kEverything, observer);
  while (phase_ == Phase::kSweeping) sweep(kEverything / 2, observer, counts);
}

void Collector::collect_in_place(std::size_t used, Observer* observer, Statistics& counts) {
  // What marking under way has reached may have died since: another one follows it.
  if (!is_idle()) finish_in_place(used, observer, counts);
  finish_in_place(used, observer, counts);
}

void Collector::finish_in_place(std::size_t used, Observer* observer, Statistics& counts) {
  constexpr std::size_t kEverything = std::numeric_limits<std::size_t>::max();
  if (phase_ == Phase::kIdle) begin_marking();
  if (phase_ == Phase::kMarking) {
    unmark_young(used);
    for (Object* object : changed_)
      if (is_marked(*object)) to_mark_.push_back(object);
    mark(kEverything, observer);
    std::erase_if(changed_, [&](const Object* object) { return !is_marked(*object); });
    free_unmarked_young(observer);
  }
  sweep(kEverything / 2, observer, counts);
}

void Collector::unmark_young(std::size_t used) {
  const auto unmark = [&](Object& object) { object.word_ = (object.word_ & ~Object::kMark) | (mark_ ^ Object::kMark); };
  for (std::size_t at = 0; at < used;) {
    auto& object = *reinterpret_cast<Object*>(nursery_ + at);
    unmark(object);
    at += object.size();
  }
  for (Object* object : young_large_) unmark(*object);
}

void Collector::free_unmarked_young(Observer* observer) {
  const auto is_dead = [&](const Object& object) { return object.has(Object::kYoungLarge) && !is_marked(object); };
  std::erase_if(watched_, [&](const auto& watched) {
    if (!is_dead(*watched.second)) return false;
    if (observer != nullptr) observer->settled(watched.first, Fate::kDied);
    return true;
  });
  std::erase_if(young_large_, [&](Object* object) {
    if (!is_dead(*object)) return false;
    young_large_bytes_ -= object->size();
    old_.free_large(object);
    return true;
  });
}

}  // namespace plimsoll::nursery
