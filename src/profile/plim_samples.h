// profile/plim_samples.h: the samples of a .plim file, written and read.
#pragma once

#include <array>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "base/symbols.h"
#include "base/varint.h"
#include "profile/plim_format.h"
#include "profile/plim_tables.h"
#include "profile/profile.h"
#include "profile/recent_slots.h"

namespace plimsoll::profile {

// How probable the numbers of samples are.
struct SampleModels {
  SymbolModel counts{2}, threads{64}, runs{32}, flags{4}, older{8};
  std::array<SymbolModel, 3> stacks{SymbolModel{RecentSlots::kCount + 3}, SymbolModel{RecentSlots::kCount + 3},
                                    SymbolModel{RecentSlots::kCount + 3}};  // by what was said of the last one
  std::array<SymbolModel, 3> weights{SymbolModel{64}, SymbolModel{64}, SymbolModel{64}};
  std::array<SymbolModel, 2> times{SymbolModel{64}, SymbolModel{64}};
  std::array<SymbolModel, kActivityCount> activities{SymbolModel{8}, SymbolModel{8}, SymbolModel{8}, SymbolModel{8},
                                                     SymbolModel{8}, SymbolModel{8}, SymbolModel{8}};  // by the last
  SymbolModel tags{16};
};

// What a sample is written relative to: the one before it of the same thread. In units.
struct SampleState {
  std::int64_t time = 0, weight = 0, weight_step = 0, lag = 0;
  std::uint64_t stack_symbol = 2, stack = 0, tags = 0;  // optional ids as written
  Activity activity = Activity::kRunning;
};

// Writes samples, each relative to the one of its thread before it.
class SampleEncoder {
 public:
  // Times and weights count so many nanoseconds. Weights are rounded so that a thread's sum is right to one unit.
  SampleEncoder(std::int64_t unit_ns, TableEncoder& tables) : unit_ns_(unit_ns), tables_(tables) {}

  // So many of the profile's samples at most, from `next` on.
  void put(const Profile& profile, std::size_t& next, std::size_t most, SymbolWriter& out);
  // There will be no more of this thread: what they would be relative to is forgotten.
  void forget(ThreadId thread) { threads_.erase(static_cast<std::uint32_t>(thread.index())); }

 private:
  // What is known of a thread.
  struct ThreadState : SampleState {
    std::int64_t remainder_ns = 0;  // what was rounded away
  };
  ThreadState& state_of(ThreadId thread);
  void put_thread(const SampleTable& table, std::size_t row, std::size_t end, SymbolWriter& out);
  void put_row(const SampleTable& table, std::size_t row, std::uint64_t flags, ThreadState& state, SymbolWriter& out);
  void put_stack(std::uint64_t stack, SampleState& state, SymbolWriter& out);

  const std::int64_t unit_ns_;
  TableEncoder& tables_;
  SampleModels models_;
  SlotFinder slots_;
  std::uint64_t thread_ = 0;  // of the last sample
  std::int64_t time_ = 0, weight_ = 0;
  boost::unordered_flat_map<std::uint32_t, ThreadState> threads_;  // by ThreadId
};

// Reads sections of samples into a Profile.
class SampleDecoder {
 public:
  SampleDecoder(Profile& profile, TableDecoder& tables) : profile_(profile), tables_(tables) {}
  // Times and weights count so many nanoseconds.
  void set_unit(std::int64_t unit_ns) { unit_ns_ = unit_ns; }

  // The samples of a section; false if it makes no sense, and the rows before that stay. `part`: of the file that has
  // been read up to here.
  bool read(SymbolReader& rows, double part);
  // A section of version 2.
  bool read_columns(VarintCursor& cursor, double part);

  // After the last section. A wait is written when it is over, and may so come after what followed it: rows are put
  // into the order that SampleTable promises.
  void finish();

 private:
  // What a row says, by steps from the row before it of the same thread.
  struct Steps {
    std::int64_t weight, time;
  };
  bool read_row(SymbolReader& rows, std::size_t row, std::uint64_t flags);
  bool read_stack(SymbolReader& rows, SampleState& state);
  bool put(std::size_t row, std::uint64_t thread, SampleState& state, const Steps& step, Activity activity,
           std::uint64_t written_tags);
  void make_room(std::size_t rows, double part);
  SampleState* state_of(std::uint64_t thread);

  Profile& profile_;
  TableDecoder& tables_;
  SampleModels models_;
  RecentSlots slots_;
  std::uint64_t thread_ = 0, run_ = 0;
  std::int64_t time_ = 0, weight_ = 0;
  // What the steps of a thread have come to.
  struct ThreadState : SampleState {
    bool is_known = false;
  };
  std::vector<ThreadState> threads_;
  std::int64_t unit_ns_ = 1;
  std::int64_t weight_left_ = plim::kMostWeight;
  bool is_disordered_ = false;
};

}  // namespace plimsoll::profile
