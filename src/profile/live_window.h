// profile/live_window.h: the last seconds of a session that goes on, as a profile.
#pragma once

#include <deque>
#include <map>
#include <mutex>
#include <vector>

#include "capture/sink.h"
#include "profile/profile.h"
#include "profile/sample_stacks.h"

namespace plimsoll::profile {

// What a thread of a LiveView does.
struct LiveThread {
  bool is_there = false;  // false: it has ended, and has samples in the window still
  Activity now = Activity::kOther;
  StackId stack;                // its last sample's
  std::uint64_t gil_looks = 0;  // of LiveView::gil_looks, those at which it had the lock
};

// A stretch of a session that ends at a given time.
struct LiveView {
  Profile profile;                  // its times count from the beginning of the stretch, and end_ns is how long it was
  std::vector<LiveThread> threads;  // by ThreadId of the profile
  std::uint64_t gil_looks = 0;      // at the lock of the main interpreter; 0 if there is none
  std::uint64_t gil_held = 0;
  std::uint64_t samples = 0;  // since the beginning of the session
  std::uint64_t lost = 0;     // looks at threads that came to nothing, likewise
};

// How much a LiveWindow keeps.
struct LiveWindowSettings {
  std::int64_t longest_ns = 60'000'000'000;
  std::size_t memory_bytes = std::size_t{32} << 20U;  // then the oldest samples go earlier
  Process process;
  Tid main_thread{};
};

// The SampleSink that keeps the samples of the last seconds. One thread fills it; any thread may ask.
class LiveWindow final : public capture::SampleSink {
 public:
  explicit LiveWindow(LiveWindowSettings settings);

  // The samples from `length_ns` before `now_ns` on, CLOCK_MONOTONIC. A sample that began earlier counts for the rest.
  [[nodiscard]] LiveView view(std::int64_t now_ns, std::int64_t length_ns) const;
  // Forgets what was, and does not take what stands for time before this one: nobody has looked meanwhile.
  void begin_anew(std::int64_t time_ns);

  void fact(const char*, const std::string&) override {}
  void code(capture::CodeId id, const cpython::CodeInfo& info) override;
  void forget_code(capture::CodeId id) override;
  void process(const capture::ProcessInfo&) override {}
  void thread(const capture::ThreadInfo& info) override;
  void sample(const capture::Sample& sample) override;
  void gil(const capture::GilLook& look) override;
  void allocation(const capture::Allocation&) override {}
  void release(std::int64_t, const capture::RawRelease&) override {}
  [[nodiscard]] bool knows_stack(std::uint32_t) const override { return false; }
  void exact_allocation(const capture::ExactAllocation&) override {}
  void counter(const char*, const char*, std::int64_t, std::int64_t) override {}
  void marker(const capture::MarkerEvent&) override {}
  [[nodiscard]] bool wants_flush() const override;
  [[nodiscard]] std::uint32_t code_epoch() const override;
  Status flush(const Totals& totals, Ending ending) override;

 private:
  // A sample.
  struct Row {
    std::int64_t time_ns = 0;
    std::int64_t weight_ns = 0;
    std::uint32_t thread = 0;  // ThreadSerial
    StackId stack;
    Activity activity{};
  };
  // A thread, and its last sample.
  struct KnownThread {
    capture::ThreadInfo info;
    Activity now = Activity::kOther;
    StackId stack;
  };
  // Takes over what stacks need into the tables of another profile.
  class Copy;

  [[nodiscard]] std::size_t table_memory() const;
  void forget_before(std::int64_t time_ns);
  void rebuild_tables();

  const LiveWindowSettings settings_;
  mutable std::mutex mutex_;  // guards all that follows
  Profile tables_;            // no rows
  SampleStacks stacks_{tables_};
  std::deque<Row> rows_;
  std::deque<capture::GilLook> gil_looks_;
  std::map<std::uint32_t, KnownThread> threads_;  // by ThreadSerial
  std::int64_t begin_ns_;
  std::uint64_t samples_ = 0, lost_ = 0;
  std::uint32_t code_epoch_ = 1;
};

}  // namespace plimsoll::profile
