#include "profile/plim_reader.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include "base/chunk.h"
#include "base/mapped_file.h"
#include "base/varint.h"
#include "capture/raw_allocation.h"
#include "profile/plim_events.h"
#include "profile/plim_exact.h"
#include "profile/plim_format.h"

namespace plimsoll::profile {
namespace {

using plim::Section;

// Reads sections into a Profile. Every index is checked against the table it points into.
class Decoder {
 public:
  explicit Decoder(Profile& profile) : profile_(profile) {}

  // After the last chunk. A wait is written when it is over, and may so come after what followed it: rows are put into
  // the order that SampleTable promises.
  void finish() {
    events_.finish(profile_);
    ExactDecoder::finish(profile_);
    if (!is_disordered_) return;
    const SampleTable& all = profile_.samples;
    std::vector<std::uint32_t> order(all.size());
    std::iota(order.begin(), order.end(), 0U);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return all.time_ns[a] < all.time_ns[b]; });
    SampleTable sorted;
    for (const std::uint32_t row : order) sorted.push_row(all, row);
    profile_.samples = std::move(sorted);
  }

  // False if a section makes no sense; the profile then holds what came before it. `begin`, `end`: of this chunk, as
  // parts of the file.
  bool chunk(std::string_view raw, double begin, double end) {
    profile_.complete = false;  // unless this chunk ends the recording, too: an exec that failed is followed by more
    VarintCursor cursor(raw);
    while (!cursor.at_end()) {
      const std::uint64_t kind = cursor.varint();
      const std::string_view payload = cursor.bytes();
      part_ = end - (end - begin) * static_cast<double>(cursor.remaining()) / static_cast<double>(raw.size());
      if (cursor.failed() || !section(kind, payload)) return false;
    }
    return true;
  }

 private:
  bool section(std::uint64_t kind, std::string_view payload) {
    VarintCursor cursor(payload);
    switch (static_cast<Section>(kind)) {
      case Section::kSession: return session(cursor);
      case Section::kMeta: return meta(cursor);
      case Section::kStrings: return strings(cursor);
      case Section::kFunctions: return functions(cursor);
      case Section::kFrames: return frames(cursor);
      case Section::kStacks: return stacks(cursor);
      case Section::kProcesses: return processes(cursor);
      case Section::kThreads: return threads(cursor);
      case Section::kSamples: return samples(cursor);
      case Section::kAllocations: return allocations(cursor);
      case Section::kReleases: return releases(cursor);
      case Section::kExactAllocations: return exact_allocations(cursor);
      case Section::kAllocationSites: return allocation_sites(cursor);
      case Section::kAllocationEvents: profile_.has_events = true; return events_.replay(cursor);
      case Section::kAllocationTypes: return allocation_types(cursor);
      case Section::kCounter: return counter(cursor);
      case Section::kMarkers: return markers(cursor);
      case Section::kDrops: return drops(cursor);
      case Section::kSource: return source(cursor);
      case Section::kAttachment: return attachment(cursor);
      case Section::kProgress: return progress(cursor);
      case Section::kTraces: return traces(cursor);
      case Section::kAddresses: return addresses(cursor);
      case Section::kModules: return modules(cursor);
      case Section::kTagSets: return tag_sets(cursor);
      case Section::kEnd: profile_.complete = true; return true;
    }
    return true;  // a section of a newer minor version
  }

  bool session(VarintCursor& cursor) {
    constexpr std::int64_t kLargestUnit = 1'000'000'000;
    profile_.start_monotonic_ns = cursor.signed_varint();
    profile_.start_realtime_ns = cursor.signed_varint();
    unit_ns_ = cursor.signed_varint();
    return !cursor.failed() && unit_ns_ > 0 && unit_ns_ <= kLargestUnit;
  }

  bool meta(VarintCursor& cursor) {
    while (!cursor.at_end()) {
      const std::string_view name = cursor.bytes();
      const std::string_view value = cursor.bytes();
      if (cursor.failed()) return false;
      profile_.set_meta(name, value);
    }
    return true;
  }

  bool strings(VarintCursor& cursor) {
    while (!cursor.at_end()) {
      const std::string_view text = cursor.bytes();
      if (cursor.failed()) return false;
      string_ids_.push_back(profile_.strings.intern(text));
    }
    return true;
  }

