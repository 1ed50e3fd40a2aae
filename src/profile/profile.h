// profile/profile.h: a whole profile in memory. Plain tables; everything else is a pure function of one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/growing_array.h"
#include "profile/allocation_table.h"
#include "profile/frame_table.h"
#include "profile/sample_table.h"
#include "profile/stack_table.h"
#include "profile/string_table.h"
#include "profile/tag_table.h"
#include "profile/thread_table.h"

namespace plimsoll::profile {

// A quantity over time, for example the resident set size ("rss", unit "bytes"). Values are absolute, not deltas.
struct Counter {
  ProcessId process;
  std::string name;
  std::string unit;
  std::vector<std::int64_t> time_ns;  // since the start of the profile
  std::vector<std::int64_t> value;
};

// Something that happened, for a while (duration_ns > 0) or at an instant, for example a garbage collection:
// name "GC", fields {"generation", "2"}, {"collected", "17"}.
struct Marker {
  std::int64_t time_ns = 0;  // since the start of the profile
  std::int64_t duration_ns = 0;
  ThreadId thread;  // none = the whole process
  std::string name;
  std::vector<std::pair<std::string, std::string>> fields;
};

// Samples that were due and are not in the table, and frames that are missing from samples that are: by reason.
struct Drop {
  std::string reason;       // a short phrase, for example "ring full"
  std::uint64_t count = 0;  // samples
  std::int64_t cpu_ns = 0;  // CPU time that they stood for
};

// The text of a profiled source file as it was while it ran.
struct Source {
  std::string file;  // as in Function::file
  std::string text;
};

// A file that native frames are of, as it was: debug information is only that of a file with the same build-id.
struct Module {
  std::string file;      // as in Function::file
  std::string build_id;  // its bytes; empty if it has none
  bool operator==(const Module&) const = default;
};

// A file of another tool about the same session: "jitlog", what PyPy's JIT did.
struct Attachment {
  std::string name;
  std::string bytes;
};

// What a .plim file holds. Movable, not copyable (StringTable).
struct Profile {
  // Facts about the session as name/value texts: "engine", "rate_hz", "python", "argv", "plimsoll", "platform", ...
  // docs/format.md lists the names. In order of first appearance; a name occurs once.
  std::vector<std::pair<std::string, std::string>> meta;
  std::int64_t start_monotonic_ns = 0;  // CLOCK_MONOTONIC at the start; the zero of all times in the tables
  std::int64_t start_realtime_ns = 0;   // time of day at the same instant, since 1970 UTC
  std::int64_t end_ns = 0;              // when recording ended or the file was last written, since the start
  std::int64_t process_cpu_ns = 0;      // CPU time of all profiled threads over the session, by the process clock
  bool complete = false;                // false: the program was killed, or is still running

  StringTable strings;
  FunctionTable functions;
  FrameTable frames;
  StackTable stacks;
  TagSetTable tag_sets;
  std::vector<Process> processes;
  std::vector<Thread> threads;
  SampleTable samples;
  std::uint64_t allocation_distance = 0;  // mean bytes between sample points; 0 = allocations were not sampled
  bool is_exact = false;                  // all allocations were recorded; the distance is 0
  bool has_events = false;                // exact: when each was freed is known, to a sixteenth of the time it lived
  AllocationTable allocations;
  AllocationTable peak_allocations;  // exact: what was alive when most was, by stack
  // When most was alive. None: of samples it is to be found from all of them; of an exact recording it is not known.
  std::optional<std::int64_t> peak_ns;
  std::uint64_t peak_looks = 1;                       // of samples, with peak_ns: Peak::looks (profile/memory.h)
  GrowingArray<AllocationChange> allocation_changes;  // while recording, exact: likewise
  AllocationEvents events;                            // likewise
  std::vector<Release> releases;  // while recording: of rows that are in the file already; else empty
  std::vector<Counter> counters;
  std::vector<Marker> markers;
  std::vector<Drop> drops;
  std::vector<Source> sources;
  std::vector<Attachment> attachments;
  std::vector<Module> modules;

  // Whether allocations were recorded, all or samples of them.
  [[nodiscard]] bool has_allocations() const { return is_exact || allocation_distance != 0; }
  // The value of a meta entry; empty if there is none.
  [[nodiscard]] std::string_view meta_value(std::string_view name) const;
  // The first attachment of that name; null if there is none.
  [[nodiscard]] const Attachment* attachment(std::string_view name) const;
  [[nodiscard]] Attachment* attachment(std::string_view name);
  // Adds or replaces a meta entry.
  void set_meta(std::string_view name, std::string_view value);
  // The sum of all weights, and of those of running threads: the same, but for recordings of wall-clock time.
  [[nodiscard]] std::int64_t sampled_ns() const;
  [[nodiscard]] std::int64_t sampled_cpu_ns() const;
  // The number of samples of running threads.
  [[nodiscard]] std::size_t running_samples() const;
  // Whether any sample is one of a waiting thread.
  [[nodiscard]] bool has_waits() const { return running_samples() != samples.size(); }
  // Puts what a waiting thread did onto its stack, as an innermost frame "[io]" or the like: for formats that know no
  // other way to say it.
  void put_waits_on_stacks();
  // Makes each stretch of a thread's samples with the same tags a marker "Tags" with them as fields: likewise.
  void put_tags_into_markers();
  // The function of the innermost frame; none for the empty stack.
  [[nodiscard]] FunctionId leaf_function(StackId stack) const;
};

}  // namespace plimsoll::profile
