// nursery/object.h: what the heap asks of an object, and of those who describe objects to it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace plimsoll::nursery {

class Visitor;

// A number of the VM's for what an object is: an index into the types it gave to the heap.
enum class TypeId : std::uint16_t {};

// The first word of every object: a VM's object types derive from it. The heap zeroes all other fields of a new object.
// Objects move: nobody but the heap, a Root and the traced fields of objects may hold the address of one across an
// allocation.
class Object {
 public:
  [[nodiscard]] TypeId type() const { return TypeId{static_cast<std::uint16_t>(word_)}; }
  // Bytes it takes, this word included.
  [[nodiscard]] std::size_t size() const { return word_ >> kSizeShift; }

 private:
  friend class Heap;
  friend class Collector;
  friend class OldSpace;

  // Bits 0-15 type, 16-23 flags, 24-63 size.
  static constexpr unsigned kSizeShift = 24;
  static constexpr std::uint64_t kBarrier = std::uint64_t{1} << 16U;     // old, and not on the list of changed objects
  static constexpr std::uint64_t kMark = std::uint64_t{1} << 17U;        // reached, if it is as Collector::mark_ is
  static constexpr std::uint64_t kForwarded = std::uint64_t{1} << 18U;   // moved; its new address is in the next word
  static constexpr std::uint64_t kYoungLarge = std::uint64_t{1} << 19U;  // outside the nursery, but as young
  static constexpr std::uint64_t kLarge = std::uint64_t{1} << 20U;

  static constexpr std::uint64_t first_word(TypeId type, std::size_t size) {
    return static_cast<std::uint64_t>(type) | std::uint64_t{size} << kSizeShift;
  }
  [[nodiscard]] bool has(std::uint64_t flag) const { return (word_ & flag) != 0; }
  // The word behind this one, which every object has: where the object went, once it is forwarded; the next free slot
  // of a block, in one that is free.
  // NOLINTBEGIN(bugprone-sizeof-expression): the pointer itself is what is copied
  [[nodiscard]] Object* link() const {
    Object* to = nullptr;
    std::memcpy(&to, reinterpret_cast<const char*>(this) + sizeof(Object), sizeof to);
    return to;
  }
  void set_link(Object* to) { std::memcpy(reinterpret_cast<char*>(this) + sizeof(Object), &to, sizeof to); }
  // NOLINTEND(bugprone-sizeof-expression)

  std::uint64_t word_;
};
static_assert(sizeof(Object) == 8);

// What the heap must know of a type.
struct Type {
  const char* name = "";
  // Calls visitor.visit(field) for each field of the object that refers to another, and nothing else. Null: it has
  // none.
  void (*trace)(Object& object, Visitor& visitor) = nullptr;
};

}  // namespace plimsoll::nursery
