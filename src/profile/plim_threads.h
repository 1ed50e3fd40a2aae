// profile/plim_threads.h: the threads of a .plim file, written and read.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/symbols.h"
#include "base/varint.h"
#include "profile/plim_tables.h"
#include "profile/profile.h"

namespace plimsoll::profile {

// Threads by their ThreadId.
using ThreadRows = std::map<std::uint32_t, Thread>;

// Names that differ in a number only: "Thread-17 (work)" has two parts around it.
struct NamePattern {
  std::string head, tail;
  bool has_number = false;
  std::int64_t number = 0;  // of the last one
};

// How probable the numbers of threads are, and what they are written relative to. Times in the file's units.
struct ThreadModels {
  SymbolModel counts{32}, steps{16}, kinds{4}, processes{16}, tids{64}, patterns{16}, numbers{32};
  SymbolModel ends{64}, lives{64}, cpus{64}, cpu_steps{64};
  std::uint64_t next = 0;  // the number of the row before, plus 1
  std::int64_t tid = 0, end = 0;
};

// Writes rows of threads: whole ones, and for those that are in the file already, how far they have come.
class ThreadEncoder {
 public:
  explicit ThreadEncoder(std::int64_t unit_ns) : unit_ns_(unit_ns) {}

  // The payload of a section with the patterns of the names of so many rows, which put() needs.
  std::string patterns(ThreadRows::const_iterator next, ThreadRows::const_iterator end);
  // Those rows.
  void put(ThreadRows::const_iterator next, ThreadRows::const_iterator end, SymbolWriter& out);
  // There will be no more of this thread.
  void forget(ThreadId thread) { known_.erase(static_cast<std::uint32_t>(thread.index())); }

 private:
  // What the file has of a thread.
  struct Known {
    Thread row;
    std::int64_t cpu = 0;
  };
  void put_facts(const Thread& thread, SymbolWriter& out);
  [[nodiscard]] bool is_known(std::uint32_t index, const Thread& thread) const;

  const std::int64_t unit_ns_;
  ThreadModels models_;
  boost::unordered_flat_map<std::uint32_t, Known> known_;  // by ThreadId
  std::vector<NamePattern> patterns_;                      // the newest, at most kPatterns
};

// Reads them.
class ThreadDecoder {
 public:
  ThreadDecoder(Profile& profile) : profile_(profile) {}
  // Times count so many nanoseconds.
  void set_unit(std::int64_t unit_ns) { unit_ns_ = unit_ns; }

  // A section each; false if it makes no sense. What came before it stays.
  bool patterns(VarintCursor& cursor);
  bool read(SymbolReader& rows);

 private:
  bool read_facts(SymbolReader& rows, std::uint64_t kind, Thread& thread);

  Profile& profile_;
  ThreadModels models_;
  std::vector<NamePattern> patterns_;
  std::vector<std::int64_t> cpu_;  // of threads, in units
  std::uint64_t name_bytes_ = 0;
  std::int64_t unit_ns_ = 1;
};

}  // namespace plimsoll::profile
