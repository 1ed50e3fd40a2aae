#include "alloc/block_map.h"

#include <sys/mman.h>

#include <cerrno>
#include <new>
#include <utility>

namespace plimsoll::alloc {
namespace {

void* map(std::size_t bytes) {
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

}  // namespace

BlockMap::~BlockMap() {
  if (tables_ == nullptr) return;
  clear();
  ::munmap(tables_, kLeaves * sizeof(Word*));
}

Status BlockMap::prepare() {
  if (tables_ != nullptr) return Ok{};
  tables_ = static_cast<Word**>(map(kLeaves * sizeof(Word*)));
  if (tables_ != nullptr) return Ok{};
  return system_error("cannot reserve 256 MiB of addresses for the table of blocks (is there a limit, ulimit -v?)",
                      errno);
}

BlockMap::Word* BlockMap::make_leaf(std::size_t number) {
  try {
    leaves_.push_back(number);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
  auto* leaf = static_cast<Word*>(map(kLeafWords * sizeof(Word)));
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
