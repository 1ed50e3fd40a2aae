// base/id_table.h: rows by ids that are given out in order and forgotten, most of them soon.
#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <memory>
#include <vector>

#include "base/ids.h"

namespace plimsoll {

// As quick as a vector, and as large as what is known: the memory of a page of rows is given back when all its ids are
// forgotten. (Eight bytes for each kPageRows ids stay.) A row that is not known is a T{}.
template <typename IdType, typename T>
class IdTable {
 public:
  static constexpr std::size_t kPageRows = 256;

  // The row, made if it was not known. References are good until the next call of a member that is not const.
  T& operator[](IdType id) {
    const std::size_t number = id.index() / kPageRows;
    if (number >= pages_.size()) pages_.resize(number + 1);
    if (pages_[number] == nullptr) pages_[number] = std::make_unique<Page>();
    pages_[number]->is_known.set(id.index() % kPageRows);
    return pages_[number]->rows[id.index() % kPageRows];
  }
  // Null if it is not known.
  [[nodiscard]] const T* find(IdType id) const {
    const Page* page = page_of(id);
    return page != nullptr && page->is_known[id.index() % kPageRows] ? &page->rows[id.index() % kPageRows] : nullptr;
  }
  // Whether it was known.
  bool forget(IdType id) {
    if (find(id) == nullptr) return false;
    Page& page = *pages_[id.index() / kPageRows];
    page.rows[id.index() % kPageRows] = T{};
    page.is_known.reset(id.index() % kPageRows);
    if (page.is_known.none()) pages_[id.index() / kPageRows].reset();
    return true;
  }
  void clear() { pages_.clear(); }
  [[nodiscard]] std::size_t pages_in_memory() const {
    std::size_t count = 0;
    for (const auto& page : pages_) count += page != nullptr ? 1 : 0;
    return count;
  }

 private:
  // Rows of ids that follow one another, and which of them are known.
  struct Page {
    std::array<T, kPageRows> rows{};
    std::bitset<kPageRows> is_known;
  };
  const Page* page_of(IdType id) const {
    const std::size_t number = id.index() / kPageRows;
    return number < pages_.size() ? pages_[number].get() : nullptr;
  }

  std::vector<std::unique_ptr<Page>> pages_;
};

}  // namespace plimsoll
