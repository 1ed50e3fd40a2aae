// base/ids.h: strong integer types, so that a stack cannot be passed where a frame is meant.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace plimsoll {

// An address in a target's memory (our own process, another one, or a core file). Never a pointer: only a Reader
// turns it into bytes, or pointer_to, if it is of our own process.
enum class Address : std::uint64_t {};

constexpr std::uint64_t raw(Address address) { return static_cast<std::uint64_t>(address); }
constexpr Address offset_by(Address address, std::uint64_t bytes) { return Address{raw(address) + bytes}; }
constexpr bool is_null(Address address) { return raw(address) == 0; }
// Where something of our own process is.
inline Address address_of(const void* pointer) { return Address{reinterpret_cast<std::uint64_t>(pointer)}; }
// What is there: of an address of our own process where a T is known to be.
template <typename T>
T* pointer_to(Address at) {
  return reinterpret_cast<T*>(raw(at));  // NOLINT(performance-no-int-to-ptr): that is what it is for
}

// The kernel's id of a thread (gettid).
enum class Tid : std::int32_t {};

// An index into a table of a profile. Tag makes each instantiation a type of its own; the value ~0 is "none".
template <typename Tag>
class Id {
 public:
  constexpr Id() = default;
  constexpr explicit Id(std::size_t index) : value_(static_cast<std::uint32_t>(index)) {}

  [[nodiscard]] constexpr std::uint32_t index() const { return value_; }
  [[nodiscard]] constexpr bool is_none() const { return value_ == kNone; }
  constexpr bool operator==(const Id&) const = default;
  constexpr auto operator<=>(const Id&) const = default;

 private:
  static constexpr std::uint32_t kNone = 0xffffffffU;
  std::uint32_t value_ = kNone;
};

using StringId = Id<struct StringTag>;      // a text in the string table
using FunctionId = Id<struct FunctionTag>;  // a function: names, file, first line
using FrameId = Id<struct FrameTag>;        // a function at a line
using StackId = Id<struct StackTag>;        // a node of the prefix tree of frames; none = the empty stack
using ThreadId = Id<struct ThreadTag>;      // a row of the thread table (not the kernel's id)
using TagSetId = Id<struct TagSetTag>;      // a row of the table of tag sets; none = no tags
using ProcessId = Id<struct ProcessTag>;    // a row of the process table (not the kernel's id)

}  // namespace plimsoll

// Ids as keys of hash tables.
template <typename Tag>
struct std::hash<plimsoll::Id<Tag>> {
  std::size_t operator()(plimsoll::Id<Tag> id) const noexcept { return std::hash<std::uint32_t>{}(id.index()); }
};
