// profile/plim_writer.h: Profile -> .plim chunks, as often as there is something new.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/chunk_stream.h"
#include "base/result.h"
#include "profile/plim_allocations.h"
#include "profile/plim_file.h"
#include "profile/plim_format.h"
#include "profile/plim_markers.h"
#include "profile/plim_samples.h"
#include "profile/plim_tables.h"
#include "profile/plim_threads.h"
#include "profile/profile.h"

namespace plimsoll::profile {

class ChunkWriter;

// Encodes what a growing Profile has gained since the last call. Table rows are written once; samples, markers, counter
// values and sources are written and then belong to the file: the caller clears them. Not thread-safe.
class PlimEncoder {
 public:
  // `time_unit_ns`: the resolution of all times and weights in the file. Weights are rounded so that their sum over a
  // thread is exact to one unit.
  explicit PlimEncoder(std::int64_t time_unit_ns)
      : unit_ns_(time_unit_ns),
        samples_(time_unit_ns, tables_),
        threads_(time_unit_ns),
        markers_(time_unit_ns),
        allocations_(time_unit_ns, tables_) {}
  PlimEncoder(const PlimEncoder&) = delete;
  PlimEncoder& operator=(const PlimEncoder&) = delete;

  // The bytes that a file starts with, before the first chunk.
  static std::string file_header();
  // Chunks with everything new in `profile`, including its complete flag: one, unless there is very much.
  std::string encode(const Profile& profile);
  // The same with threads that are not in profile.threads: those that are new or have changed, by their ids. New ones
  // are numbered without gaps.
  std::string encode(const Profile& profile, const ThreadRows& rows);
  // There will be no more samples of a thread: what they would be written relative to is forgotten.
  void forget_thread(ThreadId thread) {
    samples_.forget(thread);
    threads_.forget(thread);
  }
  // The caller is about to clear the tables of strings, functions, frames, stacks and tag sets, which are all in the
  // file, and to fill them anew: a table too large to be kept in memory is begun again. A reader finds equal rows to be
  // one.
  void forget_tables() { tables_.forget(); }

 private:
  // Each returns the payload of a section; empty if there is nothing new.
  std::string session(const Profile& profile);
  std::string meta(const Profile& profile);
  std::string modules(const Profile& profile);
  // The next ones that are not in the file.
  struct Rows {
    ThreadRows::const_iterator thread;
    std::size_t sample, marker;
  };
  void add_rows(ChunkWriter& out, const Profile& profile, const ThreadRows& threads);
  [[nodiscard]] bool is_over(const Profile& profile, const ThreadRows& threads, const Rows& next) const;

  const std::int64_t unit_ns_;
  ChunkStreamWriter chunks_{plim::kCompressionLevel};
  std::string room_;  // for a chunk before it is compressed; kept, as events take megabytes a second
  bool is_first_ = true;
  std::vector<std::pair<std::string, std::string>> meta_;  // as written; values may change later
  std::size_t modules_ = 0;
  TableEncoder tables_;
  SampleEncoder samples_;
  ThreadEncoder threads_;
  MarkerEncoder markers_;
  AllocationEncoder allocations_;
};

// The unit for PlimEncoder that keeps a sample at this rate near two bytes: 1, 2 or 5 times a power of ten of
// microseconds, at least fifty units to a period (or 1 us).
std::int64_t time_unit_for(double rate_hz);

// Writes a whole Profile as one file, or none: what read_plim_file reads back. For profiles that are in memory.
Status write_plim_file(const Profile& profile, const std::string& path);

}  // namespace plimsoll::profile
