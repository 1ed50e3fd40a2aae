// capture/sink.h: where a session's results go. capture stands below profile, so it names what it needs.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "capture/raw_allocation.h"
#include "capture/raw_sample.h"
#include "cpython/code_object.h"

namespace plimsoll::capture {

// A thing that happened, on the clock of the samples; see profile::Marker.
struct MarkerEvent {
  std::int64_t time_ns = 0;  // CLOCK_MONOTONIC
  std::int64_t duration_ns = 0;
  ThreadSerial thread;
  std::string name;
  std::vector<std::pair<std::string, std::string>> fields;
};

// What is called `file` in code objects.
struct SourceText {
  std::string file, text;
};

// A look at the lock of the main interpreter.
struct GilLook {
  std::int64_t time_ns = 0;  // CLOCK_MONOTONIC
  bool is_held = false;
  ThreadSerial holder;  // none if nobody holds it, or somebody who is not known yet
};

// Receives everything on the drain thread, one call at a time. A CodeId or ThreadSerial is described before its first
// use in a sample.
class SampleSink {
 public:
  SampleSink() = default;
  SampleSink(const SampleSink&) = delete;
  SampleSink& operator=(const SampleSink&) = delete;
  virtual ~SampleSink() = default;

  // A fact about the session, for example {"engine", "perf task-clock"}; before the first flush. (Those below
  // may come later, and again.)
  virtual void fact(const char* name, const std::string& value) = 0;
  // Of recordings that tell asyncio's tasks apart, by those who await them.
  void task_counts(const TaskCounts& counts) {
    fact("task_stacks", std::to_string(counts.found));
    fact("task_stacks_unreadable", std::to_string(counts.unreadable));
  }
  // CPU time of child processes that have ended during the session; grows.
  void child_cpu_ns(std::int64_t cpu_ns) { fact("child_cpu_ns", std::to_string(cpu_ns)); }
  virtual void code(CodeId id, const cpython::CodeInfo& info) = 0;
  // Likewise of a function of machine code.
  virtual void native_function(CodeId, const NativeFunction&) {}
  // The code object is gone. Its id will not occur again but in a wait that began before, and then it is described
  // anew.
  virtual void forget_code(CodeId id) = 0;
  // A process beside the one that the recording began with; before its first thread.
  virtual void process(const ProcessInfo& info) = 0;
  virtual void thread(const ThreadInfo& info) = 0;
  virtual void sample(const Sample& sample) = 0;
  virtual void allocation(const Allocation& allocation) = 0;
  // Of an allocation that was passed before, or that has been lost.
  virtual void release(std::int64_t time_ns, const RawRelease& release) = 0;
  // Of an exact recording: a stack, before its number is used, and after the one below it; of stacks that are known by
  // their numbers it is not told again.
  [[nodiscard]] virtual bool knows_stack(std::uint32_t number) const = 0;
  virtual void exact_stack(const ExactStack&) {}
  // kFreed, kFreedAtOnce and kType of blocks that kBorn was told of.
  virtual void exact_allocation(const ExactAllocation& allocation) = 0;
  // Of an exact recording that tells each event: sites, numbered from 0 on as they come; events of those that were told
  // (base/allocation_words.h); and at the end, types of living blocks, by their slots.
  virtual void allocation_site(const AllocationSite&) {}
  virtual void allocation_events(std::span<const std::uint32_t> /*words*/) {}
  virtual void allocation_type(std::uint32_t /*slot*/, std::string_view /*type*/) {}
  virtual void counter(const char* name, const char* unit, std::int64_t time_ns, std::int64_t value) = 0;
  virtual void marker(const MarkerEvent& marker) = 0;
  // The text of a file that is not on disk, as Python keeps those of a notebook's cells.
  virtual void source(const SourceText&) {}
  // Of sessions that were asked to look at it.
  virtual void gil(const GilLook&) {}

  // The state of the session so far, before each flush.
  struct Totals {
    std::int64_t time_ns = 0;         // CLOCK_MONOTONIC
    std::int64_t process_cpu_ns = 0;  // of the whole process since the start, without the profiler's own threads
    std::array<DropTotal, kDropReasonCount> drops{};
  };
  // Whether anything will follow. In the order in which one takes the place of another.
  enum class Ending : std::uint8_t {
    kOpen,      // the recording goes on
    kComplete,  // it ends here
    kExec,      // it ends here, or may: an exec is about to replace the program, and may yet fail
  };
  // Whether a flush is due before its time: because of memory, or because the last one has left something.
  [[nodiscard]] virtual bool wants_flush() const = 0;
  // Changes, in a flush, when all code objects must be described again before their next use.
  [[nodiscard]] virtual std::uint32_t code_epoch() const = 0;
  // Makes everything so far readable by others, but, while more will follow, for texts that would take long: these the
  // next flushes write. An error ends the recording, not the program.
  virtual Status flush(const Totals& totals, Ending ending) = 0;
};

}  // namespace plimsoll::capture
