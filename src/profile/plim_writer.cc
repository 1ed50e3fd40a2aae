#include "profile/plim_writer.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/chunk.h"
#include "base/varint.h"
#include "profile/plim_exact.h"
#include "profile/plim_format.h"

namespace plimsoll::profile {
namespace {

using plim::Section;

// An optional id: 0 = none.
template <typename Tag>
std::int64_t plus_one(Id<Tag> id) {
  return id.is_none() ? 0 : std::int64_t{id.index()} + 1;
}

// A payload that is longer than this ends, and another section follows.
constexpr std::size_t kFullSection = std::size_t{4} << 20U;
constexpr std::size_t kFullChunk = std::size_t{16} << 20U;
constexpr std::size_t kSamplesInSection = std::size_t{1} << 18U;
static_assert(kFullChunk + 2 * kFullSection + kSamplesInSection * 40 < plim::kLargestChunk);

// Collects sections into chunks.
class ChunkWriter {
 public:
  void add(Section kind, const std::string& payload) {
    put_varint(raw_, static_cast<std::uint64_t>(kind));
    put_bytes(raw_, payload);
    if (raw_.size() >= kFullChunk) close_chunk();
  }
  // Sections of one kind, as long as `next` has payload for them.
  template <typename Next>
  void add_all(Section kind, Next next) {
    for (std::string payload = next(); !payload.empty(); payload = next()) add(kind, payload);
  }
  std::string take() {
    if (!raw_.empty()) close_chunk();
    return std::move(chunks_);
  }

