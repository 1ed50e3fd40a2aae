// formats/memray/ledger.h: what became of all blocks, as rows of an exact recording: from events of allocating and
// freeing.
#pragma once

#include <boost/container_hash/hash.hpp>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "profile/profile.h"

namespace plimsoll::formats::memray {

// Who allocates: one line of the result at a time.
struct Site {
  ThreadId thread;
  StackId stack;
  std::uint8_t domain = 0;
  bool operator==(const Site&) const = default;
};
inline std::size_t hash_value(const Site& site) {
  std::size_t seed = site.thread.index();
  boost::hash_combine(seed, site.stack.is_none() ? SIZE_MAX : std::size_t{site.stack.index()});
  boost::hash_combine(seed, site.domain);
  return seed;
}

// Books blocks by their addresses. Memory is a few words for each that is alive, and for each row of the result.
class Ledger {
 public:
  // A block; one that was there already at this address has gone unseen.
  void allocate(const Site& site, std::uint64_t address, std::uint64_t size, std::int64_t now_ns);
  // What was allocated before the recording began is not known, and passed over.
  void free(std::uint64_t address, std::int64_t now_ns);
  // Mappings may be taken back in parts: each part is a block of its own from then on.
  void map(const Site& site, std::uint64_t address, std::uint64_t size, std::int64_t now_ns);
  void unmap(std::uint64_t address, std::uint64_t size, std::int64_t now_ns);

  // Fills the profile's tables of allocations, and the peak. Call it once.
  void finish(profile::Profile& profile, std::int64_t end_ns);

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  // A site's blocks that are alive, and those that were at the last peak so far.
  struct Account {
    Site site;
    std::uint64_t last = 0;  // the number of its newest block
    std::uint64_t blocks = 0, bytes = 0;
    std::uint64_t peak_blocks = 0, peak_bytes = 0;
    std::uint32_t as_of = 0;  // which peak that was
  };
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

  std::uint32_t account_of(const Site& site);
  Block born(const Site& site, std::uint64_t size, std::int64_t now_ns);
  // Books `size` bytes of a block as gone, all of it or a part.
  void gone(const Block& block, std::uint64_t size, bool is_whole, std::int64_t now_ns);
  void add_row(const Block& block, std::uint64_t size, std::int64_t freed_ns, bool is_temporary);
  // Call it before an account changes: what it had at the last peak is kept.
  void keep_peak(Account& account) const;
  void note_peak();

  std::vector<Account> accounts_;
  Index<Site> account_index_;
  std::vector<Birth> births_;
  Index<Birth> birth_index_;
  profile::AllocationTable rows_;
  Index<Outcome> row_index_;
  boost::unordered_flat_map<std::uint64_t, Block> blocks_;
  std::map<std::uint64_t, Block> mappings_;
  std::uint64_t blocks_so_far_ = 0;
  std::uint64_t bytes_ = 0, most_bytes_ = 0;
  std::uint32_t peaks_ = 0;
  std::int64_t grown_ns_ = 0, peak_ns_ = 0;
};

}  // namespace plimsoll::formats::memray
