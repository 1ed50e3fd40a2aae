// profile/recorder.h: a session's results -> a growing .plim file.
#pragma once

#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>
#include <boost/unordered/unordered_flat_set.hpp>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/growing_array.h"
#include "capture/sink.h"
#include "os/process_files.h"
#include "profile/plim_events.h"
#include "profile/plim_writer.h"
#include "profile/profile.h"
#include "profile/sample_stacks.h"

namespace plimsoll::profile {

// What the recorder must know before the first sample.
struct RecorderSettings {
  std::string path;
  double rate_hz = 1000;  // determines the resolution of times in the file
  std::vector<std::pair<std::string, std::string>> meta;
  Process process;
  Tid main_thread{};
  bool is_exact = false;                  // all allocations are recorded
  bool has_events = false;                // likewise, one by one
  std::uint64_t allocation_distance = 0;  // mean bytes between sample points; 0 = allocations are not sampled
  // Whether the text of profiled files goes into the file.
  enum class Sources : std::uint8_t { kEmbed, kOmit } sources = Sources::kEmbed;
  // Where those files are, if they are another process's; null: where we are ourselves.
  std::unique_ptr<os::ProcessFiles> files;
  // For tables and for what is not in the file yet, nearly.
  std::size_t memory_bytes = std::size_t{12} << 20U;
};

// The SampleSink that builds a Profile and appends it to a file, chunk by chunk. Keeps tables in memory, not samples;
// and when the tables outgrow their budget, it begins them anew.
class Recorder final : public capture::SampleSink {
 public:
  static Result<std::unique_ptr<Recorder>> create(RecorderSettings settings);

  void fact(const char* name, const std::string& value) override;
  void code(capture::CodeId id, const cpython::CodeInfo& info) override;
  void native_function(capture::CodeId id, const capture::NativeFunction& function) override;
  void forget_code(capture::CodeId id) override;
  void process(const capture::ProcessInfo& info) override;
  void thread(const capture::ThreadInfo& info) override;
  void sample(const capture::Sample& sample) override;
  void allocation(const capture::Allocation& allocation) override;
  void release(std::int64_t time_ns, const capture::RawRelease& release) override;
  [[nodiscard]] bool knows_stack(std::uint32_t number) const override {
    return number < exact_stacks_.size() && exact_stacks_[number].is_known;
  }
  void exact_stack(const capture::ExactStack& stack) override;
  void exact_allocation(const capture::ExactAllocation& allocation) override;
  void allocation_site(const capture::AllocationSite& site) override;
  void allocation_events(std::span<const std::uint32_t> words) override;
  void allocation_type(std::uint32_t slot, std::string_view type) override;
  void counter(const char* name, const char* unit, std::int64_t time_ns, std::int64_t value) override;
  void marker(const capture::MarkerEvent& marker) override;
  void source(const capture::SourceText& source) override;
  [[nodiscard]] bool wants_flush() const override;
  [[nodiscard]] std::uint32_t code_epoch() const override { return code_epoch_; }
  Status flush(const Totals& totals, Ending ending) override;
  // Those that may yet have samples.
  [[nodiscard]] std::size_t threads_in_memory() const { return std::max(threads_.size(), stacks_.threads_in_memory()); }

 private:
  Recorder(RecorderSettings settings, PlimFile file);
  TagSetId tag_set_of(const capture::Sample& sample);
  void want_source(std::string_view file);
  void add_source(const std::string& file, std::string text);
  [[nodiscard]] std::string read_source(const std::string& name) const;  // "" if there is none
  // As many as an open recording writes at once, or all.
  void read_wanted_sources(Ending ending);
  [[nodiscard]] std::size_t table_memory() const;
  void forget_tables();
  void forget_rows();  // they are encoded
  [[nodiscard]] std::int64_t since_start(std::int64_t time_ns) const { return time_ns - profile_.start_monotonic_ns; }

  // The tags of a thread's previous sample.
  struct LastTags {
    capture::TagNumber number = 0;
    TagSetId tags;
  };
  // A thread of which there may be more samples.
  struct LiveThread {
    Thread row;  // as it was told last
    LastTags last_tags;
    bool has_ended = false;
    bool was_flushed_since = false;
  };
  // (Threads that begin and end by the hundred a second must not fill the memory.)
  void forget_ended_threads();

  const RecorderSettings settings_;
  const std::string directory_;  // against which relative file names are read, wherever the program goes later
  PlimFile file_;
  PlimEncoder encoder_;
  EventEncoder events_;
  Profile profile_;
  bool has_header_ = false;
  SampleStacks stacks_{profile_};
  boost::unordered_flat_map<std::uint32_t, LiveThread> threads_;  // by ThreadSerial
  ThreadRows changed_threads_;                                    // since the last flush
  std::uint32_t thread_count_ = 0;                                // numbered so far
  // What a stack of an exact recording is in the tables.
  struct KnownStack {
    StackId stack;
    StackId base;  // what frames on top of it are put upon: not that it has none
    bool is_known = false;
  };
  [[nodiscard]] KnownStack exact_stack(std::uint32_t number) const {
    return knows_stack(number) ? exact_stacks_[number] : KnownStack{};
  }
  GrowingArray<KnownStack> exact_stacks_;  // by ExactStack::number; those of zeros are not known
  std::uint32_t code_epoch_ = 1;
  // Hashes of the names of files that functions are of, and of those whose text there is: a collision loses one.
  boost::unordered_flat_set<std::size_t> known_sources_, read_sources_;
  std::deque<std::string> wanted_sources_;  // names of those that are still to be written
  bool has_left_sources_ = false;           // by the last flush
  std::size_t source_bytes_ = 0;
};

}  // namespace plimsoll::profile
