// formats/memray/ledger.h: what became of all blocks, as rows of an exact recording: from events of allocating and
// freeing.
#pragma once

#include <boost/container_hash/hash.hpp>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "profile/peak_accounts.h"
#include "profile/profile.h"

namespace plimsoll::formats::memray {

// One line of the result at a time.
using Site = profile::BlockSource;

// Books blocks by their addresses. Memory is a few words for each that is alive, and for each row of the result.
class Ledger {
 public:
  // A block; one that was there already at this address has gone unseen.
  void allocate(const Site& site, std::uint64_t address, std::uint64_t size, std::int64_t now_ns);
  // What was allocated before the recording began is not known, and passed over.
  void free(std::uint64_t address, std::int64_t now_ns);
  // Mappings may be taken back in parts: such a one is one block all the same, which goes with its last part.
  void map(const Site& site, std::uint64_t address, std::uint64_t size, std::int64_t now_ns);
  void unmap(std::uint64_t address, std::uint64_t size, std::int64_t now_ns);

  // Fills the profile's tables of allocations, and the peak. Call it once.
  void finish(profile::Profile& profile, std::int64_t end_ns);

 private:
  // A block of a site that was born at about a time.
  struct Block {
    std::uint32_t birth = 0;  // in births_
    std::uint64_t size = 0;
    std::uint64_t number = 0;
  };
  using Birth = std::pair<std::uint32_t, std::int64_t>;    // account, time
  using Outcome = std::pair<std::uint32_t, std::int64_t>;  // birth, end: the time, doubled, and 1 if it was temporary
  template <typename Key>
  using Index = boost::unordered_flat_map<Key, std::uint32_t, boost::hash<Key>>;

  Block born(const Site& site, std::uint64_t size, std::int64_t now_ns);
  // Books `size` bytes of a block as gone, all of it or a part.
  void gone(const Block& block, std::uint64_t size, bool is_whole, std::int64_t now_ns);
  void add_row(const Block& block, std::uint64_t size, bool is_whole, std::int64_t freed_ns, bool is_temporary);
  // Takes one of a mapping's parts. Whether that was the last.
  bool take_last_part(const Block& block);

  profile::PeakAccounts accounts_;
  std::vector<std::uint64_t> newest_;  // by account, the number of its newest block
  std::vector<Birth> births_;
  Index<Birth> birth_index_;
  profile::AllocationTable rows_;
  Index<Outcome> row_index_;
  boost::unordered_flat_map<std::uint64_t, Block> blocks_;
  std::map<std::uint64_t, Block> mappings_;                             // or their parts
  boost::unordered_flat_map<std::uint64_t, std::uint32_t> more_parts_;  // than one, by number, of those with holes
  std::uint64_t blocks_so_far_ = 0;
  std::int64_t grown_ns_ = 0;
};

}  // namespace plimsoll::formats::memray
