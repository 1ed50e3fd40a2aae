// nursery/heap.h: a generational heap for language VMs, whose allocation profiler costs nothing until it takes a
// sample.
//
//   struct Pair : nursery::Object { Pair* left; Pair* right; };
//   const std::array types{nursery::Type{"pair", [](nursery::Object& o, nursery::Visitor& v) {
//                            v.visit(static_cast<Pair&>(o).left);
//                            v.visit(static_cast<Pair&>(o).right);
//                          }}};
//   auto heap = nursery::Heap::create({.types = types, .sampling = {512 << 10}, .observer = &profiler}).take();
//   nursery::Root<Pair> tree(*heap, heap->allocate<Pair>(kPair));   // a root: the heap keeps it up to date
//   Pair* leaf = heap->allocate<Pair>(kPair);                       // may move everything; nullptr if memory is out
//   heap->store(tree.get(), tree->left, leaf);                      // all stores of references go through the barrier
//
// Objects are born in the nursery by moving a pointer towards a limit. A collection of the nursery moves what is
// reachable from roots and from changed old objects to the old space; a bit of marking or sweeping of the old space,
// when it has grown, follows each of them. An allocation that crosses the limit finds out what the limit stood for:
// the end of the nursery, or a sample point before it. Allocation looks the same to the processor whether sampling is
// on or off: nothing is compared, counted or loaded but the limit that any nursery has.
//
// One heap belongs to one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "nursery/collector.h"
#include "nursery/observer.h"
#include "nursery/sample_point.h"

namespace plimsoll::nursery {

// What a heap is made of.
struct HeapSettings {
  std::span<const Type> types{};  // by TypeId; copied
  std::size_t nursery_bytes = std::size_t{4} << 20U;
  // Outside the nursery; beyond that, memory is out. Less than the system gives, as it must have some for the
  // collector's lists, too: see docs/nursery.md. At least 3.1 MiB and one and a half nurseries, as much as it may
  // take to move all of a nursery: so much must be free whenever it is full.
  std::size_t most_bytes = std::size_t{1} << 40U;
  Distance sampling{};
  std::uint64_t seed = 0x9e3779b97f4a7c15U;  // of the distances; not 0
  Observer* observer = nullptr;              // outlives the heap; null: nobody wants to know
};

// The heap.
class Heap {
 public:
  static Result<std::unique_ptr<Heap>> create(const HeapSettings& settings);
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;
  ~Heap();

  // A new object, its fields zero; nullptr if memory is out. May move all objects.
  template <typename T>
  T* allocate(TypeId type) {
    static_assert(alignof(T) <= 8);
    constexpr std::size_t kSize = rounded(sizeof(T));
    if constexpr (kSize <= OldSpace::kLargestSmall) return static_cast<T*>(allocate_small(type, kSize));
    return static_cast<T*>(allocate_slowly(type, kSize));
  }
  // Likewise, of any size: `size` counts the header.
  Object* allocate(TypeId type, std::size_t size) {
    if (size <= OldSpace::kLargestSmall) [[likely]]
      return allocate_small(type, rounded(size));
    return allocate_slowly(type, size);
  }

  // field = value, where `field` is one of `holder`.
  template <typename T>
  void store(Object* holder, T*& field, T* value) {
    if (holder->has(Object::kBarrier)) [[unlikely]]
      collector_.remember(holder);
    field = value;
  }

  // Collections at once. False if memory is out, even without all that was dead outside the nursery: nothing has moved.
  bool collect_minor();
  bool collect_all();

  // From now on; what was left of the old distance is forgotten.
  Status set_sampling(Distance distance);
  // Exact, at any time.
  [[nodiscard]] Statistics statistics() const;
  [[nodiscard]] const char* name(TypeId type) const { return types_[static_cast<std::size_t>(type)].name; }

  void link_root(RootLink& root) { collector_.link_root(root); }

 private:
  Heap(const HeapSettings& settings, char* nursery);

  static constexpr std::size_t rounded(std::size_t size) { return size <= 16 ? 16 : (size + 7) & ~std::size_t{7}; }
  Object* allocate_small(TypeId type, std::size_t size) {
    char* at = free_;
    if (size > static_cast<std::size_t>(limit_ - at)) [[unlikely]]
      return allocate_slowly(type, size);
    free_ = at + size;
    auto* object = reinterpret_cast<Object*>(at);
    object->word_ = Object::first_word(type, size);
    return object;
  }
  Object* allocate_slowly(TypeId type, std::size_t size);
  Object* allocate_large(TypeId type, std::size_t size);
  bool make_room(std::size_t size);
  // Tells the sample points of all bytes allocated in the nursery since it was told last.
  void account();
  // Puts the limit where the nursery ends, or before the next sample point if that comes first.
  void set_limit();
  void take_sample(Object* object, std::uint64_t points);
  [[nodiscard]] std::uint64_t in_nursery() const { return static_cast<std::uint64_t>(free_ - nursery_); }

  char* free_;
  char* limit_;
  char* accounted_;  // of what lies before it, the sample points know
  char* const nursery_;
  const std::size_t nursery_bytes_;
  const std::vector<Type> types_;
  Observer* const observer_;
  SamplePoint point_;
  std::uint64_t allocated_before_ = 0;  // bytes, all but those in the nursery now
  std::uint64_t next_sample_ = 0;
  Statistics counts_;
  Collector collector_;
};

// A root that holds a T, for as long as it lives, wherever the object is moved. The address it gives is good until the
// next allocation.
template <typename T>
class Root {
 public:
  explicit Root(Heap& heap, T* object = nullptr) {
    link_.object = object;
    heap.link_root(link_);
  }
  Root(const Root&) = delete;
  Root& operator=(const Root&) = delete;
  Root& operator=(T* object) {
    link_.object = object;
    return *this;
  }
  [[nodiscard]] T* get() const { return static_cast<T*>(link_.object); }
  T* operator->() const { return get(); }

 private:
  RootLink link_;
};

}  // namespace plimsoll::nursery
