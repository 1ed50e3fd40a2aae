// capture/session.h: one recording of this process: the sampler, the ring, the drain thread and the sink.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "base/sample_ring.h"
#include "base/unique_fd.h"
#include "capture/allocation_recorder.h"
#include "capture/code_registry.h"
#include "capture/cpu_sampler.h"
#include "capture/drain_gate.h"
#include "capture/exact_recorder.h"
#include "capture/held_records.h"
#include "capture/overhead_budget.h"
#include "capture/reader_thread.h"
#include "capture/resolve.h"
#include "capture/sink.h"

namespace plimsoll::capture {

// What a session is asked to do.
struct SessionSettings {
  TickSettings tick;
  Trust trust = Trust::kValidated;
  bool exact_allocations = false;
  void (*before_drain)() = nullptr;  // called by the drain thread, many times a second
  // Called before the first tick: from then on the registry is told of every death (on_destroy).
  void (*watch_deaths)(CodeRegistry* registry) = nullptr;
  double max_overhead = 0;  // part of the program's CPU time that recording may cost; 0 = no limit
  bool has_native = false;  // native frames, too
  std::size_t ring_bytes = std::size_t{4} << 20U;
  std::int64_t duration_ns = 0;                    // recording ends by itself after this; 0 = it does not
  std::int64_t rss_interval_ns = 100'000'000;      // between readings of the resident set size
  std::int64_t flush_interval_ns = 1'000'000'000;  // between chunks of the file
};

// A look at a running session.
struct SessionStats {
  std::uint64_t samples = 0;  // passed to the sink
  std::int64_t sampled_cpu_ns = 0;
  std::int64_t process_cpu_ns = 0;   // of the program, without the profiler's thread
  std::int64_t waited_ns = 0;        // by samples of threads that did not run
  std::int64_t profiler_cpu_ns = 0;  // of the profiler's own threads
  std::int64_t duration_ns = 0;
  double rate_hz = 0;
  std::string engine;
  bool is_paused = false;
  // What the handler of a tick took, in half of all ticks at most, and in 99 of 100; 0 unless it was measured
  // (TickSettings::measures_itself).
  std::int64_t tick_median_ns = 0;
  std::int64_t tick_p99_ns = 0;
  std::array<DropTotal, kDropReasonCount> drops{};
  std::string error;  // why recording ended early, for example a full disk; empty if it did not
};

// A recording. Members are thread-safe and may be called with or without the GIL held; none of them needs it.
//
// Locks are taken in this order: gate_.work; the reader's (hold_reader); the sampler's, or mutex_, or that of the
// allocations. The reader thread takes no gate, for whoever completes the recording waits for its end behind it.
class Session {
 public:
  static Result<std::unique_ptr<Session>> start(const SessionSettings& settings, const Interpreter& interpreter,
                                                std::unique_ptr<SampleSink> sink);
  // Whether native frames can be recorded; if not, why. Touches nothing.
  static Status check_native();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session();  // stops

  // Ends the recording and completes the file. Idempotent.
  SessionStats stop();
  // In the child of a fork, prepared by hold_for_fork or, as that of a C library, not: forgets everything without
  // touching the file, which is the parent's, or what the kernel counts for the parent. The object must not
  // be used or destroyed afterwards: parts of it belong to a thread that does not exist here.
  void abandon();
  // Around fork, in the parent: while held, no thread of ours is at work, or inside the sink. The program's threads may
  // run meanwhile, and call everything; not held any more is what the caller itself stops, as what a fork calls may.
  // Not with the GIL: whoever has the reader held may be waiting for it.
  void hold_for_fork();
  void release_after_fork();
  // For a fork of a program that has no thread but the caller: if that is so, ends the threads of ours, for Python
  // warns of those that it finds then, which may be an error. What is recorded meanwhile waits in the ring. Not with
  // the GIL. False if there is nothing to wake.
  bool rest_if_alone();
  // By the same thread, in the parent: they are there again. (If the system gives none, the recording ends.)
  void wake();

  // Sampling pauses until it is resumed as often.
  void pause();
  void resume();

  // Whether a thread of ours reads what others keep in memory; while this is held it does not.
  [[nodiscard]] bool has_reader() const { return reader_ != nullptr; }
  void hold_reader() {  // not with the GIL, likewise
    if (reader_ != nullptr) reader_->hold();
  }
  void release_reader() {
    if (reader_ != nullptr) reader_->release();
  }

