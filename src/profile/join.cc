#include "profile/join.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <tuple>
#include <utility>
#include <vector>

#include "profile/memory.h"

namespace plimsoll::profile {
namespace {

// Makes the instant `start_monotonic_ns` the zero of all times.
void move_start(Profile& profile, std::int64_t start_monotonic_ns) {
  const std::int64_t later_ns = profile.start_monotonic_ns - start_monotonic_ns;
  if (later_ns == 0) return;
  profile.start_monotonic_ns = start_monotonic_ns;
  profile.start_realtime_ns -= later_ns;
  profile.end_ns += later_ns;
  for (Thread& thread : profile.threads) {
    thread.start_ns += later_ns;
    thread.end_ns += later_ns;
  }
  for (std::int64_t& time : profile.samples.time_ns) time += later_ns;
  for (AllocationRow& row : profile.allocations) {
    row.time_ns += later_ns;
    if (row.freed_ns != AllocationRow::kAlive) row.freed_ns += later_ns;
  }
  for (Counter& counter : profile.counters)
    for (std::int64_t& time : counter.time_ns) time += later_ns;
  for (Marker& marker : profile.markers) marker.time_ns += later_ns;
}

// Rows of one profile's tables, as ids in the tables of another.
class Translation {
 public:
  Translation(Profile& all, const Profile& more)
      : all_(all),
        more_(more),
        first_process_(all.processes.size()),
        first_thread_(all.threads.size()),
        strings_(more.strings.size()) {
    functions_.reserve(more.functions.size());
    for (const Function& row : more.functions.rows())
      functions_.push_back(
          all.functions.intern({text(row.name), text(row.file), row.first_line, row.kind, text(row.source)}));
    frames_.reserve(more.frames.size());
    for (Frame row : more.frames.rows()) {
      row.function = functions_[row.function.index()];
      row.trace = text(row.trace);
      frames_.push_back(all.frames.intern(row));
    }
    stacks_.reserve(more.stacks.size());
    for (const StackNode& row : more.stacks.rows())  // parents are first
      stacks_.push_back(all.stacks.intern({stack(row.parent), frames_[row.frame.index()]}));
    tag_sets_.reserve(more.tag_sets.size());
    for (TagSet set : more.tag_sets.rows()) {
      for (Tag& tag : set) tag = {text(tag.name), text(tag.value)};
      tag_sets_.push_back(all.tag_sets.intern(set));
    }
  }

  StringId text(StringId id) {
    if (id.is_none()) return id;
    StringId& known = strings_[id.index()];
    if (known.is_none()) known = all_.strings.intern(more_.strings[id]);
    return known;
  }
  [[nodiscard]] ProcessId process(ProcessId id) const {
    return id.is_none() ? id : ProcessId{first_process_ + id.index()};
  }
  [[nodiscard]] ThreadId thread(ThreadId id) const { return id.is_none() ? id : ThreadId{first_thread_ + id.index()}; }
  [[nodiscard]] StackId stack(StackId id) const { return id.is_none() ? id : stacks_[id.index()]; }
  [[nodiscard]] TagSetId tags(TagSetId id) const { return id.is_none() ? id : tag_sets_[id.index()]; }