  // An optional reference: 0 = none, else index + 1 into a table of `size` rows.
  template <typename IdType>
  bool reference(VarintCursor& cursor, std::size_t size, IdType& id) {
    const std::uint64_t value = cursor.bounded(size);
    id = value == 0 ? IdType{} : IdType{static_cast<std::size_t>(value - 1)};
    return !cursor.failed();
  }
  bool string_reference(VarintCursor& cursor, StringId& id) {
    StringId written;
    if (!reference(cursor, string_ids_.size(), written)) return false;
    id = written.is_none() ? StringId{} : string_ids_[written.index()];
    return true;
  }

  bool functions(VarintCursor& cursor) {
    while (!cursor.at_end()) {
      Function function;
      if (!string_reference(cursor, function.name) || !string_reference(cursor, function.file)) return false;
      function.first_line = static_cast<std::uint32_t>(cursor.bounded(INT32_MAX));
      function.kind = static_cast<FunctionKind>(cursor.bounded(static_cast<std::uint64_t>(FunctionKind::kSynthetic)));
      if (cursor.failed()) return false;
      function_ids_.push_back(profile_.functions.intern(function));
    }
    return true;
  }

  bool frames(VarintCursor& cursor) {
    while (!cursor.at_end()) {
      const std::uint64_t function = cursor.varint();
      const std::int64_t below_first = cursor.signed_varint();
      const std::uint64_t column = cursor.bounded(INT32_MAX);
      if (cursor.failed() || function >= function_ids_.size()) return false;
      const FunctionId id = function_ids_[function];
      if (below_first < INT32_MIN || below_first > INT32_MAX) return false;
      const std::int64_t line = profile_.functions[id].first_line + below_first;
      if (line < 0 || line > INT32_MAX) return false;
      frame_ids_.push_back(
          profile_.frames.intern(Frame{id, static_cast<std::uint32_t>(line), static_cast<std::uint32_t>(column)}));
    }
    return true;
  }

  // A frame was defined without its trace, which older readers do not know.
  bool traces(VarintCursor& cursor) {
    while (!cursor.at_end()) {
      const std::uint64_t number = cursor.varint();
      StringId trace;
      if (!string_reference(cursor, trace) || number >= frame_ids_.size()) return false;
      Frame frame = profile_.frames[frame_ids_[number]];
      frame.trace = trace;
      frame_ids_[number] = profile_.frames.intern(frame);
    }
    return true;
  }

  bool addresses(VarintCursor& cursor) {
    std::uint64_t number = 0;
    std::uint64_t address = 0;
    while (!cursor.at_end()) {
      number += cursor.varint();
      address += static_cast<std::uint64_t>(cursor.signed_varint());
      if (cursor.failed() || number >= frame_ids_.size()) return false;
      Frame frame = profile_.frames[frame_ids_[number]];
      frame.address = address;
      frame_ids_[number] = profile_.frames.intern(frame);
    }
    return true;
  }

  bool modules(VarintCursor& cursor) {
    while (!cursor.at_end()) {
      Module module;
      module.file = cursor.bytes();
      module.build_id = cursor.bytes();
      if (cursor.failed()) return false;
      profile_.modules.push_back(std::move(module));
    }
    return true;
  }

  bool stacks(VarintCursor& cursor) {
    while (!cursor.at_end()) {
      const std::uint64_t up = cursor.bounded(stack_ids_.size());
      const std::uint64_t frame = cursor.varint();
      if (cursor.failed() || frame >= frame_ids_.size()) return false;
      const StackId parent = up == 0 ? StackId{} : stack_ids_[stack_ids_.size() - up];
      stack_ids_.push_back(profile_.stacks.intern(StackNode{parent, frame_ids_[frame]}));
    }
    return true;
  }

  bool tag_sets(VarintCursor& cursor) {
    while (!cursor.at_end()) {
      TagSet set(cursor.bounded(plim::kMostTags));
      for (Tag& tag : set)
        if (!string_reference(cursor, tag.name) || !string_reference(cursor, tag.value)) return false;
      if (cursor.failed()) return false;
      tag_set_ids_.push_back(profile_.tag_sets.intern(set));
    }
    return true;
  }

  bool processes(VarintCursor& cursor) {
    while (!cursor.at_end()) {
      Process process;
      process.pid = cursor.signed_varint();
      process.parent_pid = cursor.signed_varint();
      process.name = cursor.bytes();
      if (cursor.failed()) return false;
      profile_.processes.push_back(std::move(process));
    }
    return true;
  }