 private:
  void close_chunk() {
    chunks_ += make_chunk(raw_, plim::kCompressionLevel);
    raw_.clear();
  }
  std::string raw_;
  std::string chunks_;
};

}  // namespace

std::int64_t time_unit_for(double rate_hz) {
  constexpr double kUnitsPerPeriod = 50;
  std::int64_t best = 1'000;
  for (std::int64_t decade = best; decade <= 10'000'000; decade *= 10)
    for (const std::int64_t unit : {decade, 2 * decade, 5 * decade})
      if (static_cast<double>(unit) * kUnitsPerPeriod <= 1e9 / rate_hz) best = unit;
  return best;
}

std::string PlimEncoder::file_header() {
  std::string header(plim::kMagic);
  put_u32(header, plim::kMajorVersion | (std::uint32_t{plim::kMinorVersion} << 16U));
  return header;
}

std::int64_t PlimEncoder::allocation_units(std::int64_t ns) const {
  return ns / std::min(unit_ns_, plim::kAllocationUnit);
}

std::int64_t PlimEncoder::units(std::int64_t ns) const {
  return ns >= 0 ? (ns + unit_ns_ / 2) / unit_ns_ : -((-ns + unit_ns_ / 2) / unit_ns_);
}

std::string PlimEncoder::encode(const Profile& profile) {
  ThreadRows rows;
  for (std::size_t i = 0; i < profile.threads.size(); ++i)
    rows.emplace_hint(rows.end(), static_cast<std::uint32_t>(i), profile.threads[i]);
  return encode(profile, rows);
}

std::string PlimEncoder::encode(const Profile& profile, const ThreadRows& rows) {
  ChunkWriter out;
  out.add_all(Section::kSession, [&] { return session(profile); });
  out.add_all(Section::kMeta, [&] { return meta(profile); });
  out.add_all(Section::kStrings, [&] { return strings(profile); });
  out.add_all(Section::kFunctions, [&] { return functions(profile); });
  out.add_all(Section::kFrames, [&] { return frames(profile); });
  out.add_all(Section::kTraces, [&] { return traces(profile); });
  out.add_all(Section::kAddresses, [&] { return addresses(profile); });
  out.add_all(Section::kModules, [&] { return modules(profile); });
  out.add_all(Section::kStacks, [&] { return stacks(profile); });
  out.add_all(Section::kTagSets, [&] { return tag_sets(profile); });
  out.add_all(Section::kProcesses, [&] { return processes(profile); });
  out.add_all(Section::kThreads, [&, next = rows.begin()]() mutable { return threads(rows, next); });
  out.add_all(Section::kSamples, [&, next = std::size_t{0}]() mutable { return samples(profile, next); });
  if (profile.allocation_distance != 0) {
    out.add_all(Section::kAllocations, [&, next = std::size_t{0}]() mutable { return allocations(profile, next); });
    out.add_all(Section::kReleases, [&, next = std::size_t{0}]() mutable { return releases(profile, next); });
  }
  if (profile.is_exact) {
    const std::vector<AllocationChange> changes = changes_of(profile);
    out.add_all(Section::kExactAllocations,
                [&, next = std::size_t{0}]() mutable { return exact_allocations(changes, next); });
  }
  if (profile.has_events) {
    const AllocationEvents& log = profile.events;
    out.add_all(Section::kAllocationSites,
                [&, next = std::size_t{0}]() mutable { return allocation_sites(log, next); });
    out.add_all(Section::kAllocationEvents,
                [&, next = std::size_t{0}]() mutable { return allocation_events(profile, next); });
    out.add_all(Section::kAllocationTypes,
                [&, next = std::size_t{0}]() mutable { return allocation_types(log, next); });
  }
  for (const Counter& one : profile.counters)
    if (!one.value.empty()) out.add(Section::kCounter, counter(one));
  out.add_all(Section::kMarkers, [&, next = std::size_t{0}]() mutable { return markers(profile, next); });
  std::string drops;
  for (const Drop& drop : profile.drops) {
    put_bytes(drops, drop.reason);
    put_varint(drops, drop.count);
    put_signed(drops, drop.cpu_ns);
  }
  if (!drops.empty()) out.add(Section::kDrops, drops);
  for (const Source& source : profile.sources) {
    std::string payload;
    put_bytes(payload, source.file);
    put_bytes(payload, source.text);
    out.add(Section::kSource, payload);
  }
  for (const Attachment& attachment : profile.attachments) {
    for (std::size_t at = 0; at < attachment.bytes.size(); at += kFullSection) {
      std::string payload;
      put_bytes(payload, attachment.name);
      put_bytes(payload, std::string_view(attachment.bytes).substr(at, kFullSection));
      out.add(Section::kAttachment, payload);
    }
  }
  std::string progress;
  put_signed(progress, profile.end_ns);
  put_signed(progress, profile.process_cpu_ns);
  out.add(Section::kProgress, progress);
  if (profile.complete) out.add(Section::kEnd, {});
  return out.take();
}

void PlimEncoder::forget_tables() {
  for (Written* table : {&strings_, &functions_, &frames_, &traces_, &addresses_, &stacks_, &tag_sets_})
    table->forget();
}

std::string PlimEncoder::session(const Profile& profile) {
  if (!std::exchange(is_first_, false)) return {};
  std::string out;
  put_signed(out, profile.start_monotonic_ns);
  put_signed(out, profile.start_realtime_ns);
  put_signed(out, unit_ns_);
  return out;
}

std::string PlimEncoder::meta(const Profile& profile) {
  std::string out;
  for (std::size_t i = 0; i < profile.meta.size(); ++i) {
    if (i < meta_.size() && meta_[i] == profile.meta[i]) continue;
    put_bytes(out, profile.meta[i].first);
    put_bytes(out, profile.meta[i].second);
  }
  meta_ = profile.meta;
  return out;
}

std::string PlimEncoder::strings(const Profile& profile) {
  std::string out;
  for (std::size_t& row = strings_.now; row < profile.strings.size() && out.size() < kFullSection; ++row)
    put_bytes(out, profile.strings[StringId{row}]);
  return out;
}

std::string PlimEncoder::functions(const Profile& profile) {
  std::string out;
  for (std::size_t& row = functions_.now; row < profile.functions.size() && out.size() < kFullSection; ++row) {
    const Function& function = profile.functions[FunctionId{row}];
    put_varint(out, static_cast<std::uint64_t>(strings_.plus_one(function.name)));
    put_varint(out, static_cast<std::uint64_t>(strings_.plus_one(function.file)));
    put_varint(out, function.first_line);
    put_varint(out, static_cast<std::uint64_t>(function.kind));
  }
  return out;
}

std::string PlimEncoder::frames(const Profile& profile) {
  std::string out;
  for (std::size_t& row = frames_.now; row < profile.frames.size() && out.size() < kFullSection; ++row) {
    const Frame& frame = profile.frames[FrameId{row}];
    put_varint(out, functions_.before + frame.function.index());
    // Most lines are a little below the first one of their function.
    put_signed(out, std::int64_t{frame.line} - std::int64_t{profile.functions[frame.function].first_line});
    put_varint(out, frame.column);
  }
  return out;
}

// Of the frames that have been written.
std::string PlimEncoder::traces(const Profile& profile) {
  std::string out;
  for (std::size_t& row = traces_.now; row < frames_.now && out.size() < kFullSection; ++row) {
    const StringId trace = profile.frames[FrameId{row}].trace;
    if (trace.is_none()) continue;
    put_varint(out, traces_.before + row);
    put_varint(out, static_cast<std::uint64_t>(strings_.plus_one(trace)));
  }
  return out;
}

std::string PlimEncoder::addresses(const Profile& profile) {
  std::string out;
  std::size_t last_row = 0;
  std::uint64_t last = 0;
  for (std::size_t& row = addresses_.now; row < frames_.now && out.size() < kFullSection; ++row) {
    const std::uint64_t address = profile.frames[FrameId{row}].address;
    if (address == 0) continue;
    put_varint(out, addresses_.before + row - std::exchange(last_row, addresses_.before + row));
    put_signed(out, static_cast<std::int64_t>(address - std::exchange(last, address)));
  }
  return out;
}

std::string PlimEncoder::modules(const Profile& profile) {
  std::string out;
  for (; modules_ < profile.modules.size() && out.size() < kFullSection; ++modules_) {
    put_bytes(out, profile.modules[modules_].file);
    put_bytes(out, profile.modules[modules_].build_id);
  }
  return out;
}

std::string PlimEncoder::stacks(const Profile& profile) {
  std::string out;
  for (std::size_t& row = stacks_.now; row < profile.stacks.size() && out.size() < kFullSection; ++row) {
    const StackNode& node = profile.stacks[StackId{row}];
    // Mostly the node just before: its distance is small and never 0.
    put_varint(out, node.parent.is_none() ? 0 : row - node.parent.index());
    put_varint(out, frames_.before + node.frame.index());
  }
  return out;
}

std::string PlimEncoder::tag_sets(const Profile& profile) {
  std::string out;
  for (std::size_t& row = tag_sets_.now; row < profile.tag_sets.size() && out.size() < kFullSection; ++row) {
    const TagSet& set = profile.tag_sets[TagSetId{row}];
    put_varint(out, set.size());
    for (const Tag& tag : set) {
      put_varint(out, static_cast<std::uint64_t>(strings_.plus_one(tag.name)));
      put_varint(out, static_cast<std::uint64_t>(strings_.plus_one(tag.value)));
    }
  }
  return out;
}

std::string PlimEncoder::processes(const Profile& profile) {
  std::string out;
  for (; processes_ < profile.processes.size(); ++processes_) {
    const Process& process = profile.processes[processes_];
    put_signed(out, process.pid);
    put_signed(out, process.parent_pid);
    put_bytes(out, process.name);
  }
  return out;
}

std::string PlimEncoder::threads(const ThreadRows& rows, ThreadRows::const_iterator& next) {
  std::string out;
  for (; next != rows.end() && out.size() < kFullSection; ++next) {
    const auto& [index, thread] = *next;
    put_varint(out, index);
    put_varint(out, static_cast<std::uint64_t>(plus_one(thread.process)));
    put_signed(out, thread.os_tid);
    put_bytes(out, thread.name);
    put_varint(out, thread.is_main ? 1 : 0);
    put_signed(out, thread.start_ns);
    put_signed(out, thread.end_ns);
    put_signed(out, thread.cpu_ns);
  }
  return out;
}

std::string PlimEncoder::samples(const Profile& profile, std::size_t& next) {
  // Columns, one after the other, as equal things compress better together.
  const SampleTable& table = profile.samples;
  if (next == table.size()) return {};
  const std::size_t first = next;
  const std::size_t end = next = std::min(first + kSamplesInSection, table.size());
  std::string threads, stacks, times, weights, activities, tags;
  std::size_t run = 0;
  std::size_t same_activity = 0;
  std::size_t same_tags = 0;
  bool any_waits = false;
  bool any_tags = false;
  ThreadState* of_thread = nullptr;
  for (std::size_t row = first; row < end; ++row) {
    if (row == first || table.thread[row] != table.thread[row - 1])
      of_thread = &thread_states_[static_cast<std::uint32_t>(table.thread[row].index())];
    ThreadState& state = *of_thread;
    ++run;
    if (row + 1 == end || table.thread[row + 1] != table.thread[row]) {
      put_varint(threads, table.thread[row].index());
      put_varint(threads, std::exchange(run, 0));
    }
    ++same_activity;
    any_waits = any_waits || table.activity[row] != Activity::kRunning;
    if (row + 1 == end || table.activity[row + 1] != table.activity[row]) {
      put_varint(activities, static_cast<std::uint64_t>(table.activity[row]));
      put_varint(activities, std::exchange(same_activity, 0));
    }
    ++same_tags;
    any_tags = any_tags || !table.tags[row].is_none();
    if (row + 1 == end || table.tags[row + 1] != table.tags[row]) {
      put_varint(tags, static_cast<std::uint64_t>(tag_sets_.plus_one(table.tags[row])));
      put_varint(tags, std::exchange(same_tags, 0));
    }
    const std::int64_t stack = stacks_.plus_one(table.stack[row]);
    put_signed(stacks, stack - std::exchange(state.stack, stack));
    // Ticks are a period of CPU time apart, also where the thread waits or other programs have the CPU.
    const std::int64_t weight_ns = table.weight_ns[row] + state.remainder_ns;
    const std::int64_t weight = units(weight_ns);
    state.remainder_ns = weight_ns - weight * unit_ns_;
    put_signed(weights, weight - std::exchange(state.weight, weight));
    // A thread that runs all the time uses as much CPU time as time passes: mostly the difference is 0.
    const std::int64_t time = units(table.time_ns[row]);
    put_signed(times, time - std::exchange(state.time, time) - weight);
  }
  std::string out;
  put_varint(out, end - first);
  for (const std::string* column : {&threads, &stacks, &weights, &times}) put_bytes(out, *column);
  if (any_waits || any_tags) put_bytes(out, activities);
  if (any_tags) put_bytes(out, tags);
  return out;
}

std::string PlimEncoder::allocations(const Profile& profile, std::size_t& next) {
  // The first section comes without rows, too: that allocations are sampled is a fact even if there were none.
  if (next == profile.allocations.size() && has_distance_) return {};
  has_distance_ = true;
  const std::size_t first = next;
  const std::size_t end = next = std::min(first + kSamplesInSection, profile.allocations.size());
  std::string numbers, threads, stacks, times, sizes, chances, domains, tags;
  std::size_t same_tags = 0;
  bool any_tags = false;
  for (std::size_t i = first; i < end; ++i) {
    const AllocationRow& row = profile.allocations[i];
    AllocationState& last = last_allocation_;
    const auto number = static_cast<std::int64_t>(row.number);
    put_signed(numbers, number - std::exchange(last.number, number) - 1);  // mostly the next
    put_varint(threads, row.thread.index());
    const std::int64_t stack = stacks_.plus_one(row.stack);
    put_signed(stacks, stack - std::exchange(last.stack, stack));
    const std::int64_t time = allocation_units(row.time_ns);
    put_signed(times, time - std::exchange(last.time, time));
    put_varint(sizes, row.size);
    put_signed(chances, static_cast<std::int64_t>(row.chance_bytes - row.size));
    domains.push_back(static_cast<char>(row.domain));
    ++same_tags;
    any_tags = any_tags || !row.tags.is_none();
    if (i + 1 == end || profile.allocations[i + 1].tags != row.tags) {
      put_varint(tags, static_cast<std::uint64_t>(tag_sets_.plus_one(row.tags)));
      put_varint(tags, std::exchange(same_tags, 0));
    }
  }
  std::string out;
  put_varint(out, profile.allocation_distance);
  put_varint(out, end - first);
  for (const std::string* column : {&numbers, &threads, &stacks, &times, &sizes, &chances, &domains})
    put_bytes(out, *column);
  if (any_tags) put_bytes(out, tags);
  return out;
}

void PlimEncoder::put_release(std::string& out, const Release& release) {
  const auto number = static_cast<std::int64_t>(release.number);
  put_signed(out, number - std::exchange(last_release_.number, number));
  put_varint(out, static_cast<std::uint64_t>(strings_.plus_one(release.type)));
  const bool is_freed = release.freed_ns != AllocationRow::kAlive;
  put_varint(out, is_freed ? 1 : 0);
  if (!is_freed) return;
  const std::int64_t time = allocation_units(release.freed_ns);
  put_signed(out, time - std::exchange(last_release_.time, time));
}

std::string PlimEncoder::releases(const Profile& profile, std::size_t& next) {
  // Those of the rows that are written here; then, while recording, those of earlier ones.
  std::string out;
  const std::size_t all = profile.allocations.size() + profile.releases.size();
  for (; next < all && out.size() < kFullSection; ++next) {
    if (next >= profile.allocations.size()) {
      put_release(out, profile.releases[next - profile.allocations.size()]);
      continue;
    }
    const AllocationRow& row = profile.allocations[next];
    if (row.freed_ns != AllocationRow::kAlive || !row.type.is_none())
      put_release(out, {row.number, row.freed_ns, row.type});
  }
  return out;
}

std::string PlimEncoder::exact_allocations(const std::vector<AllocationChange>& changes, std::size_t& next) {
  // The first section comes without rows, too, as that of sampled ones.
  if (next == changes.size() && has_exact_) return {};
  has_exact_ = true;
  const std::size_t end = std::min(next + kSamplesInSection, changes.size());
  std::string out;
  put_varint(out, end - next);
  ExactEncoder encoder(std::min(unit_ns_, plim::kAllocationUnit));
  for (; next < end; ++next)
    encoder.put(out, changes[next], stacks_.plus_one(changes[next].stack), strings_.plus_one(changes[next].type));
  return out;
}

std::string PlimEncoder::allocation_sites(const AllocationEvents& events, std::size_t& next) const {
  std::string out;
  for (; next < events.sites.size() && out.size() < kFullSection; ++next)
    EventEncoder::put_site(out, events.sites[next], stacks_.plus_one(events.sites[next].stack));
  return out;
}

std::string PlimEncoder::allocation_events(const Profile& profile, std::size_t& next) {
  // The first section comes without events, too: in a profile that is written from memory they are exact allocations.
  const auto& batches = profile.events.batches;
  if (next == batches.size() && has_events_) return {};
  has_events_ = true;
  const std::int64_t start_us = profile.start_monotonic_ns / 1000;
  return next == batches.size() ? events_.events({}, start_us) : events_.events(batches[next++], start_us);
}

std::string PlimEncoder::allocation_types(const AllocationEvents& events, std::size_t& next) const {
  std::string out;
  std::int64_t last = 0;
  for (; next < events.types.size() && out.size() < kFullSection; ++next) {
    const auto& [slot, type] = events.types[next];
    put_signed(out, std::int64_t{slot} - std::exchange(last, slot));
    put_varint(out, static_cast<std::uint64_t>(strings_.plus_one(type)));
  }
  return out;
}

std::string PlimEncoder::counter(const Counter& counter) const {
  std::string out;
  put_varint(out, static_cast<std::uint64_t>(plus_one(counter.process)));
  put_bytes(out, counter.name);
  put_bytes(out, counter.unit);
  put_varint(out, counter.value.size());
  std::int64_t time = 0;
  std::int64_t value = 0;
  for (std::size_t i = 0; i < counter.value.size(); ++i) {
    const std::int64_t now = units(counter.time_ns[i]);
    put_signed(out, now - std::exchange(time, now));
    put_signed(out, counter.value[i] - std::exchange(value, counter.value[i]));
  }
  return out;
}

std::string PlimEncoder::markers(const Profile& profile, std::size_t& next) const {
  std::string out;
  for (; next < profile.markers.size() && out.size() < kFullSection; ++next) {
    const Marker& marker = profile.markers[next];
    put_signed(out, marker.time_ns);
    put_signed(out, marker.duration_ns);
    put_varint(out, static_cast<std::uint64_t>(plus_one(marker.thread)));
    put_bytes(out, marker.name);
    put_varint(out, marker.fields.size());
    for (const auto& [name, value] : marker.fields) {
      put_bytes(out, name);
      put_bytes(out, value);
    }
  }
  return out;
}

// ---- the file ----

Result<PlimFile> PlimFile::create(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd.is_open()) {
    if (errno == ELOOP)
      return Error{ErrorKind::kPermission, "cannot write " + path + ": it is a symbolic link, which is not followed"};
    return system_error("cannot write " + path, errno);
  }
  // Out of the range that programs expect their own descriptors in.
  constexpr int kFirstDescriptor = 512;
  if (const int moved = ::fcntl(fd.get(), F_DUPFD_CLOEXEC, kFirstDescriptor); moved >= 0) fd.reset(moved);
  struct stat facts {};
  if (::fstat(fd.get(), &facts) != 0) return system_error("cannot examine " + path, errno);
  return PlimFile(path, std::move(fd), facts.st_dev, facts.st_ino);
}