  // Writes out all samples taken before the call; returns when they are in the file. Waits at most two seconds.
  void flush() { flush_as(SampleSink::Ending::kOpen); }
  // Modules may have been loaded, in whose code allocations are to be recorded exactly: unlike a sample's, their stacks
  // cannot be unwound later. Returns when they are known. `loads` is how many the dynamic linker has loaded so far: if
  // as many as at the last call, there is nothing to do. Waits at most two seconds.
  void learn_modules(std::uint64_t loads);
  // Before exec replaces the program: completes the file, and silences the calling thread, so that no tick is pending
  // when the signal's action becomes the default again.
  void prepare_exec();
  // The program is still there, and its recording goes on.
  void exec_has_failed() { sampler_->end_silence_of_caller(); }
  [[nodiscard]] SessionStats stats() const;
  // May be called from any thread; written with the next drain.
  void add_marker(MarkerEvent marker);
  void add_source(SourceText source);  // likewise
  // Whoever had the recording begun reads from that pipe. When nobody does any more, the drain thread calls `tell`, and
  // again some time later if that says that it has told nobody.
  void watch_listener(UniqueFd pipe, bool (*tell)());
  // CPU engine: set_rate, threads.
  CpuSampler& sampler() { return *sampler_; }
  CodeRegistry& registry() { return registry_; }
  AllocationRecorder& allocations() { return *allocations_; }
  // Null if allocations are not recorded exactly.
  ExactRecorder* exact() { return exact_.get(); }

  // While the lock is held, no thread of ours is at work, and living_stacks() and the stacks of exact() know all that
  // was allocated before the call, but for what other threads are about to note. In the child of a fork it still holds.
  // Not locked: the recording has ended, or its thread waits for who calls.
  std::unique_lock<std::timed_mutex> catch_up();
  [[nodiscard]] const LivingStacks& living_stacks() const { return living_stacks_; }

 private:
  Session(const SessionSettings& settings, const Interpreter& interpreter, SampleRing ring,
          std::unique_ptr<SampleSink> sink);

  // Returns when the drain thread has begun.
  Status start_drain();
  // Learns what is loaded, before the first tick.
  Status begin_native(const Interpreter& interpreter, TickSettings& tick);
  void flush_as(SampleSink::Ending ending);
  void run();  // the drain thread
  // Nanoseconds until the next look at the ring, given the last one and how full the ring is now.
  [[nodiscard]] std::int64_t next_drain_interval(std::int64_t last) const;
  void drain_once();
  // Takes what is in the ring; whether all was taken.
  bool drain_ring();
  void take_held();
  void tell_of_threads();
  void take(std::span<const std::byte> record);
  // The two kinds of frames that a record has.
  struct NativeRecord {
    NativeStack native;
    std::span<const cpython::PyFrame> frames, awaiting;
  };
  // What follows the head of a record with has_native; valid until the next call.
  NativeRecord read_native(const RawSample& raw, std::span<const std::byte> rest);
  // Resolves and passes on a tick's sample; false if it cannot be.
  bool take_tick(const RawSample& raw, std::span<const std::byte> rest);
  void take_allocation(const RawSample& raw, std::span<const std::byte> rest);
  void take_release(std::int64_t time_ns, const RawRelease& release);
  void housekeeping(std::int64_t now_ns);
  // Learns what was loaded or unloaded. While that takes long, records are held.
  void look_at_modules(std::int64_t now_ns);
  void look_for_threads(std::int64_t now_ns);
  void look_for_listener();
  void count_allocations(std::int64_t now_ns);
  // The rate is such that recording costs what it may, and at most what was asked.
  void begin_budget();
  void keep_to_budget();
  void flush_sink(std::int64_t now_ns, SampleSink::Ending ending);
  // With what is counted up to now: for somebody who asks, or because the program ends, or becomes another.
  void flush_all(SampleSink::Ending ending);
  void tell_of_totals();
  // Ends sampling and finishes the file, once. With gate_.work held, by the drain thread, or in stop() when that has
  // ended.
  void complete();
  SampleSink::Totals totals(std::int64_t now_ns) const;
  void fail(const Error& error);
  // Does what the sink is told of. If no memory is left for it, the recording has failed, and nothing more is told: the
  // sink may know a part.
  template <typename Work>
  void attempt(Work work) noexcept {
    if (has_failed_.load()) return;
    try {
      work();
    } catch (const std::bad_alloc&) {
      is_out_of_memory_.store(true);
      has_failed_.store(true);
    }
  }
  [[nodiscard]] SessionStats stats_locked() const;
  [[nodiscard]] std::array<Tid, 2> own_threads() const;
  // CPU time of the drain thread, which calls this, and of those that were it before.
  [[nodiscard]] std::int64_t drain_cpu_ns() const { return past_drain_cpu_ns_ + thread_cpu_ns(); }
  // CPU time of the profiler's own threads, asked by any thread. With mutex_.
  std::int64_t read_own_cpu_ns();
  // Between these, what our threads use is in the time of a pause.
  void begin_pause();
  void end_pause();

