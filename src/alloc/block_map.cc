#include "alloc/block_map.h"

#include <cerrno>
#include <new>
#include <utility>

#include "alloc/reserved_memory.h"

namespace plimsoll::alloc {

BlockMap::~BlockMap() {
  if (tables_ == nullptr) return;
  clear();
  ::munmap(tables_, kLeaves * sizeof(Word*));
}

Status BlockMap::prepare() {
  if (tables_ != nullptr) return Ok{};
  tables_ = static_cast<Word**>(map_memory(kLeaves * sizeof(Word*), PROT_READ));
  if (tables_ != nullptr) return Ok{};
  return system_error("cannot reserve 256 MiB of addresses for the table of blocks (is there a limit, ulimit -v?)",
                      errno);
}

BlockMap::Word* BlockMap::make_leaf(std::size_t number) {
  // All of the tables can be read, and is empty. What is around the leaf's is to be written to.
  constexpr std::size_t kTablesAtOnce = (std::size_t{1} << 16U) / sizeof(Word*);  // whole pages of any system's
  if (!make_memory(tables_ + number / kTablesAtOnce * kTablesAtOnce, kTablesAtOnce * sizeof(Word*))) return nullptr;
  try {
    leaves_.push_back(number);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
  auto* leaf = static_cast<Word*>(map_memory(kLeafWords * sizeof(Word)));
  if (leaf == nullptr) {
    leaves_.pop_back();
    return nullptr;
  }
  // A page of 2 MiB would be used up for the sake of a few blocks.
  ::madvise(leaf, kLeafWords * sizeof(Word), MADV_NOHUGEPAGE);
  tables_[number] = leaf;
  return leaf;
}

bool BlockMap::set(const void* block, Word word) {
  const std::uintptr_t step = step_of(block);
  const std::uintptr_t number = step / kLeafWords;
  if (number >= kLeaves) return set_between(reinterpret_cast<std::uintptr_t>(block), word);
  if (tables_[number] == nullptr && make_leaf(number) == nullptr) return false;
  tables_[number][step % kLeafWords] = word;
  return true;
}

bool BlockMap::set_between(std::uintptr_t at, Word word) {
  if (at % (kStep / 2) != 0 || at >= kEnd) return false;
  try {
    between_[at] = word;
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

BlockMap::Word BlockMap::take_between(std::uintptr_t at) {
  const auto found = between_.find(at);
  if (found == between_.end()) return 0;
  const Word word = found->second;
  between_.erase(found);
  return word;
}

BlockMap::Word BlockMap::get_between(std::uintptr_t at) const {
  const auto found = between_.find(at);
  return found != between_.end() ? found->second : 0;
}

void BlockMap::clear() {
  between_ = {};
  for (const std::size_t number : std::exchange(leaves_, {})) {
    ::munmap(tables_[number], kLeafWords * sizeof(Word));
    tables_[number] = nullptr;
  }
}

}  // namespace plimsoll::alloc