 private:
  Profile& all_;
  const Profile& more_;
  const std::size_t first_process_, first_thread_;
  std::vector<StringId> strings_;  // none: not yet asked for
  std::vector<FunctionId> functions_;
  std::vector<FrameId> frames_;
  std::vector<StackId> stacks_;
  std::vector<TagSetId> tag_sets_;
};

// The rows of both, in the order of their times.
void add_samples(SampleTable& samples, const SampleTable& more, const Translation& to) {
  SampleTable both;
  both.reserve(samples.size() + more.size());
  std::size_t row = 0;
  for (std::size_t other = 0; other < more.size(); ++other) {
    for (; row < samples.size() && samples.time_ns[row] <= more.time_ns[other]; ++row) both.push_row(samples, row);
    both.push_back(more.time_ns[other], to.thread(more.thread[other]), to.stack(more.stack[other]),
                   more.weight_ns[other], more.activity[other], to.tags(more.tags[other]));
  }
  for (; row < samples.size(); ++row) both.push_row(samples, row);
  samples = std::move(both);
}

void add_allocations(Profile& all, const Profile& more, Translation& to) {
  std::uint64_t first_number = 0;
  for (const AllocationRow& row : all.allocations) first_number = std::max(first_number, row.number + 1);
  for (AllocationRow row : more.allocations) {
    if (!all.is_exact) row.number += first_number;
    row.thread = to.thread(row.thread);
    row.stack = to.stack(row.stack);
    row.type = to.text(row.type);
    row.tags = to.tags(row.tags);
    all.allocations.push_back(row);
  }
  std::stable_sort(all.allocations.begin(), all.allocations.end(),
                   [](const AllocationRow& a, const AllocationRow& b) { return a.time_ns < b.time_ns; });
  all.peak_allocations.clear();
  if (more.peak_ns && !all.is_exact) set_peak(all, peak_of(more));  // a part of a profile: no other peak is known of it
  if (all.has_allocations()) set_peak(all, std::nullopt);
}

void add_threads(Profile& all, const Profile& more, const Translation& to) {
  all.processes.insert(all.processes.end(), more.processes.begin(), more.processes.end());
  for (const Thread& thread : more.threads) {
    all.threads.push_back(thread);
    all.threads.back().process = to.process(thread.process);
  }
  for (const Counter& counter : more.counters) {
    all.counters.push_back(counter);
    all.counters.back().process = to.process(counter.process);
  }
  for (const Marker& marker : more.markers) {
    all.markers.push_back(marker);
    all.markers.back().thread = to.thread(marker.thread);
  }
}

void add_drops(Profile& all, const Profile& more) {
  for (const Drop& drop : more.drops) {
    const auto same = std::find_if(all.drops.begin(), all.drops.end(),
                                   [&](const Drop& known) { return known.reason == drop.reason; });
    if (same == all.drops.end()) {
      all.drops.push_back(drop);
    } else {
      same->count += drop.count;
      same->cpu_ns += drop.cpu_ns;
    }
  }
}

void add_files(Profile& all, const Profile& more) {
  for (const Source& source : more.sources)
    if (std::none_of(all.sources.begin(), all.sources.end(),
                     [&](const Source& known) { return known.file == source.file; }))
      all.sources.push_back(source);
  for (const Module& module : more.modules)
    if (std::find(all.modules.begin(), all.modules.end(), module) == all.modules.end()) all.modules.push_back(module);
}

// A thread among all that ever were on the machine since it was started.
using Identity = std::tuple<std::int64_t, std::int64_t, std::int64_t>;  // its process, itself, when it was first seen

std::vector<Identity> identities(const Profile& profile) {
  std::vector<Identity> found;
  if (profile.start_monotonic_ns == 0) return found;  // another tool's, which does not tell
  for (const Thread& thread : profile.threads)
    if (!thread.process.is_none())
      found.emplace_back(profile.processes[thread.process.index()].pid, thread.os_tid,
                         profile.start_monotonic_ns + thread.start_ns);
  std::sort(found.begin(), found.end());
  return found;
}

// Whether a thread of one recording is in both.
bool overlap(const Profile& all, const Profile& more) {
  std::vector<Identity> both;
  const std::vector<Identity> a = identities(all), b = identities(more);
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return !both.empty();
}

}  // namespace

Status join(Profile& all, Profile more) {
  const bool has_both = all.has_allocations() && more.has_allocations();
  if (has_both && (all.allocation_distance != more.allocation_distance || all.is_exact != more.is_exact))
    return Error{ErrorKind::kBadInput, "its allocations were recorded in another way"};
  if (overlap(all, more))
    return Error{ErrorKind::kBadInput, "it is of a recording that is in there already: its time would count twice"};
  const std::int64_t start_ns = std::min(all.start_monotonic_ns, more.start_monotonic_ns);
  move_start(all, start_ns);
  move_start(more, start_ns);
  Translation to(all, more);
  add_threads(all, more, to);
  all.samples.order_by_time();
  more.samples.order_by_time();
  add_samples(all.samples, more.samples, to);
  if (!all.has_allocations()) {
    all.allocation_distance = more.allocation_distance;
    all.is_exact = more.is_exact;
  }
  all.has_events = all.has_events || more.has_events;
  add_allocations(all, more, to);
  add_drops(all, more);
  add_files(all, more);
  all.end_ns = std::max(all.end_ns, more.end_ns);
  all.process_cpu_ns += more.process_cpu_ns;
  all.complete = all.complete && more.complete;
  return Ok{};
}

}  // namespace plimsoll::profile