  const SessionSettings settings_;
  SampleRing ring_;
  CodeRegistry registry_;
  std::unique_ptr<SampleSink> sink_;
  TagRegistry* const tags_;
  const bool tells_tasks_;  // asyncio's, with those who await them
  Resolver resolver_;
  LastStacks last_stacks_;
  LivingStacks living_stacks_;                // of sampled allocations
  std::vector<ThreadSerial> ended_;           // whose records may still be in the ring
  std::unique_ptr<native::Modules> modules_;  // null without native frames
  std::vector<native::NativeFrame> unwound_again_;
  HeldRecords held_;  // until it is known what is loaded
  std::unique_ptr<CpuSampler> sampler_;
  std::unique_ptr<AllocationRecorder> allocations_;
  std::unique_ptr<ExactRecorder> exact_;
  std::unique_ptr<ReaderThread> reader_;  // for Mode::kWall, or if it takes the samples, or sends the ticks
  std::int64_t start_ns_ = 0;
  std::int64_t start_cpu_ns_ = 0, start_child_cpu_ns_ = 0;
  std::int64_t next_poll_ns_ = 0;
  std::int64_t next_thread_look_ns_ = 0;
  std::int64_t next_rss_ns_ = 0;
  std::int64_t next_flush_ns_ = 0;
  std::int64_t next_guard_ns_ = 0;
  // When the cost of recording was looked at last: what it was then, and the program's CPU time.
  std::optional<OverheadBudget> budget_;
  std::int64_t budget_cpu_ns_ = 0;  // when it was last looked at
  std::int64_t past_drain_cpu_ns_ = 0;

  std::atomic<std::uint64_t> samples_{0};
  std::atomic<std::int64_t> sampled_cpu_ns_{0};
  std::atomic<std::int64_t> waited_ns_{0};
  std::atomic<std::int64_t> profiler_cpu_ns_{0};
  static constexpr std::int64_t kNotPaused = -1;
  std::atomic<std::int64_t> pause_began_own_ns_{kNotPaused};  // profiler_cpu_ns_ then
  std::atomic<std::int64_t> own_in_pauses_ns_{0};             // of it, what is of pauses that are over
  std::atomic<bool> is_complete_{false};
  std::atomic<std::int64_t> final_process_cpu_ns_{-1};
  std::atomic<std::int64_t> end_ns_{0};

  DrainGate gate_;
  std::atomic<Tid> holder_{};  // for a fork
  mutable std::mutex mutex_;   // guards the members below
  bool stop_requested_ = false;
  bool rests_ = false;  // there is no drain thread, until wake()
  std::uint64_t flushes_requested_ = 0;
  SampleSink::Ending requested_ending_ = SampleSink::Ending::kOpen;
  std::uint64_t flushes_done_ = 0;
  std::uint64_t loads_ = 0;            // of modules, as of the last request
  std::uint64_t looks_requested_ = 0;  // at modules
  std::uint64_t looks_done_ = 0;
  std::vector<MarkerEvent> markers_;
  std::vector<SourceText> sources_;
  UniqueFd listener_;
  bool (*tell_unheard_)() = nullptr;
  std::string error_;
  std::atomic<bool> has_failed_{false}, is_out_of_memory_{false};
  std::atomic<std::int32_t> drain_tid_{0};
  pthread_t drain_thread_{};
};

}  // namespace plimsoll::capture
