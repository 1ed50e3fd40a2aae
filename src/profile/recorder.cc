#include "profile/recorder.h"

#include <unistd.h>

#include <algorithm>
#include <climits>
#include <optional>

#include "base/clock.h"
#include "base/file_text.h"

namespace plimsoll::profile {
namespace {

constexpr std::size_t kLargestSource = std::size_t{1} << 20U;
constexpr std::size_t kAllSources = std::size_t{32} << 20U;
// They take 10 ms to be compressed; a program that has just imported a few hundred modules has twenty times as many.
constexpr std::size_t kSourcesAtOnce = std::size_t{256} << 10U;

std::string current_directory() {
  char path[PATH_MAX];
  return ::getcwd(path, sizeof path) != nullptr ? std::string(path) + "/" : std::string{};
}

std::size_t hash_of(std::string_view file) { return std::hash<std::string_view>{}(file); }

}  // namespace

Result<std::unique_ptr<Recorder>> Recorder::create(RecorderSettings settings) {
  Result<PlimFile> file = PlimFile::create(settings.path);
  if (!file.ok()) return file.error();
  return std::unique_ptr<Recorder>(new Recorder(std::move(settings), file.take()));
}

Recorder::Recorder(RecorderSettings settings, PlimFile file)
    : settings_(std::move(settings)),
      directory_(current_directory()),
      file_(std::move(file)),
      encoder_(time_unit_for(settings_.rate_hz)) {
  profile_.start_monotonic_ns = monotonic_ns();
  profile_.start_realtime_ns = realtime_ns();
  profile_.meta = settings_.meta;
  profile_.allocation_distance = settings_.allocation_distance;
  profile_.is_exact = settings_.is_exact;
  profile_.has_events = settings_.has_events;
  profile_.processes.push_back(settings_.process);
}

void Recorder::fact(const char* name, const std::string& value) { profile_.set_meta(name, value); }

void Recorder::code(capture::CodeId id, const cpython::CodeInfo& info) {
  stacks_.code(id, info);
  want_source(info.file);
}

void Recorder::native_function(capture::CodeId id, const capture::NativeFunction& function) {
  stacks_.native_function(id, function);
}

void Recorder::forget_code(capture::CodeId id) {
  stacks_.forget_code(id);  // the Function stays, as samples in the file refer to it
}

void Recorder::process(const capture::ProcessInfo& info) {
  if (info.number >= profile_.processes.size()) profile_.processes.resize(info.number + 1);
  profile_.processes[info.number] = {info.pid, 0, info.name};
  if (settings_.files) settings_.files->add(os::Pid{info.pid});
}

void Recorder::thread(const capture::ThreadInfo& info) {
  const auto serial = static_cast<std::uint32_t>(info.serial.index());
  // (A thread that ended before it could be sampled has a number, too.)
  for (; thread_count_ <= serial; ++thread_count_) changed_threads_.try_emplace(thread_count_);
  LiveThread& live = threads_[serial];
  Thread thread;
  thread.process = ProcessId{info.process};
  thread.os_tid = static_cast<std::int64_t>(info.tid);
  thread.name = info.name;
  const bool is_first = info.process == 0;
  thread.is_main = info.tid == (is_first ? settings_.main_thread
                                         : Tid{static_cast<std::int32_t>(profile_.processes[info.process].pid)});
  thread.start_ns = std::max<std::int64_t>(0, since_start(info.start_ns));
  thread.end_ns = std::max<std::int64_t>(0, since_start(info.end_ns));
  thread.cpu_ns = info.cpu_ns;
  if (thread != live.row) changed_threads_[serial] = live.row = thread;
  live.has_ended = info.has_ended;
}

void Recorder::forget_ended_threads() {
  // The ring may have held samples of a thread when its end was told. They have all been passed on when there has been
  // another flush since.
  boost::unordered::erase_if(threads_, [&](auto& entry) {
    LiveThread& live = entry.second;
    if (!live.has_ended || !std::exchange(live.was_flushed_since, true)) return false;
    encoder_.forget_thread(ThreadId{entry.first});
    stacks_.forget_thread(capture::ThreadSerial{entry.first});
    return true;
  });
}

TagSetId Recorder::tag_set_of(const capture::Sample& sample) {
  if (sample.tags == nullptr || sample.tags->empty()) return {};
  LastTags& last = threads_[static_cast<std::uint32_t>(sample.thread.index())].last_tags;
  if (last.number != sample.tag_number) {
    TagSet set;
    for (const auto& [name, value] : *sample.tags)
      set.push_back({profile_.strings.intern(name), profile_.strings.intern(value)});
    last.tags = profile_.tag_sets.intern(set);
    last.number = sample.tag_number;
  }
  return last.tags;
}

void Recorder::sample(const capture::Sample& sample) {
  profile_.samples.push_back(since_start(sample.time_ns), ThreadId{sample.thread.index()}, stacks_.of(sample),
                             sample.weight_ns, sample.activity, tag_set_of(sample));
}

void Recorder::allocation(const capture::Allocation& allocation) {
  const capture::RawAllocation& block = allocation.block;
  AllocationRow row;
  row.number = block.number;
  row.time_ns = since_start(allocation.sample.time_ns);
  row.thread = ThreadId{allocation.sample.thread.index()};
  row.stack = stacks_.of(allocation.sample);
  row.tags = tag_set_of(allocation.sample);
  row.size = block.size;
  row.chance_bytes = block.chance_bytes;
  row.domain = static_cast<std::uint8_t>(block.domain);
  profile_.allocations.push_back(row);
}

void Recorder::release(std::int64_t time_ns, const capture::RawRelease& release) {
  Release row;
  row.number = release.number;
  if (release.is_freed != 0) row.freed_ns = since_start(time_ns);
  row.is_moved = release.is_moved != 0;
  if (release.type_length != 0) row.type = profile_.strings.intern(release.type_name());
  profile_.releases.push_back(row);
}

void Recorder::exact_stack(const capture::ExactStack& stack) {
  using Kind = capture::ExactStack::Kind;
  exact_stacks_.extend(std::size_t{std::max(stack.number, stack.below)} + 1);
  KnownStack made = exact_stack(stack.below);
  switch (stack.kind) {
    case Kind::kFrame: made.base = made.stack = stacks_.on_top(made.base, stack.frame); break;
    case Kind::kHidden: break;
    case Kind::kNoPython: made = {stacks_.without_python(), StackId{}}; break;
    case Kind::kNative: made = {stacks_.native_thread(), StackId{}}; break;
    case Kind::kTruncated: made = {stacks_.without_python(), stacks_.too_deep()}; break;
  }
  made.is_known = true;
  exact_stacks_[stack.number] = made;
}

void Recorder::allocation_site(const capture::AllocationSite& site) {
  profile_.events.sites.push_back({ThreadId{site.thread.index()}, exact_stack(site.stack).stack,
                                   static_cast<std::uint8_t>(site.domain), site.size});
}

void Recorder::allocation_events(std::span<const std::uint32_t> words) {
  events_.put_events(profile_.events.new_section(), words, profile_.start_monotonic_ns / 1000);
}

void Recorder::allocation_type(std::uint32_t slot, std::string_view type) {
  profile_.events.types.emplace_back(slot, profile_.strings.intern(type));
}

void Recorder::exact_allocation(const capture::ExactAllocation& allocation) {
  AllocationChange row;
  row.change = static_cast<std::uint8_t>(allocation.change);
  row.domain = static_cast<std::uint8_t>(allocation.domain);
  row.thread = ThreadId{allocation.thread.index()};
  row.stack = exact_stack(allocation.stack).stack;
  row.born_ns = since_start(allocation.born_ns);
  row.at_ns = since_start(allocation.at_ns);
  if (!allocation.type.empty()) row.type = profile_.strings.intern(allocation.type);
  row.blocks = allocation.blocks;
  row.bytes = allocation.bytes;
  profile_.allocation_changes.push_back(row);
}

void Recorder::counter(const char* name, const char* unit, std::int64_t time_ns, std::int64_t value) {
  auto found = std::find_if(profile_.counters.begin(), profile_.counters.end(),
                            [&](const Counter& known) { return known.name == name; });
  if (found == profile_.counters.end())
    found = profile_.counters.insert(found, Counter{ProcessId{0}, name, unit, {}, {}});
  found->time_ns.push_back(since_start(time_ns));
  found->value.push_back(value);
}

void Recorder::marker(const capture::MarkerEvent& marker) {
  const bool is_known = !marker.thread.is_none() && marker.thread.index() < thread_count_;
  profile_.markers.push_back(Marker{since_start(marker.time_ns), marker.duration_ns,
                                    is_known ? ThreadId{marker.thread.index()} : ThreadId{}, marker.name,
                                    marker.fields});
}

void Recorder::source(const capture::SourceText& source) {
  if (known_sources_.contains(hash_of(source.file)) && source.text.size() <= kLargestSource)
    add_source(source.file, source.text);
}

void Recorder::want_source(std::string_view file) {
  const bool is_made_up = file.empty() || file.front() == '<';
  if (settings_.sources == RecorderSettings::Sources::kOmit) return;
  if (!known_sources_.insert(hash_of(file)).second || is_made_up) return;
  wanted_sources_.emplace_back(file);
  if (settings_.files) settings_.files->look_again();  // who has named it; at the next flush it may have ended
}

std::string Recorder::read_source(const std::string& name) const {
  std::optional<FileText> file = settings_.files
                                     ? settings_.files->read(name, kLargestSource)
                                     : read_text(name.front() == '/' ? name : directory_ + name, kLargestSource);
  return file ? std::move(file->text) : std::string{};
}

void Recorder::read_wanted_sources(Ending ending) {
  const std::size_t most = ending != Ending::kOpen ? kAllSources : source_bytes_ + kSourcesAtOnce;
  if (settings_.files && !wanted_sources_.empty()) settings_.files->look_again();
  for (; !wanted_sources_.empty() && source_bytes_ < most; wanted_sources_.pop_front()) {
    const std::string& name = wanted_sources_.front();
    add_source(name, read_source(name));
  }
  has_left_sources_ = !wanted_sources_.empty();
}

void Recorder::add_source(const std::string& file, std::string text) {
  if (text.empty() || source_bytes_ + text.size() > kAllSources) return;
  if (!read_sources_.insert(hash_of(file)).second) return;
  source_bytes_ += text.size();
  profile_.sources.push_back(Source{file, std::move(text)});
}

std::size_t Recorder::table_memory() const {
  return profile_.strings.memory() + profile_.functions.memory() + profile_.frames.memory() + profile_.stacks.memory() +
         profile_.tag_sets.memory();
}

bool Recorder::wants_flush() const {
  if (has_left_sources_) return true;
  // Half of the budget is for the tables that a flush begins anew, since a table that grows is there twice for a while.
  const std::size_t rows = profile_.samples.size() * SampleTable::kRowBytes +
                           profile_.allocations.size() * sizeof(AllocationRow) +
                           profile_.releases.size() * sizeof(Release) +
                           profile_.allocation_changes.size() * sizeof(AllocationChange) + profile_.events.memory();
  return table_memory() + rows > settings_.memory_bytes / 2;
}

void Recorder::forget_tables() {
  encoder_.forget_tables();
  profile_.strings = {};
  profile_.functions = {};
  profile_.frames = {};
  profile_.stacks = {};
  profile_.tag_sets = {};
  stacks_.forget();
  exact_stacks_.free();
  for (auto& [serial, live] : threads_) live.last_tags = {};
  ++code_epoch_;
}

Status Recorder::flush(const Totals& totals, Ending ending) {
  profile_.end_ns = since_start(totals.time_ns);
  profile_.process_cpu_ns = totals.process_cpu_ns;
  for (std::size_t i = 0; i < totals.drops.size(); ++i)
    if (totals.drops[i].count != 0 || totals.drops[i].cpu_ns != 0)
      profile_.drops.push_back(
          Drop{capture::text(static_cast<capture::DropReason>(i)), totals.drops[i].count, totals.drops[i].cpu_ns});
  // (If the exec has failed, there is another flush.)
  if (ending == Ending::kExec || !profile_.meta_value("ending").empty())
    profile_.set_meta("ending", ending == Ending::kExec ? "exec" : "");
  read_wanted_sources(ending);
  // On a disk that is nearly full, there is to be room for the samples.
  std::vector<Source> sources = std::exchange(profile_.sources, {});
  profile_.complete = ending != Ending::kOpen && sources.empty();
  std::string bytes = std::exchange(has_header_, true) ? std::string{} : PlimEncoder::file_header();
  bytes += encoder_.encode(profile_, changed_threads_);
  // Whether or not it can be written: a recording that has failed must not grow in memory instead.
  forget_rows();
  if (table_memory() > settings_.memory_bytes / 2) forget_tables();
  PLIMSOLL_TRY(file_.append(bytes));
  if (sources.empty()) return Ok{};
  profile_.sources = std::move(sources);
  profile_.complete = ending != Ending::kOpen;
  bytes = encoder_.encode(profile_, changed_threads_);
  profile_.sources.clear();
  return file_.append(bytes);
}

void Recorder::forget_rows() {
  changed_threads_.clear();
  forget_ended_threads();
  profile_.samples.clear();
  profile_.allocations.clear();
  profile_.releases.clear();
  profile_.allocation_changes.clear();
  profile_.events.clear();
  profile_.markers.clear();
  profile_.drops.clear();
  for (Counter& counter : profile_.counters) {
    counter.time_ns.clear();
    counter.value.clear();
  }
}

}  // namespace plimsoll::profile