  bool threads(VarintCursor& cursor) {
    while (!cursor.at_end()) {
      const std::uint64_t index = cursor.varint();
      Thread thread;
      if (!reference(cursor, profile_.processes.size(), thread.process)) return false;
      thread.os_tid = cursor.signed_varint();
      thread.name = cursor.bytes();
      thread.is_main = cursor.bounded(1) == 1;
      thread.start_ns = cursor.signed_varint();
      thread.end_ns = cursor.signed_varint();
      thread.cpu_ns = cursor.signed_varint();
      if (cursor.failed() || index > profile_.threads.size()) return false;
      if (index == profile_.threads.size()) profile_.threads.emplace_back();
      profile_.threads[index] = std::move(thread);
    }
    thread_states_.resize(profile_.threads.size());
    return true;
  }

  // Nanoseconds of a number of units; false if it does not fit.
  bool to_ns(std::int64_t count, std::int64_t& ns) const { return !__builtin_mul_overflow(count, unit_ns_, &ns); }
  bool allocation_time(std::int64_t count, std::int64_t& ns) const {
    return !__builtin_mul_overflow(count, std::min(unit_ns_, plim::kAllocationUnit), &ns);
  }

  bool samples(VarintCursor& cursor) {
    const std::size_t count = cursor.count();
    VarintCursor threads(cursor.bytes());
    VarintCursor stacks(cursor.bytes());
    VarintCursor weights(cursor.bytes());
    VarintCursor times(cursor.bytes());
    if (cursor.failed()) return false;
    // Without this column, all threads were running.
    const bool has_activities = !cursor.at_end();
    VarintCursor activities(has_activities ? cursor.bytes() : std::string_view{});
    if (cursor.failed()) return false;
    // Without this one, no sample has tags.
    const bool has_tags = !cursor.at_end();
    VarintCursor tag_runs(has_tags ? cursor.bytes() : std::string_view{});
    if (cursor.failed()) return false;
    // A row takes a byte of each of these at least.
    if (count > std::min({stacks.remaining(), weights.remaining(), times.remaining()})) return false;
    Run run;
    Run same_activity{.left = has_activities ? 0 : count};
    Run same_tags{.left = has_tags ? 0 : count};
    std::size_t row = profile_.samples.size();
    const std::size_t end = row + count;
    make_room(end);
    profile_.samples.resize(end);
    for (; row < end; ++row) {
      if (!same_activity.next(activities, kActivityCount - 1) || !run.next(threads, UINT32_MAX) ||
          !same_tags.next(tag_runs, tag_set_ids_.size()) || run.value >= thread_states_.size())
        break;
      const Steps steps{stacks.signed_varint(), weights.signed_varint(), times.signed_varint()};
      const TagSetId tags = same_tags.value == 0 ? TagSetId{} : tag_set_ids_[same_tags.value - 1];
      if (!sample(row, ThreadId{run.value}, steps, static_cast<Activity>(same_activity.value), tags)) break;
      if (stacks.failed() || times.failed() || weights.failed()) break;
    }
    profile_.samples.resize(row);
    return row == end;
  }

  // If the file goes on as it began, its columns need not grow again, which would copy them.
  void make_room(std::size_t rows) {
    constexpr double kSpare = 1.05;
    constexpr std::size_t kMostAhead = std::size_t{1} << 26U;
    if (rows <= profile_.samples.time_ns.capacity() || profile_.samples.size() == 0) return;
    const double expected = kSpare * static_cast<double>(rows) / std::max(part_, 1e-9);
    const auto most = static_cast<double>(rows + kMostAhead);
    profile_.samples.reserve(std::max(2 * rows, static_cast<std::size_t>(std::min(expected, most))));
  }

  // A column of pairs of a value and the number of rows that have it.
  struct Run {
    std::uint64_t value = 0;
    std::uint64_t left = 0;

    // On to the next row; false if there is none, or its value is more than `most`.
    bool next(VarintCursor& column, std::uint64_t most) {
      if (left == 0) {
        value = column.bounded(most);
        left = column.varint();
        if (column.failed() || left == 0) return false;
      }
      --left;
      return true;
    }
  };

