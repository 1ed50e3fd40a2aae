// cpython/collector_lists.h: all objects that the garbage collector of an interpreter knows, from outside. GIL builds:
// without a GIL there are no lists.
//
// Where the lists begin is found by what they are: the only pairs of links in an interpreter's state that lead to
// objects and come back. Also while a collection runs, which puts other things into the links backwards.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "cpython/object_view.h"

namespace plimsoll::cpython {

// The lists of one interpreter. `is_tracked`(Address) says whether there is an object of a class that the collector
// knows.
template <memory::Reader M, typename IsTracked>
class CollectorLists {
 public:
  CollectorLists(const ObjectView<M>& view, Address interpreter, IsTracked is_tracked)
      : view_(view), interpreter_(interpreter), is_tracked_(is_tracked) {
    // The first three that stand side by side, be they empty or not, are the generations.
    while (first_ + kLinks <= size() &&
           !(is_list(first_) && is_list(first_ + kGenerationBytes) && is_list(first_ + 2 * kGenerationBytes)))
      first_ += kStep;
  }

  // visit(list, object) for one object after another. `list` is 0 for the youngest generation to 2, and 3 for what
  // gc.freeze() has set aside. What `visit` returns false for ends the list that it is on. False if a list has not
  // come round, or there are none.
  template <typename Visit>
  bool each(Visit visit) const {
    if (first_ + kLinks > size()) return false;
    Met met = each_between(first_, std::min(size(), first_ + kReach), visit);
    // Where there is nothing, something else looks like three empty generations.
    if (met == Met::kNothing) met = each_between(0, size(), visit);
    return met != Met::kPart;
  }

 private:
  static constexpr std::uint64_t kFlags = 3, kLinks = 16;
  // Some builds of 3.13 have them at multiples of 4 only.
  static constexpr std::uint64_t kStep = 4;
  static constexpr std::uint64_t kGenerationBytes = 24;  // struct gc_generation: a list's head, a threshold and a count

  // All lists: behind the generations is what has been set aside.
  static constexpr std::uint64_t kReach = 256;
  // Whether there were lists with objects, and one of them has not come round.
  enum class Met : std::uint8_t { kNothing, kPart, kAll };

  template <typename Visit>
  Met each_between(std::uint64_t begin, std::uint64_t end, Visit& visit) const {
    Met met = Met::kNothing;
    for (std::uint64_t offset = begin; offset + kLinks <= end; offset += kStep) {
      if (!has_objects(offset)) continue;
      if (met == Met::kNothing) met = Met::kAll;
      const std::uint64_t head = head_at(offset);
      for (std::uint64_t link = next(head); link != head; link = next(link)) {
        if (!is_object(link) || !visit(number(offset), Address{link + kLinks})) {
          met = Met::kPart;
          break;
        }
      }
    }
    return met;
  }

  [[nodiscard]] std::uint64_t size() const { return view_.fields().interpreter.size; }
  [[nodiscard]] std::uint64_t next(std::uint64_t link) const { return view_.word(Address{link}, 0) & ~kFlags; }
  [[nodiscard]] std::uint64_t last(std::uint64_t head) const { return view_.word(Address{head}, 8) & ~kFlags; }
  [[nodiscard]] std::uint64_t head_at(std::uint64_t offset) const { return raw(interpreter_) + offset; }
  [[nodiscard]] bool is_object(std::uint64_t link) const { return is_tracked_(Address{link + kLinks}); }

  // Whether a word can be a link of an object. Most that stand here are none, and each look elsewhere costs.
  static bool is_link(std::uint64_t word) { return word != 0 && word % 8 == 0 && word < (std::uint64_t{1} << 48U); }
  [[nodiscard]] bool has_objects(std::uint64_t offset) const {
    const std::uint64_t head = head_at(offset), link = next(head), end = last(head);
    return is_link(link) && is_link(end) && link != head && next(end) == head && is_object(link);
  }
  [[nodiscard]] bool is_list(std::uint64_t offset) const {
    const std::uint64_t head = head_at(offset);
    const bool is_empty = next(head) == head && last(head) == head;
    return is_empty || has_objects(offset);
  }
  // 0 to 2 for generations, 3 for any other.
  [[nodiscard]] std::size_t number(std::uint64_t offset) const {
    const std::uint64_t after = offset - first_;
    return after % kGenerationBytes == 0 && after / kGenerationBytes < 3 ? after / kGenerationBytes : 3;
  }

  const ObjectView<M>& view_;
  const Address interpreter_;
  const IsTracked is_tracked_;
  std::uint64_t first_ = 0;
};

}  // namespace plimsoll::cpython
