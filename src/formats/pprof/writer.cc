// formats/pprof/writer.cc: the tables of a Profile, which are nearly those of profile.proto.
//
// Ids there start at 1, so function, frame and mapping ids are our indices plus one. The row after the last function
// (frame) stands for the empty stack.
#include "formats/pprof/writer.h"

#include <algorithm>
#include <array>
#include <boost/container_hash/hash.hpp>
#include <boost/unordered/unordered_flat_map.hpp>
#include <charconv>
#include <cmath>
#include <initializer_list>
#include <protozero/pbf_builder.hpp>
#include <tuple>

#include "formats/gzip.h"
#include "formats/labels.h"
#include "formats/pprof/fields.h"
#include "profile/memory.h"
#include "profile/time_kind.h"

namespace plimsoll::formats::pprof {
namespace {

using ProfileBuilder = protozero::pbf_builder<ProfileField>;
using protozero::pbf_builder;

constexpr std::uint64_t kMappingId = 1;

// Everything measured for one thread on one stack, in one activity, under the same tags.
struct StackTotal {
  ThreadId thread;
  StackId stack;
  Activity activity{};
  TagSetId tags;
  std::int64_t samples = 0;
  std::int64_t time_ns = 0;
};

// Blocks of one type that one thread allocated on one stack, from one allocator, under the same tags.
struct HeapTotal {
  ThreadId thread;
  StackId stack;
  StringId type;
  std::uint8_t domain = 0;
  TagSetId tags;
  profile::MemoryEstimate allocated;
  profile::MemoryEstimate in_use;
};

std::vector<HeapTotal> aggregate_heap(const profile::Profile& profile) {
  std::vector<HeapTotal> totals;
  boost::unordered_flat_map<std::tuple<std::uint64_t, std::uint64_t, std::uint32_t>, std::size_t> index;
  for (const profile::AllocationRow& row : profile.allocations) {
    const std::uint64_t key = std::uint64_t{row.thread.index()} << 32U | row.stack.index();
    const auto [position, inserted] =
        index.try_emplace({key, std::uint64_t{row.type.index()} << 8U | row.domain, row.tags.index()}, totals.size());
    if (inserted) totals.push_back({row.thread, row.stack, row.type, row.domain, row.tags, {}, {}});
    HeapTotal& total = totals[position->second];
    total.allocated.add(row, profile.allocation_distance);
    if (row.freed_ns == profile::AllocationRow::kAlive) total.in_use.add(row, profile.allocation_distance);
  }
  return totals;
}

bool has_empty_heap_stack(const profile::Profile& profile) {
  const auto& rows = profile.allocations;
  return std::any_of(rows.begin(), rows.end(), [](const profile::AllocationRow& row) { return row.stack.is_none(); });
}

bool has_waits(const profile::Profile& profile) {
  const auto& activities = profile.samples.activity;
  return std::any_of(activities.begin(), activities.end(), [](Activity one) { return one != Activity::kRunning; });
}

std::vector<StackTotal> aggregate(const profile::Profile& profile) {
  std::vector<StackTotal> totals;
  boost::unordered_flat_map<std::tuple<std::uint64_t, Activity, std::uint32_t>, std::size_t> index;
  const profile::SampleTable& samples = profile.samples;
  for (std::size_t row = 0; row < samples.size(); ++row) {
    const std::uint64_t key = std::uint64_t{samples.thread[row].index()} << 32U | samples.stack[row].index();
    const auto [position, inserted] =
        index.try_emplace({key, samples.activity[row], samples.tags[row].index()}, totals.size());
    if (inserted) totals.push_back({samples.thread[row], samples.stack[row], samples.activity[row], samples.tags[row]});
    ++totals[position->second].samples;
    totals[position->second].time_ns += samples.weight_ns[row];
  }
  return totals;
}

// A number rounded together with what was rounded away before it: so the sum of all of them is right.
std::int64_t rounded(double value, double& rest) {
  rest += value;
  const double whole = std::max(0.0, std::floor(rest + 0.5));
  rest -= whole;
  return static_cast<std::int64_t>(whole);
}

// Writes one file. Its parts may come in any order; the string table comes last, when all texts are known.
class FileWriter {
 public:
  explicit FileWriter(const profile::Profile& profile) : profile_(profile), has_waits_(has_waits(profile)) {
    texts_.intern("");
  }