  // What a row of the samples' columns says.
  struct Steps {
    std::int64_t stack, weight, time;
  };
  bool sample(std::size_t row, ThreadId thread, const Steps& step, Activity activity, TagSetId tags) {
    ThreadState& state = thread_states_[thread.index()];
    std::int64_t delta = 0;
    if (__builtin_add_overflow(state.stack, step.stack, &state.stack) ||
        __builtin_add_overflow(state.weight, step.weight, &state.weight) ||
        __builtin_add_overflow(state.weight, step.time, &delta) ||
        __builtin_add_overflow(state.time, delta, &state.time))
      return false;
    std::int64_t time_ns = 0;
    std::int64_t weight_ns = 0;
    if (state.stack < 0 || static_cast<std::uint64_t>(state.stack) > stack_ids_.size() || !to_ns(state.time, time_ns) ||
        !to_ns(state.weight, weight_ns))
      return false;
    const StackId stack = state.stack == 0 ? StackId{} : stack_ids_[static_cast<std::size_t>(state.stack - 1)];
    if (delta < 0) is_disordered_ = true;
    profile_.samples.set(row, time_ns, thread, stack, weight_ns, activity, tags);
    return true;
  }

  bool allocations(VarintCursor& cursor) {
    profile_.allocation_distance = cursor.bounded(plim::kLargestDistance);
    const std::size_t count = cursor.count();
    std::array<VarintCursor, 6> columns{VarintCursor({}), VarintCursor({}), VarintCursor({}),
                                        VarintCursor({}), VarintCursor({}), VarintCursor({})};
    for (VarintCursor& column : columns) column = VarintCursor(cursor.bytes());
    const std::string_view domains = cursor.bytes();
    // Without this column, no allocation has tags.
    const bool has_tags = !cursor.failed() && !cursor.at_end();
    VarintCursor tag_runs(has_tags ? cursor.bytes() : std::string_view{});
    Run same_tags{.left = has_tags ? 0 : count};
    if (cursor.failed() || domains.size() != count || profile_.allocation_distance == 0) return false;
    for (std::size_t i = 0; i < count; ++i) {
      if (!same_tags.next(tag_runs, tag_set_ids_.size()) || !allocation(columns, static_cast<std::uint8_t>(domains[i])))
        return false;
      if (same_tags.value != 0) profile_.allocations.back().tags = tag_set_ids_[same_tags.value - 1];
      for (const VarintCursor& column : columns)
        if (column.failed()) return false;
    }
    return true;
  }

  bool allocation(std::array<VarintCursor, 6>& columns, std::uint8_t domain) {
    auto& [numbers, threads, stacks, times, sizes, chances] = columns;
    AllocationState& last = last_allocation_;
    AllocationRow row;
    if (__builtin_add_overflow(last.number, numbers.signed_varint(), &last.number) ||
        __builtin_add_overflow(last.number, 1, &last.number) || last.number < 0 ||
        __builtin_add_overflow(last.stack, stacks.signed_varint(), &last.stack) || last.stack < 0 ||
        static_cast<std::uint64_t>(last.stack) > stack_ids_.size() ||
        __builtin_add_overflow(last.time, times.signed_varint(), &last.time) ||
        !allocation_time(last.time, row.time_ns))
      return false;
    row.number = static_cast<std::uint64_t>(last.number);
    row.thread = ThreadId{static_cast<std::size_t>(threads.varint())};
    row.stack = last.stack == 0 ? StackId{} : stack_ids_[static_cast<std::size_t>(last.stack - 1)];
    row.size = sizes.bounded(plim::kLargestBlock);
    const std::int64_t above_size = chances.signed_varint();
    if (row.thread.index() >= thread_states_.size() || above_size < 0 || above_size > plim::kLargestBlock) return false;
    row.chance_bytes = row.size + static_cast<std::uint64_t>(above_size);
    if (row.chance_bytes == 0) return false;
    row.domain = domain;
    row_of_number_[row.number] = profile_.allocations.size();
    profile_.allocations.push_back(row);
    return true;
  }

  bool releases(VarintCursor& cursor) {
    AllocationState& last = last_release_;
    while (!cursor.at_end()) {
      Release release;
      if (__builtin_add_overflow(last.number, cursor.signed_varint(), &last.number) ||
          !string_reference(cursor, release.type))
        return false;
      const bool is_freed = cursor.bounded(1) == 1;
      if (is_freed && (__builtin_add_overflow(last.time, cursor.signed_varint(), &last.time) ||
                       !allocation_time(last.time, release.freed_ns) || release.freed_ns < 0))
        return false;
      if (cursor.failed()) return false;
      // Its allocation may have been lost on the way.
      const auto found = row_of_number_.find(static_cast<std::uint64_t>(last.number));
      if (found == row_of_number_.end()) continue;
      AllocationRow& row = profile_.allocations[found->second];
      if (is_freed) row.freed_ns = release.freed_ns;
      if (!release.type.is_none()) row.type = release.type;
    }
    return true;
  }

