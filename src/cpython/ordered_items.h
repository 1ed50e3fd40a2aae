// cpython/ordered_items.h: the items of an OrderedDict, in the order of its own list of keys.
//
// The table that it has as a dict keeps its keys in the order in which they came; move_to_end() changes the list alone.
#pragma once

#include "cpython/object_view.h"

namespace plimsoll::cpython {

// What a dict has under a key, which is known by its address; null if nothing.
template <memory::Reader M>
Address value_of_key(const ObjectView<M>& view, Address dict, Address key, std::uint64_t hash) {
  constexpr int kMostProbes = 64;
  constexpr std::uint64_t kKeptBits = 5;  // of a hash, those that a probe uses up
  const KeyTable table = key_table(view, view.pointer_in(dict, container_field::kDictKeys));
  if (!table.is_sound || !is_null(view.pointer_in(dict, container_field::kDictValues))) return {};
  const std::uint64_t empty = ~std::uint64_t{0} >> (64 - 8 * table.width);  // -1; -2 is where an entry was
  std::uint64_t at = hash & (table.size - 1), rest = hash;
  for (int i = 0; i < kMostProbes && view.spend(1); ++i) {
    const std::uint64_t entry = view.word(table.indices, at * table.width) & empty;
    if (entry == empty) return {};
    const std::uint64_t offset = entry * (table.has_hashes ? 24 : 16) + (table.has_hashes ? 8 : 0);
    if (entry < table.count && view.pointer(table.entries, offset) == key)
      return view.pointer(table.entries, offset + 8);
    rest >>= kKeptBits;
    at = (at * 5 + rest + 1) & (table.size - 1);
  }
  return {};
}

// Calls visit(key, value) for the first `most` items, as addresses.
template <memory::Reader M, typename Visit>
void each_ordered_item(const ObjectView<M>& view, Address dict, Visit visit, std::uint64_t most) {
  constexpr std::uint64_t kHash = 8, kNext = 16;
  Address node = view.pointer_in(dict, container_field::kOrderedFirst);
  for (; most > 0 && !is_null(node) && view.spend(1); --most, node = view.pointer(node, kNext)) {
    const Address key = view.pointer(node, 0);
    if (const Address value = value_of_key(view, dict, key, view.word(node, kHash)); !is_null(value)) visit(key, value);
  }
}

}  // namespace plimsoll::cpython