  std::string write() {
    has_no_stack_ = has_empty_stack(profile_);
    write_value_types();
    write_mapping();
    write_functions();
    write_locations();
    write_samples();
    const std::int64_t period = period_ns();
    write_session(period, running_type(), "nanoseconds");
    return take();
  }

  std::string write_heap() {
    has_no_stack_ = has_empty_heap_stack(profile_);
    for (const char* type : {"alloc", "inuse"}) {
      write_value_type(ProfileField::kSampleType, std::string(type) + "_objects", "count");
      write_value_type(ProfileField::kSampleType, std::string(type) + "_space", "bytes");
    }
    file_.add_int64(ProfileField::kDefaultSampleType, text("inuse_space"));
    write_mapping();
    write_functions();
    write_locations();
    write_heap_samples();
    write_session(profile_.is_exact ? 1 : static_cast<std::int64_t>(profile_.allocation_distance), "space", "bytes");
    return take();
  }

 private:
  std::string take() {
    for (std::size_t i = 0; i < texts_.size(); ++i) {
      const std::string_view text = texts_[StringId{i}];
      file_.add_string(ProfileField::kStringTable, text.data(), text.size());
    }
    return std::move(bytes_);
  }

  std::int64_t text(std::string_view value) { return texts_.intern(valid_utf8(value)).index(); }

  void write_value_type(ProfileField field, std::string_view type, std::string_view unit) {
    pbf_builder<ValueTypeField> message{file_, field};
    message.add_int64(ValueTypeField::kType, text(type));
    message.add_int64(ValueTypeField::kUnit, text(unit));
  }
  // What running threads were measured by: other tools may have taken all time, or do not say.
  [[nodiscard]] std::string_view running_type() const {
    if (profile::is_cpu_time(profile_)) return "cpu";
    return profile_.meta_value("mode") == "wall" ? "wall" : "time";
  }
  void write_value_types() {
    write_value_type(ProfileField::kSampleType, "samples", "count");
    write_value_type(ProfileField::kSampleType, running_type(), "nanoseconds");
    if (has_waits_) write_value_type(ProfileField::kSampleType, "wall", "nanoseconds");
    file_.add_int64(ProfileField::kDefaultSampleType, text(has_waits_ ? "wall" : running_type()));
  }

  // The command's first word: of a whole command line, pprof would show what follows the last slash.
  static std::string program_of(std::string_view command_line) {
    return command_title(command_line.substr(0, command_line.find(' ')));
  }
  void write_mapping() {
    pbf_builder<MappingField> mapping{file_, ProfileField::kMapping};
    mapping.add_uint64(MappingField::kId, kMappingId);
    if (!profile_.processes.empty())
      mapping.add_int64(MappingField::kFilename, text(program_of(profile_.processes[0].name)));
    for (const auto flag : {MappingField::kHasFunctions, MappingField::kHasFilenames, MappingField::kHasLineNumbers,
                            MappingField::kHasInlineFrames})
      mapping.add_bool(flag, true);
  }

  // Without system_name: pprof takes a name that equals it for a mangled C++ one, and "<module>" for its template
  // arguments, of which nothing would be left.
  void write_function(std::uint64_t id, std::string_view name, std::string_view file, std::uint32_t first_line) {
    pbf_builder<FunctionField> message{file_, ProfileField::kFunction};
    message.add_uint64(FunctionField::kId, id);
    message.add_int64(FunctionField::kName, text(name));
    message.add_int64(FunctionField::kFilename, text(file));
    message.add_int64(FunctionField::kStartLine, first_line);
  }
  void write_functions() {
    std::uint64_t id = 0;
    for (const profile::Function& function : profile_.functions.rows()) {
      const std::string_view name = profile_.strings[function.name];
      const StringId file = function.source.is_none() ? function.file : function.source;
      write_function(++id, name.empty() ? "?" : name, profile_.strings[file], function.first_line);
    }
    if (has_no_stack_) write_function(++id, kNoStack, {}, 0);
  }

