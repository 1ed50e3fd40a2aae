// profile/string_table.h: every text of a profile once, named by StringId.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <deque>
#include <string>
#include <string_view>

#include "base/ids.h"

namespace plimsoll::profile {

// Texts in order of first appearance. Views stay valid as long as the table lives. Not thread-safe.
class StringTable {
 public:
  StringTable() = default;
  StringTable(StringTable&&) = default;
  StringTable& operator=(StringTable&&) = default;
  // Copying would leave the index pointing into the original.
  StringTable(const StringTable&) = delete;
  StringTable& operator=(const StringTable&) = delete;
  ~StringTable() = default;

  StringId intern(std::string_view text) {
    if (const auto found = index_.find(text); found != index_.end()) return found->second;
    const StringId id{texts_.size()};
    const std::string& stored = texts_.emplace_back(text);
    index_.emplace(std::string_view{stored}, id);
    text_bytes_ += stored.size();
    return id;
  }
  // The text of an id; the empty text for none.
  [[nodiscard]] std::string_view operator[](StringId id) const {
    return id.is_none() ? std::string_view{} : std::string_view{texts_[id.index()]};
  }
  [[nodiscard]] std::size_t size() const { return texts_.size(); }
  // Bytes of memory in use, nearly.
  [[nodiscard]] std::size_t memory() const {
    return text_bytes_ + texts_.size() * sizeof(std::string) +
           index_.bucket_count() * (sizeof(std::pair<std::string_view, StringId>) + 1);
  }

 private:
  std::deque<std::string> texts_;  // a deque: growing never moves a text
  boost::unordered_flat_map<std::string_view, StringId> index_;
  std::size_t text_bytes_ = 0;
};

}  // namespace plimsoll::profile
