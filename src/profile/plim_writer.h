// profile/plim_writer.h: Profile -> .plim chunks, as often as there is something new.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "profile/plim_events.h"
#include "profile/profile.h"

namespace plimsoll::profile {

// Encodes what a growing Profile has gained since the last call. Table rows are written once; samples, markers, counter
// values and sources are written and then belong to the file: the caller clears them. Not thread-safe.
class PlimEncoder {
 public:
  // By ThreadId.
  using ThreadRows = std::map<std::uint32_t, Thread>;

  // `time_unit_ns`: the resolution of all times and weights in the file. Weights are rounded so that their sum over a
  // thread is exact to one unit.
  explicit PlimEncoder(std::int64_t time_unit_ns) : unit_ns_(time_unit_ns) {}

  // The bytes that a file starts with, before the first chunk.
  static std::string file_header();
  // Chunks with everything new in `profile`, including its complete flag: one, unless there is very much.
  std::string encode(const Profile& profile);
  // The same with threads that are not in profile.threads: those that are new or have changed, by their ids. New ones
  // are numbered without gaps.
  std::string encode(const Profile& profile, const ThreadRows& rows);
  // There will be no more samples of a thread: what they would be written relative to is forgotten.
  void forget_thread(ThreadId thread) { thread_states_.erase(static_cast<std::uint32_t>(thread.index())); }
  // The caller is about to clear the tables of strings, functions, frames, stacks and tag sets, which are all in the
  // file, and to fill them anew: a table too large to be kept in memory is begun again. A reader finds equal rows to be
  // one.
  void forget_tables();

 private:
  // What the next sample of a thread is written relative to.
  struct ThreadState {
    std::int64_t time = 0;    // units, of the last sample
    std::int64_t weight = 0;  // units, of the last sample
    std::int64_t remainder_ns = 0;
    std::int64_t stack = 0;
  };
  // Rows of a table that are in the file: those of the tables before, and those of the one at hand.
  struct Written {
    std::size_t before = 0, now = 0;
    void forget() { before += std::exchange(now, 0); }
    template <typename Tag>
    [[nodiscard]] std::int64_t plus_one(Id<Tag> id) const {
      return id.is_none() ? 0 : static_cast<std::int64_t>(before + id.index() + 1);
    }
  };

  // Each returns the payload of a section with the next rows; empty when there are none left.
  std::string session(const Profile& profile);
  std::string meta(const Profile& profile);
  std::string strings(const Profile& profile);
  std::string functions(const Profile& profile);
  std::string frames(const Profile& profile);
  std::string traces(const Profile& profile);
  std::string addresses(const Profile& profile);
  std::string modules(const Profile& profile);
  std::string stacks(const Profile& profile);
  std::string tag_sets(const Profile& profile);
  std::string processes(const Profile& profile);
  static std::string threads(const ThreadRows& rows, ThreadRows::const_iterator& next);
  std::string samples(const Profile& profile, std::size_t& next);
  std::string allocations(const Profile& profile, std::size_t& next);
  void put_release(std::string& out, const Release& release);
  std::string releases(const Profile& profile, std::size_t& next);
  std::string exact_allocations(const std::vector<AllocationChange>& changes, std::size_t& next);
  std::string allocation_sites(const AllocationEvents& events, std::size_t& next) const;
  std::string allocation_events(const Profile& profile, std::size_t& next);
  std::string allocation_types(const AllocationEvents& events, std::size_t& next) const;
  std::string markers(const Profile& profile, std::size_t& next) const;
  std::string counter(const Counter& counter) const;
  [[nodiscard]] std::int64_t units(std::int64_t ns) const;
  [[nodiscard]] std::int64_t allocation_units(std::int64_t ns) const;

  std::int64_t unit_ns_;
  bool is_first_ = true;
  std::vector<std::pair<std::string, std::string>> meta_;  // as written; values may change later
  std::size_t processes_ = 0;
  std::size_t modules_ = 0;
  Written strings_, functions_, frames_, traces_, addresses_, stacks_, tag_sets_;
  boost::unordered_flat_map<std::uint32_t, ThreadState> thread_states_;  // by ThreadId
  // What the next allocation, and the next release, is written relative to.
  struct AllocationState {
    std::int64_t number = 0, time = 0, stack = 0;
  };
  AllocationState last_allocation_, last_release_;
  bool has_distance_ = false;  // of sampled allocations
  bool has_exact_ = false;     // whether it has been said that allocations are exact
  bool has_events_ = false;    // likewise, one by one
  EventEncoder events_;
};

// The unit for PlimEncoder that keeps a sample at this rate near two bytes: 1, 2 or 5 times a power of ten of
// microseconds, at least fifty units to a period (or 1 us).
std::int64_t time_unit_for(double rate_hz);

// A .plim file being written. The file has mode 0600 and grows by whole chunks only: if a chunk cannot be written in
// full (a full disk), the file is cut back to the chunk before it.
class PlimFile {
 public:
  // Creates or empties the file at `path`; symbolic links are not followed.
  static Result<PlimFile> create(const std::string& path);

  // Appends bytes. If the program has closed or reused our descriptor behind our back, the file is opened again; what
  // the program has made of the descriptor is never written to.
  Status append(const std::string& bytes);
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  PlimFile(std::string path, UniqueFd fd, std::uint64_t device, std::uint64_t inode)
      : path_(std::move(path)), fd_(std::move(fd)), device_(device), inode_(inode) {}
  [[nodiscard]] bool is_ours(int fd) const;
  Status reopen_if_lost();

  std::string path_;
  UniqueFd fd_;
  std::uint64_t device_;
  std::uint64_t inode_;
  std::int64_t size_ = 0;
};

// Writes a whole Profile as one file: what read_plim_file reads back. For profiles that are in memory.
Status write_plim_file(const Profile& profile, const std::string& path);

}  // namespace plimsoll::profile