  void write_location(std::uint64_t id, std::uint64_t function_id, const profile::Frame& frame) {
    pbf_builder<LocationField> location{file_, ProfileField::kLocation};
    location.add_uint64(LocationField::kId, id);
    location.add_uint64(LocationField::kMappingId, kMappingId);
    write_line(location, function_id, frame);
  }
  static void write_line(pbf_builder<LocationField>& location, std::uint64_t function_id, const profile::Frame& frame) {
    pbf_builder<LineField> line{location, LocationField::kLine};
    line.add_uint64(LineField::kFunctionId, function_id);
    line.add_int64(LineField::kLine, frame.line);
    line.add_int64(LineField::kColumn, frame.column);
  }
  void write_locations() {
    std::uint64_t id = 0;
    for (const profile::Frame& frame : profile_.frames.rows()) {
      ++id;
      // (Those of inlined functions are lines of the location that they were inlined into.)
      if (frame.inline_depth == 0) write_location(id, frame.function.index() + std::uint64_t{1}, frame);
    }
    if (has_no_stack_) write_location(++id, profile_.functions.size() + 1, {});
  }

  // A function and those that were inlined into it, innermost first: one location.
  std::uint64_t location_of(const std::vector<FrameId>& frames) {
    if (frames.size() == 1 && profile_.frames[frames.front()].inline_depth == 0)
      return frames.front().index() + std::uint64_t{1};
    std::vector<std::uint32_t> numbers;
    for (const FrameId id : frames) numbers.push_back(id.index());
    const auto [known, is_new] = inlined_.try_emplace(std::move(numbers), profile_.frames.size() + 2 + inlined_.size());
    if (!is_new) return known->second;
    pbf_builder<LocationField> location{file_, ProfileField::kLocation};
    location.add_uint64(LocationField::kId, known->second);
    location.add_uint64(LocationField::kMappingId, kMappingId);
    for (const FrameId id : frames)
      write_line(location, profile_.frames[id].function.index() + std::uint64_t{1}, profile_.frames[id]);
    return known->second;
  }
  std::vector<std::uint64_t> location_ids(StackId stack) {
    std::vector<std::uint64_t> ids;
    std::vector<FrameId> frames;
    for (StackId at = stack; !at.is_none(); at = profile_.stacks[at].parent) {
      frames.push_back(profile_.stacks[at].frame);
      const bool is_whole = profile_.frames[frames.back()].inline_depth == 0 || profile_.stacks[at].parent.is_none();
      if (is_whole) ids.push_back(location_of(std::exchange(frames, {})));
    }
    if (ids.empty()) ids.push_back(profile_.frames.size() + 1);
    return ids;
  }
  void write_heap_samples() {
    std::array<double, 4> rests{};
    for (const HeapTotal& total : aggregate_heap(profile_)) {
      const std::array exact{total.allocated.blocks, total.allocated.bytes, total.in_use.blocks, total.in_use.bytes};
      std::array<std::int64_t, 4> values{};
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = rounded(exact[i], rests[i]);
      const std::vector<std::uint64_t> locations = location_ids(total.stack);
      pbf_builder<SampleField> sample{file_, ProfileField::kSample};
      sample.add_packed_uint64(SampleField::kLocationId, locations.begin(), locations.end());
      sample.add_packed_int64(SampleField::kValue, values.begin(), values.end());
      write_labels(sample, profile_.threads[total.thread.index()]);
      write_label(sample, "allocator", profile::domain_name(total.domain));
      if (!total.type.is_none()) write_label(sample, "type", profile_.strings[total.type]);
      if (!total.tags.is_none()) write_tags(sample, profile_.tag_sets[total.tags], {"allocator", "type"});
    }
  }
  void write_samples() {
    for (const StackTotal& total : aggregate(profile_)) {
      // Of CPU time as ever; where there are waits, of all time, too.
      const bool is_running = total.activity == Activity::kRunning;
      const std::array values{total.samples, is_running ? total.time_ns : 0, total.time_ns};
      const auto end = values.begin() + (has_waits_ ? 3 : 2);

      const std::vector<std::uint64_t> locations = location_ids(total.stack);
      pbf_builder<SampleField> sample{file_, ProfileField::kSample};
      sample.add_packed_uint64(SampleField::kLocationId, locations.begin(), locations.end());
      sample.add_packed_int64(SampleField::kValue, values.begin(), end);
      write_labels(sample, profile_.threads[total.thread.index()]);
      if (has_waits_) write_label(sample, "activity", plimsoll::text(total.activity));
      if (!total.tags.is_none()) write_tags(sample, profile_.tag_sets[total.tags], {"activity"});
    }
  }
  void write_label(pbf_builder<SampleField>& sample, std::string_view key, std::string_view value) {
    pbf_builder<LabelField> label{sample, SampleField::kLabel};
    label.add_int64(LabelField::kKey, text(key));
    label.add_int64(LabelField::kText, text(value));
  }
  void write_labels(pbf_builder<SampleField>& sample, const profile::Thread& thread) {
    if (!thread.name.empty()) write_label(sample, "thread_name", thread.name);
    write_label(sample, "thread_id", std::to_string(thread.os_tid));
    write_label(sample, "pid", std::to_string(profile_.processes[thread.process.index()].pid));
  }

