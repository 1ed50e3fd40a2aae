// alloc/allocator_table.h: a program's allocators, as hooks take their place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/exact_row.h"

namespace plimsoll::alloc {

// Which of the program's allocators: SampledBlock::kind. kRaw is called without the GIL, too; kMalloc and kMmap are not
// Python's, and not in an AllocatorTable.
using Domain = AllocationDomain;
inline constexpr std::size_t kDomains = 2;     // of an AllocatorTable that are called with the GIL held
inline constexpr std::size_t kAllDomains = 3;  // of an AllocatorTable

// An allocator as Python has it (PyMemAllocatorEx).
struct Allocator {
  void* context = nullptr;
  void* (*malloc)(void* context, std::size_t size) = nullptr;
  void* (*calloc)(void* context, std::size_t count, std::size_t item) = nullptr;
  void* (*realloc)(void* context, void* at, std::size_t size) = nullptr;
  void (*free)(void* context, void* at) = nullptr;
  bool operator==(const Allocator&) const = default;
};

// The allocators that the program uses at the moment.
class AllocatorTable {
 public:
  [[nodiscard]] virtual Allocator get(Domain domain) const = 0;
  virtual void set(Domain domain, const Allocator& allocator) = 0;
  // Whether the runtime's own allocator is in the table, and no hook.
  [[nodiscard]] virtual bool is_plain() const = 0;

 protected:
  ~AllocatorTable() = default;
};

// Whether hooks of ours that count bytes down in `count` (its `left`) are called by whatever is in the table: others'
// hooks may lie over them; or lay below, and have put back what was there before them, and us. `far` is a count that
// nothing comes to the end of; a block of `size` bytes and a longer one are asked for.
template <typename Count>
bool is_reached(const AllocatorTable& table, Domain domain, Count& count, const Count& far, std::size_t size) {
  const Count before = std::exchange(count, far);
  const Allocator top = table.get(domain);
  // Without memory for this, it is safer to believe that they are.
  void* probe = top.malloc(top.context, size);
  void* changed = probe == nullptr ? nullptr : top.realloc(top.context, probe, size + 1);
  const bool has_counted = std::exchange(count, before).left != far.left;
  top.free(top.context, changed == nullptr ? probe : changed);
  return has_counted || probe == nullptr;
}

// Whether the allocators are called under one lock (the GIL).
enum class Interpreters : std::uint8_t { kInTurns, kAtOnce };

// Whether all allocations of a recording came through its hooks.
enum class Stopped : std::uint8_t {
  kWhole,
  kCutShort,  // somebody whose hooks were there before ours has put back what was there before them
};

}  // namespace plimsoll::alloc