  bool exact_allocations(VarintCursor& cursor) {
    profile_.is_exact = true;
    const std::size_t count = cursor.count();
    ExactDecoder::Numbers row;
    for (std::size_t i = 0; i < count; ++i) {
      row = ExactDecoder::next(cursor, row);
      AllocationChange change;
      std::int64_t at = 0;
      if (cursor.failed() || row.thread >= thread_states_.size() || row.type > string_ids_.size() || row.stack < 0 ||
          static_cast<std::uint64_t>(row.stack) > stack_ids_.size() ||
          __builtin_add_overflow(row.born, row.lived, &at) || !allocation_time(row.born, change.born_ns) ||
          !allocation_time(at, change.at_ns) || change.at_ns < 0)
        return false;
      change.change = static_cast<std::uint8_t>(row.change);
      change.domain = static_cast<std::uint8_t>(row.domain);
      change.thread = ThreadId{static_cast<std::size_t>(row.thread)};
      if (row.stack != 0) change.stack = stack_ids_[static_cast<std::size_t>(row.stack - 1)];
      if (row.type != 0) change.type = string_ids_[row.type - 1];
      change.blocks = row.blocks;
      change.bytes = row.bytes;
      if (!exact_.add(profile_, change)) return false;
    }
    return true;
  }

  bool allocation_sites(VarintCursor& cursor) {
    while (!cursor.at_end()) {
      const std::uint64_t thread = cursor.varint();
      const std::uint64_t stack = cursor.bounded(stack_ids_.size());
      AllocationEvents::Site site;
      site.domain =
          static_cast<std::uint8_t>(cursor.bounded(static_cast<std::uint64_t>(capture::AllocationDomain::kMmap)));
      site.size = static_cast<std::uint32_t>(cursor.bounded(UINT32_MAX));
      if (cursor.failed() || thread >= thread_states_.size()) return false;
      site.thread = ThreadId{static_cast<std::size_t>(thread)};
      if (stack != 0) site.stack = stack_ids_[stack - 1];
      if (!events_.add_site(site)) return false;
    }
    return true;
  }

  bool allocation_types(VarintCursor& cursor) {
    std::int64_t slot = 0;
    while (!cursor.at_end()) {
      StringId type;
      if (__builtin_add_overflow(slot, cursor.signed_varint(), &slot) || !string_reference(cursor, type)) return false;
      if (slot >= 0 && !type.is_none()) events_.set_type(static_cast<std::uint64_t>(slot), type);
    }
    return true;
  }

  bool counter(VarintCursor& cursor) {
    ProcessId process;
    if (!reference(cursor, profile_.processes.size(), process)) return false;
    const std::string_view name = cursor.bytes();
    const std::string_view unit = cursor.bytes();
    const std::size_t count = cursor.count();
    if (cursor.failed()) return false;
    auto found = std::find_if(profile_.counters.begin(), profile_.counters.end(),
                              [&](const Counter& known) { return known.process == process && known.name == name; });
    if (found == profile_.counters.end())
      found = profile_.counters.insert(found, Counter{process, std::string(name), std::string(unit), {}, {}});
    std::int64_t time = 0;
    std::int64_t value = 0;
    for (std::size_t i = 0; i < count; ++i) {
      std::int64_t time_ns = 0;
      if (__builtin_add_overflow(time, cursor.signed_varint(), &time) ||
          __builtin_add_overflow(value, cursor.signed_varint(), &value) || !to_ns(time, time_ns) || cursor.failed())
        return false;
      found->time_ns.push_back(time_ns);
      found->value.push_back(value);
    }
    return true;
  }