bool PlimFile::is_ours(int fd) const {
  struct stat facts {};
  return ::fstat(fd, &facts) == 0 && facts.st_dev == device_ && facts.st_ino == inode_;
}

Status PlimFile::reopen_if_lost() {
  if (is_ours(fd_.get())) return Ok{};
  (void)fd_.release();  // whatever has this number now is the program's
  UniqueFd fd(::open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW));
  if (!fd.is_open())
    return system_error("the program has closed the profile, and it cannot be reopened: " + path_, errno);
  if (!is_ours(fd.get()))
    return Error{ErrorKind::kSystem, "the program has closed the profile and replaced its file: " + path_};
  fd_ = std::move(fd);
  return Ok{};
}

Status PlimFile::append(const std::string& bytes) {
  PLIMSOLL_TRY(reopen_if_lost());
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t written = ::write(fd_.get(), bytes.data() + done, bytes.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      const int reason = errno;
      if (::ftruncate(fd_.get(), size_) == 0) ::lseek(fd_.get(), size_, SEEK_SET);
      return system_error("cannot write " + path_, reason);
    }
    done += static_cast<std::size_t>(written);
  }
  size_ += static_cast<std::int64_t>(bytes.size());
  return Ok{};
}

Status write_plim_file(const Profile& profile, const std::string& path) {
  Result<PlimFile> file = PlimFile::create(path);
  if (!file.ok()) return file.error();
  PlimEncoder encoder(1);  // nothing is lost: a nanosecond is a nanosecond
  return file.value().append(PlimEncoder::file_header() + encoder.encode(profile));
}

}  // namespace plimsoll::profile
