// profile/plim_allocations.h: the allocations of a .plim file, written and read: samples of them, exact sums, and
// logs of events.
#pragma once

#include <array>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "base/varint.h"
#include "profile/plim_events.h"
#include "profile/plim_exact.h"
#include "profile/plim_tables.h"
#include "profile/profile.h"

namespace plimsoll::profile {

// What the next sampled allocation, and the next release, is told relative to.
struct LastAllocation {
  std::int64_t number = 0, time = 0, stack = 0;
};

// Writes allocations.
class AllocationEncoder {
 public:
  // `unit_ns`: of the file's times; that of allocations is finer, if need be.
  AllocationEncoder(std::int64_t unit_ns, const TableEncoder& tables);

  // Each returns the payload of a section with the next rows; empty when there are none left. The first sections of
  // samples, exact and events come without rows, too: that allocations are recorded so is a fact even without any.
  std::string samples(const Profile& profile, std::size_t& next);
  std::string releases(const Profile& profile, std::size_t& next);
  static std::string moves(const Profile& profile, std::size_t& next);
  std::string exact(const GrowingArray<AllocationChange>& changes, std::size_t& next);
  std::string sites(const AllocationEvents& events, std::size_t& next) const;
  // add(const std::string& section) for each.
  template <typename Add>
  void each_of_events(const AllocationEvents& events, Add add) {
    if (events.sections.empty() && !has_events_) add(EventEncoder::no_events());
    for (const std::string& section : events.sections) add(section);
    has_events_ = true;
  }
  std::string types(const AllocationEvents& events, std::size_t& next) const;

 private:
  [[nodiscard]] std::int64_t units(std::int64_t ns) const { return ns / unit_ns_; }
  void put_release(std::string& out, const Release& release);

  const std::int64_t unit_ns_;
  const TableEncoder& tables_;
  LastAllocation last_allocation_, last_release_;
  bool has_distance_ = false;  // whether it has been said that allocations are sampled
  bool has_exact_ = false;     // or that they are exact
  bool has_events_ = false;    // or one by one
};

// Reads sections of allocations into a Profile.
class AllocationDecoder {
 public:
  AllocationDecoder(Profile& profile, const TableDecoder& tables) : profile_(profile), tables_(tables) {}

  // The unit of the file's times, nanoseconds; that of allocations is finer, if need be.
  void set_unit(std::int64_t unit_ns);

  // One section each; false if it makes no sense. Rows before that stay.
  bool samples(VarintCursor& cursor);
  bool releases(VarintCursor& cursor);
  bool moves(VarintCursor& cursor);
  bool exact(VarintCursor& cursor);
  bool sites(VarintCursor& cursor);
  bool events(VarintCursor& cursor);
  bool types(VarintCursor& cursor);

  // What takes memory beside the tables of the profile.
  [[nodiscard]] std::uint64_t bytes() const { return events_.bytes(); }

  // After the last section.
  void finish();

 private:
  using Columns = std::array<VarintCursor, 6>;
  bool sample(Columns& columns, AllocationRow& row);

  Profile& profile_;
  const TableDecoder& tables_;
  std::int64_t unit_ns_ = 1;
  LastAllocation last_allocation_, last_release_;
  boost::unordered_flat_map<std::uint64_t, std::size_t> row_of_number_;
  ExactDecoder exact_;
  EventReplay events_;
};

}  // namespace plimsoll::profile
