// formats/firefox/threads.cc: the sample table, thread by thread.
#include "formats/firefox/threads.h"

#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>
#include <utility>

#include "formats/firefox/allocations.h"
#include "profile/time_kind.h"

namespace plimsoll::formats::firefox {
namespace {

// Sample times as differences, in whole microseconds: half the size of exact ones. It is the times that are rounded and
// not the differences, so errors do not add up.
class TimeDeltas {
 public:
  // The difference to the time before, in nanoseconds.
  std::int64_t next(std::int64_t time_ns) {
    constexpr std::int64_t kUnit = 1000;
    const std::int64_t rounded = (time_ns + kUnit / 2) / kUnit * kUnit;
    return rounded - std::exchange(before_ns_, rounded);
  }

 private:
  std::int64_t before_ns_ = 0;
};

// When the CPU time of a thread's first sample began to count: when the thread was first seen, or at the latest as long
// before the sample as it was busy.
std::int64_t first_interval_start_ns(const FileLayout& layout, ThreadId thread) {
  const profile::SampleTable& samples = layout.profile.samples;
  const std::uint32_t first = layout.rows[thread.index()].front();
  const std::int64_t seen_ns = layout.profile.threads[thread.index()].start_ns;
  if (seen_ns < samples.time_ns[first]) return seen_ns;
  return std::max<std::int64_t>(samples.time_ns[first] - samples.weight_ns[first], 0);
}

constexpr std::uint32_t kStart = UINT32_MAX;  // stands for the start of a thread's first interval

// The rows of a thread behind kStart; nothing for a thread without rows.
class RowsWithStart {
 public:
  explicit RowsWithStart(const std::vector<std::uint32_t>& rows) : rows_(rows) {}
  // Over the rows, one behind.
  struct Iterator {
    const std::vector<std::uint32_t>* rows;
    std::size_t at;
    std::uint32_t operator*() const { return at == 0 ? kStart : (*rows)[at - 1]; }
    Iterator& operator++() {
      ++at;
      return *this;
    }
    bool operator!=(const Iterator& other) const { return at != other.at; }
  };
  [[nodiscard]] Iterator begin() const { return {&rows_, 0}; }
  [[nodiscard]] Iterator end() const { return {&rows_, rows_.empty() ? 0 : rows_.size() + 1}; }

 private:
  const std::vector<std::uint32_t>& rows_;
};

// The viewer takes a CPU delta for the time since the sample before, and so ignores the first one. A sample without
// stack and weight stands before it, to mark where its interval begins.
void write_samples(JsonWriter& json, const FileLayout& layout, ThreadId thread) {
  const profile::SampleTable& samples = layout.profile.samples;
  const std::vector<std::uint32_t>& rows = layout.rows[thread.index()];
  const auto no_stack = static_cast<std::int64_t>(layout.profile.stacks.size());
  const auto column = [&](std::string_view name, auto write_start, auto write_row) {
    json.key(name);
    json.begin_array();
    if (!rows.empty()) write_start();
    for (const std::uint32_t row : rows) write_row(row);
    json.end_array();
  };
  const auto write_zero = [&] { json.integer(0); };
  TimeDeltas deltas;

  json.key("samples");
  json.begin_object();
  column(
      "stack", [&] { json.null(); },
      [&](std::uint32_t row) { json.integer(samples.stack[row].is_none() ? no_stack : samples.stack[row].index()); });
  Columns(json, layout.slabs).milliseconds("timeDeltas", RowsWithStart(rows), [&](std::uint32_t row) {
    return deltas.next(row == kStart ? first_interval_start_ns(layout, thread) : samples.time_ns[row]);
  });
  column("weight", write_zero, [&](std::uint32_t row) { json.milliseconds(samples.weight_ns[row]); });
  json.member("weightType", "tracing-ms");
  // (What is not known to be CPU time would be shown as a thread that computes all the time.)
  if (profile::is_cpu_time(layout.profile))
    column("threadCPUDelta", write_zero, [&](std::uint32_t row) {
      json.integer(samples.activity[row] == Activity::kRunning ? samples.weight_ns[row] : 0);
    });
  json.member("length", static_cast<std::int64_t>(rows.size() + (rows.empty() ? 0 : 1)));
  json.end_object();
}

// Kernel ids are reused; in the file each thread has one of its own: 1234, then "1234.1", "1234.2", ...
class ThreadIds {
 public:
  void write(JsonWriter& json, std::int64_t os_tid) {
    json.key("tid");
    const std::size_t number = used_[os_tid]++;
    number == 0 ? json.integer(os_tid) : json.text(std::to_string(os_tid) + "." + std::to_string(number));
  }

 private:
  boost::unordered_flat_map<std::int64_t, std::size_t> used_;  // and how often
};

void write_identity(JsonWriter& json, const FileLayout& layout, ThreadId id, std::string_view name) {
  const profile::Thread& thread = layout.profile.threads[id.index()];
  const profile::Process& process = layout.profile.processes[thread.process.index()];
  json.member("name", name);
  json.key("isMainThread");
  json.boolean(thread.is_main);
  json.member("processName", command_title(process.name));
  json.member("processType", "default");
  json.member("pid", std::to_string(process.pid));
  json.key("processStartupTime");
  json.milliseconds(0);
  json.key("processShutdownTime");
  json.null();
  json.key("registerTime");
  json.milliseconds(thread.start_ns);
  json.key("unregisterTime");
  json.milliseconds(thread.end_ns);
  json.key("pausedRanges");
  json.begin_array();
  json.end_array();
  json.key("showMarkersInTimeline");
  json.boolean(true);
}

}  // namespace

void write_threads(JsonWriter& json, const FileLayout& layout, const MarkerTypes& marker_types, Texts& texts) {
  const std::vector<std::vector<const profile::Marker*>> markers = markers_by_thread(layout);
  const std::vector<std::string> titles = thread_titles(layout.profile);
  const std::vector<std::vector<std::uint32_t>> allocations = allocations_by_thread(layout.profile);
  ThreadIds tids;
  json.column("threads", layout.threads, [&](ThreadId id) {
    json.begin_object();
    write_identity(json, layout, id, titles[id.index()]);
    tids.write(json, layout.profile.threads[id.index()].os_tid);
    write_samples(json, layout, id);
    write_allocations(json, layout, allocations[id.index()]);
    write_markers(json, marker_types, markers[layout.index_of_thread[id.index()]], texts);
    json.end_object();
  });
}

}  // namespace plimsoll::formats::firefox
