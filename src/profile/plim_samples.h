// profile/plim_samples.h: the samples of a .plim file, written and read.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "base/varint.h"
#include "profile/plim_tables.h"
#include "profile/profile.h"

namespace plimsoll::profile {

// Writes samples, each relative to the one of its thread before it.
class SampleEncoder {
 public:
  // Times and weights count so many nanoseconds. Weights are rounded so that a thread's sum is right to one unit.
  SampleEncoder(std::int64_t unit_ns, const TableEncoder& tables) : unit_ns_(unit_ns), tables_(tables) {}

  // The payload of a section with the next of the profile's samples; empty when there are none left.
  std::string next(const Profile& profile, std::size_t& next);
  // There will be no more of this thread: what they would be relative to is forgotten.
  void forget(ThreadId thread) { threads_.erase(static_cast<std::uint32_t>(thread.index())); }

  // A time in the file's units, rounded.
  [[nodiscard]] std::int64_t units(std::int64_t ns) const;
  [[nodiscard]] std::int64_t unit_ns() const { return unit_ns_; }

 private:
  // Of the last sample of a thread; in units, but for what was rounded away.
  struct ThreadState {
    std::int64_t time = 0, weight = 0, remainder_ns = 0, stack = 0;
  };

  const std::int64_t unit_ns_;
  const TableEncoder& tables_;
  boost::unordered_flat_map<std::uint32_t, ThreadState> threads_;  // by ThreadId
};

// Reads sections of samples into a Profile.
class SampleDecoder {
 public:
  SampleDecoder(Profile& profile, const TableDecoder& tables) : profile_(profile), tables_(tables) {}

  // A section, whose times count so many nanoseconds; false if it makes no sense, and the rows before that stay.
  // `part`: of the file that has been read up to here.
  bool read(VarintCursor& cursor, std::int64_t unit_ns, double part);

  // After the last section. A wait is written when it is over, and may so come after what followed it: rows are put
  // into the order that SampleTable promises.
  void finish();

 private:
  // What a row of the columns says, by steps from the row before it of the same thread.
  struct Steps {
    std::int64_t stack, weight, time;
  };
  // What the steps of a thread have come to.
  struct ThreadState {
    std::int64_t time = 0, weight = 0, stack = 0;
  };
  bool put(std::size_t row, ThreadId thread, const Steps& step, Activity activity, TagSetId tags);
  void make_room(std::size_t rows, double part);

  Profile& profile_;
  const TableDecoder& tables_;
  std::vector<ThreadState> threads_;
  std::int64_t unit_ns_ = 1;
  bool is_disordered_ = false;
};

}  // namespace plimsoll::profile