  bool markers(VarintCursor& cursor) {
    while (!cursor.at_end()) {
      Marker marker;
      marker.time_ns = cursor.signed_varint();
      marker.duration_ns = cursor.signed_varint();
      if (!reference(cursor, profile_.threads.size(), marker.thread)) return false;
      marker.name = cursor.bytes();
      const std::size_t fields = cursor.count();
      for (std::size_t i = 0; i < fields && !cursor.failed(); ++i) {
        const std::string_view name = cursor.bytes();
        const std::string_view value = cursor.bytes();
        marker.fields.emplace_back(name, value);
      }
      if (cursor.failed()) return false;
      profile_.markers.push_back(std::move(marker));
    }
    return true;
  }

  bool drops(VarintCursor& cursor) {
    std::vector<Drop> drops;
    while (!cursor.at_end()) {
      Drop drop;
      drop.reason = cursor.bytes();
      drop.count = cursor.varint();
      drop.cpu_ns = cursor.signed_varint();
      if (cursor.failed()) return false;
      drops.push_back(std::move(drop));
    }
    profile_.drops = std::move(drops);
    return true;
  }

  bool source(VarintCursor& cursor) {
    Source source;
    source.file = cursor.bytes();
    source.text = cursor.bytes();
    if (cursor.failed()) return false;
    profile_.sources.push_back(std::move(source));
    return true;
  }

  bool attachment(VarintCursor& cursor) {
    const std::string_view name = cursor.bytes();
    const std::string_view part = cursor.bytes();
    if (cursor.failed()) return false;
    auto& all = profile_.attachments;
    const auto known = std::find_if(all.begin(), all.end(), [&](const Attachment& one) { return one.name == name; });
    if (known != all.end())
      known->bytes += part;
    else
      all.push_back({std::string(name), std::string(part)});
    return true;
  }

  bool progress(VarintCursor& cursor) {
    profile_.end_ns = cursor.signed_varint();
    profile_.process_cpu_ns = cursor.signed_varint();
    return !cursor.failed();
  }

  struct ThreadState {
    std::int64_t time = 0, weight = 0, stack = 0;
  };
  struct AllocationState {
    std::int64_t number = 0, time = 0, stack = 0;
  };
  AllocationState last_allocation_, last_release_;
  ExactDecoder exact_;
  EventReplay events_;
  boost::unordered_flat_map<std::uint64_t, std::size_t> row_of_number_;
  Profile& profile_;
  bool is_disordered_ = false;
  double part_ = 1;  // of the file that has been read
  std::int64_t unit_ns_ = 1;
  // A hostile file may repeat a row, which the tables store once: ids as written -> ids in the tables.
  std::vector<StringId> string_ids_;
  std::vector<FunctionId> function_ids_;
  std::vector<FrameId> frame_ids_;
  std::vector<StackId> stack_ids_;
  std::vector<TagSetId> tag_set_ids_;
  std::vector<ThreadState> thread_states_;
};

}  // namespace

Result<Profile> read_plim(std::string_view bytes) {
  if (bytes.size() < plim::kFileHeaderSize || bytes.substr(0, plim::kMagic.size()) != plim::kMagic)
    return Error{ErrorKind::kBadInput, "not a .plim profile"};
  const std::uint32_t version = u32_at(bytes, plim::kMagic.size());
  if ((version & 0xffffU) != plim::kMajorVersion)
    return Error{ErrorKind::kBadInput, "a .plim profile of version " + std::to_string(version & 0xffffU) +
                                           ": this Plimsoll reads version " + std::to_string(plim::kMajorVersion)};
  bytes.remove_prefix(plim::kFileHeaderSize);
  Profile profile;
  Decoder decoder(profile);
  std::string raw;
  std::uint64_t total = 0;
  const auto all = static_cast<double>(bytes.size());
  double begin = 0;
  while (next_chunk(bytes, plim::kLargestChunk, raw)) {
    total += raw.size();
    if (total > plim::kLargestProfile) return Error{ErrorKind::kBadInput, "the profile unpacks to more than 8 GiB"};
    const double end = 1 - static_cast<double>(bytes.size()) / all;
    if (!decoder.chunk(raw, std::exchange(begin, end), end)) break;
  }
  decoder.finish();
  if (!bytes.empty()) profile.complete = false;
  return profile;
}

Result<Profile> read_plim_file(const std::string& path) {
  const Result<MappedFile> file = MappedFile::open(path);
  if (!file.ok()) return file.error();
  Result<Profile> profile = read_plim(file.value().view());
  if (!profile.ok()) return Error{profile.error().kind, path + ": " + profile.error().message};
  return profile;
}

}  // namespace plimsoll::profile
