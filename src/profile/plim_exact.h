// profile/plim_exact.h: the section of exact allocations, written and read; see docs/format.md.
#pragma once

#include <boost/container_hash/hash.hpp>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "base/varint.h"
#include "profile/profile.h"

namespace plimsoll::profile {

// The changes that a profile's tables come from: those of a recording, else such as would make the tables, which are in
// `made`.
const GrowingArray<AllocationChange>& changes_of(const Profile& profile, GrowingArray<AllocationChange>& made);

// Appends a row; `stack` and `type` are optional ids as they are in the file, `unit_ns` that of the times of
// allocations. Rows of one section are told by their difference to the one before.
class ExactEncoder {
 public:
  explicit ExactEncoder(std::int64_t unit_ns) : unit_ns_(unit_ns) {}
  void put(std::string& out, const AllocationChange& change, std::int64_t stack, std::int64_t type);

 private:
  const std::int64_t unit_ns_;
  std::int64_t stack_ = 0, born_ = 0;
};

// Makes tables of changes.
class ExactDecoder {
 public:
  // The numbers of a row, as they are in the file; `type` is an optional id.
  struct Numbers {
    std::uint64_t change = 0, domain = 0, thread = 0, type = 0;
    std::int64_t stack = 0, born = 0, lived = 0, blocks = 0, bytes = 0;
  };
  // Reads the next row of a section; `before` is the one before, or {}.
  static Numbers next(VarintCursor& cursor, const Numbers& before);
  // False if it makes no sense.
  bool add(Profile& profile, const AllocationChange& change);
  // After the last one.
  static void finish(Profile& profile);

 private:
  // What rows have in common that are one row until something is known to have become of their blocks.
  struct Group {
    ThreadId thread;
    StackId stack;
    std::int64_t born_ns = 0;
    std::uint8_t domain = 0;
    bool operator==(const Group&) const = default;
    friend std::size_t hash_value(const Group& group) {
      std::size_t seed = 0;
      boost::hash_combine(seed, group.thread.index());
      boost::hash_combine(seed, group.stack.index());
      boost::hash_combine(seed, group.born_ns);
      boost::hash_combine(seed, group.domain);
      return seed;
    }
  };
  // Adds to a table's row of a group; false if nothing like that can be there.
  using Rows = boost::unordered_flat_map<Group, std::size_t, boost::hash<Group>>;
  static bool add_to(AllocationTable& table, Rows& rows, const Group& group, const AllocationChange& change);

  Rows living_, at_peak_;
};

}  // namespace plimsoll::profile