  // `labels`: what such samples have beside the labels of all.
  void write_tags(pbf_builder<SampleField>& sample, const profile::TagSet& tags,
                  std::initializer_list<std::string_view> labels) {
    for (const profile::Tag& tag : tags) {
      const std::string_view name = profile_.strings[tag.name];
      constexpr std::array<std::string_view, 3> kOfAll = {"thread_name", "thread_id", "pid"};
      const bool is_ours = std::find(kOfAll.begin(), kOfAll.end(), name) != kOfAll.end() ||
                           std::find(labels.begin(), labels.end(), name) != labels.end();
      write_label(sample, (is_ours ? "tag_" : "") + std::string(name), profile_.strings[tag.value]);
    }
  }

  void write_session(std::int64_t period, std::string_view type, std::string_view unit) {
    file_.add_int64(ProfileField::kTimeNanos, profile_.start_realtime_ns);
    file_.add_int64(ProfileField::kDurationNanos, profile_.end_ns);
    if (period > 0) {
      write_value_type(ProfileField::kPeriodType, type, unit);
      file_.add_int64(ProfileField::kPeriod, period);
    }
    std::vector<std::int64_t> comments{text(kProductAndVersion)};
    for (const auto& [name, value] : profile_.meta) comments.push_back(text(name + ": " + value));
    for (const profile::Drop& drop : profile_.drops)
      comments.push_back(text("dropped: " + drop.reason + ": " + std::to_string(drop.count) + " samples, " +
                              std::to_string(drop.cpu_ns) + " ns"));
    file_.add_packed_int64(ProfileField::kComment, comments.begin(), comments.end());
  }
  // The asked time between samples; 0 if unknown.
  [[nodiscard]] std::int64_t period_ns() const {
    const std::string_view digits = profile_.meta_value("rate_hz");
    double rate_hz = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), rate_hz);
    return rate_hz >= 1e-3 ? static_cast<std::int64_t>(1e9 / rate_hz) : 0;
  }

  const profile::Profile& profile_;
  boost::unordered_flat_map<std::vector<std::uint32_t>, std::uint64_t> inlined_;  // by the frames' numbers
  const bool has_waits_;
  bool has_no_stack_ = false;
  profile::StringTable texts_;
  std::string bytes_;
  ProfileBuilder file_{bytes_};
};

std::string compressed_if_possible(std::string plain) {
  Result<std::string> compressed = gzip(plain);
  return compressed.ok() ? compressed.take() : std::move(plain);
}

}  // namespace

std::string write(const profile::Profile& profile) { return compressed_if_possible(FileWriter(profile).write()); }

std::string write_heap(const profile::Profile& profile) {
  return compressed_if_possible(FileWriter(profile).write_heap());
}

}  // namespace plimsoll::formats::pprof
