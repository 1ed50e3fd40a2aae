// alloc/block_map.h: a word for each living block, found by its address.
//
// A word for every 16 bytes of address space that blocks are in: as allocators give out addresses that are multiples of
// that, no two blocks share one, and to find it takes two loads, no comparison and no lock. Memory is used where blocks
// are, and is a quarter of theirs at most. (mimalloc's blocks of 8 bytes are half as far apart: every second of these
// is in a table of its own.)
#pragma once

#include <bit>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "base/result.h"

namespace plimsoll::alloc {

// The map. Blocks may be of any allocator. The caller serialises set, take and clear.
class BlockMap {
 public:
  using Word = std::uint32_t;  // 0 = nothing is known of the block

  BlockMap() = default;
  BlockMap(const BlockMap&) = delete;
  BlockMap& operator=(const BlockMap&) = delete;
  ~BlockMap();

  // Reserves addresses for the table of tables; an error if the system has none to give.
  Status prepare();
  // Where the word of a block is, if that is easily said; else null.
  Word* place_of(const void* block) {
    const std::uintptr_t step = step_of(block);
    const std::uintptr_t number = step / kLeafWords;
    if (number >= kLeaves) [[unlikely]]
      return nullptr;
    Word* leaf = tables_[number];
    if (leaf == nullptr) [[unlikely]]
      return nullptr;
    return leaf + step % kLeafWords;
  }
  // False if there is no place for it: the address is no multiple of 8, or memory is at its end.
  bool set(const void* block, Word word);
  // The block's word, which is 0 from now on.
  Word take(const void* block) {
    const std::uintptr_t step = step_of(block);
    const std::uintptr_t number = step / kLeafWords;
    if (number >= kLeaves) [[unlikely]]
      return take_between(reinterpret_cast<std::uintptr_t>(block));
    Word* leaf = tables_[number];
    if (leaf == nullptr) return 0;
    const Word word = leaf[step % kLeafWords];
    if (word != 0) leaf[step % kLeafWords] = 0;
    return word;
  }
  // The block's word.
  [[nodiscard]] Word get(const void* block) const {
    const std::uintptr_t step = step_of(block);
    const std::uintptr_t number = step / kLeafWords;
    if (number >= kLeaves) return get_between(reinterpret_cast<std::uintptr_t>(block));
    if (tables_ == nullptr) return 0;
    const Word* leaf = tables_[number];
    return leaf != nullptr ? leaf[step % kLeafWords] : 0;
  }
  // visit(const void* block, Word) for all that have one.
  template <typename Visit>
  void for_each(Visit visit) const {
    for (const std::size_t number : leaves_) {
      const Word* leaf = tables_[number];
      for (std::size_t i = 0; i < kLeafWords; ++i)
        // The place in the tables is the address.
        if (leaf[i] != 0) visit(pointer_to<const void>(Address{(number << kLeafShift) + i * kStep}), leaf[i]);
    }
    for (const auto& [at, word] : between_) visit(pointer_to<const void>(Address{at}), word);
  }
  // Nothing is known of any block.
  void clear();

 private:
  static constexpr std::uintptr_t kStep = 16;
  static constexpr std::uintptr_t kEnd = std::uintptr_t{1} << 47U;  // of the addresses that a program has
  static constexpr unsigned kLeafShift = 22;
  static constexpr std::size_t kLeaves = kEnd >> kLeafShift;
  static constexpr std::size_t kLeafWords = (std::size_t{1} << kLeafShift) / kStep;
  // Which multiple of kStep an address is; if it is none, or too high, there is no such leaf: one comparison says so.
  static std::uintptr_t step_of(const void* block) {
    return std::rotr(reinterpret_cast<std::uintptr_t>(block), std::countr_zero(kStep));
  }
  Word* make_leaf(std::size_t number);
  // Of addresses that are multiples of 8 only, or of no block.
  bool set_between(std::uintptr_t at, Word word);
  Word take_between(std::uintptr_t at);
  [[nodiscard]] Word get_between(std::uintptr_t at) const;

  Word** tables_ = nullptr;
  // The leaves that there are. (To look for them in the tables takes the kernel 20 ms, for pages of nothing.)
  std::vector<std::size_t> leaves_;
  boost::unordered_flat_map<std::uintptr_t, Word> between_;
};

}  // namespace plimsoll::alloc
