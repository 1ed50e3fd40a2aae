// profile/tag_table.h: the tags that a program put on what it did, each combination of them once.
#pragma once

#include <boost/container_hash/hash.hpp>
#include <boost/unordered/unordered_flat_map.hpp>
#include <vector>

#include "base/ids.h"

namespace plimsoll::profile {

// One tag, for example request = "GET /".
struct Tag {
  StringId name;
  StringId value;
  bool operator==(const Tag&) const = default;
};

inline std::size_t hash_value(const Tag& tag) {
  return std::size_t{tag.name.index()} * 0x9e3779b97f4a7c15U + tag.value.index();
}

// The tags that held at one time, ordered by the texts of their names; a name occurs once.
using TagSet = std::vector<Tag>;

// Tag sets in order of first appearance. Not thread-safe.
class TagSetTable {
 public:
  TagSetId intern(const TagSet& set) {
    const auto [position, inserted] = index_.try_emplace(set, rows_.size());
    if (inserted) {
      rows_.push_back(set);
      tags_ += 2 * set.size();  // in the row and in the index
    }
    return position->second;
  }
  [[nodiscard]] const TagSet& operator[](TagSetId id) const { return rows_[id.index()]; }
  [[nodiscard]] const std::vector<TagSet>& rows() const { return rows_; }
  [[nodiscard]] std::size_t size() const { return rows_.size(); }
  // Bytes of memory in use, nearly.
  [[nodiscard]] std::size_t memory() const {
    return tags_ * sizeof(Tag) + rows_.capacity() * sizeof(TagSet) +
           index_.bucket_count() * (sizeof(std::pair<TagSet, TagSetId>) + 1);
  }

 private:
  std::vector<TagSet> rows_;
  boost::unordered_flat_map<TagSet, TagSetId, boost::hash<TagSet>> index_;
  std::size_t tags_ = 0;
};

}  // namespace plimsoll::profile
