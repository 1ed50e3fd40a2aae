// formats/firefox/reader.cc: threads, counters, markers, sources.
#include "formats/firefox/reader.h"

#include <algorithm>
#include <optional>

#include "formats/firefox/jslb.h"
#include "formats/firefox/read_tables.h"

namespace plimsoll::formats::firefox {
namespace {

namespace json = boost::json;

constexpr double kMillisecond = 1e6;

// What a CPU delta counts in nanoseconds; none for cycles.
std::optional<double> delta_unit_ns(std::string_view unit) {
  if (unit == "ns") return 1;
  if (unit == "µs") return 1e3;
  return std::nullopt;
}

// Times of a table: absolute, or as differences.
class Times {
 public:
  explicit Times(const json::value* table)
      : times_(array_member(table, "time")), deltas_(array_member(table, "timeDeltas")) {}
  // The time of the next row.
  std::int64_t next() {
    if (times_ != nullptr) return nanoseconds_of(number_of(element(times_, row_++)).value_or(0), kMillisecond);
    sum_ += number_of(element(deltas_, row_++)).value_or(0);
    return nanoseconds_of(sum_, kMillisecond);
  }

 private:
  const json::array* times_;
  const json::array* deltas_;
  std::size_t row_ = 0;
  double sum_ = 0;
};

// Fills a Profile from a file.
class Reader {
 public:
  Result<profile::Profile> read(const json::value& file) {
    const json::array* threads = array_member(&file, "threads");
    if (threads == nullptr) return Error{ErrorKind::kBadInput, "a Firefox profile without threads"};
    read_meta(member(&file, "meta"));
    const json::value* shared = member(&file, "shared");
    const ReadTables shared_tables(out_, nullptr, shared);
    for (const json::value& thread : *threads) read_thread(thread, shared, shared_tables);
    if (has_bytes_ && out_.profile.samples.size() == 0)
      return Error{ErrorKind::kUnsupported, "a Firefox profile of bytes: only profiles of time can be read"};
    if (const json::array* counters = array_member(&file, "counters"))
      for (const json::value& counter : *counters) read_counter(counter);
    read_sources(member(shared, "sources"), shared_tables);
    constexpr double kNearly = 0.95;
    if (cpu_ns_ > 0 && cpu_ns_ >= kNearly * running_ns_)
      out_.profile.set_meta("mode", out_.profile.has_waits() ? "wall" : "cpu");
    return out_.take();
  }

 private:
  void read_meta(const json::value* meta) {
    profile::Profile& profile = out_.profile;
    profile.start_realtime_ns = nanoseconds_of(number_member(meta, "startTime").value_or(0), kMillisecond);
    profile.end_ns =
        std::max(profile.end_ns, nanoseconds_of(number_member(meta, "profilingEndTime").value_or(0), kMillisecond));
    interval_ms_ = number_member(meta, "interval").value_or(1);
    set_period(profile, number_member(meta, "interval").value_or(0) * kMillisecond);
    delta_ns_ = delta_unit_ns(text_member(member(meta, "sampleUnits"), "threadCPUDelta"));
    if (const std::string_view argv = text_member(meta, "arguments"); !argv.empty()) profile.set_meta("argv", argv);
    if (const std::string_view from = text_member(meta, "importedFrom"); !from.empty())
      profile.set_meta("engine", from);
    if (const std::string_view os = text_member(meta, "oscpu"); !os.empty()) profile.set_meta("platform", os);
  }

  void read_thread(const json::value& thread, const json::value* shared, const ReadTables& shared_tables) {
    const std::int64_t pid = number_in_text(member(&thread, "pid"));
    const std::int64_t tid = number_in_text(member(&thread, "tid"));
    const ThreadId id = out_.thread(std::to_string(number_++), text_member(&thread, "name"), tid, pid);
    std::optional<ReadTables> own;
    if (member(&thread, "stackTable") != nullptr) own.emplace(out_, &thread, shared);
    const ReadTables& tables = own ? *own : shared_tables;
    read_samples(member(&thread, "samples"), tables, id);
    read_markers(member(&thread, "markers"), tables, id);
  }
  // Ids are numbers, or texts of one.
  static std::int64_t number_in_text(const json::value* value) {
    if (const std::optional<std::int64_t> number = integer_of(value)) return *number;
    std::int64_t number = 0;
    for (const char c : text_of(value).substr(0, 18)) {
      if (c < '0' || c > '9') break;
      number = number * 10 + (c - '0');
    }
    return number;
  }

  void read_samples(const json::value* samples, const ReadTables& tables, ThreadId thread) {
    const json::array* stacks = array_member(samples, "stack");
    if (stacks == nullptr) return;
    const std::string_view type = text_member(samples, "weightType");
    has_bytes_ = has_bytes_ || type == "bytes";
    if (type == "bytes") return;
    const bool is_time = type == "tracing-ms";
    const json::array* deltas = delta_ns_ ? array_member(samples, "threadCPUDelta") : nullptr;
    // Of time, or of how many samples a row is.
    const json::array* weights = is_time || deltas == nullptr ? array_member(samples, "weight") : nullptr;
    const double unit_ns = (is_time ? 1 : interval_ms_) * kMillisecond;
    out_.profile.set_meta("weights", is_time && weights  ? "as in the file"
                                     : deltas != nullptr ? "the thread's CPU time since the sample before"
                                                         : "assumed: the interval");
    Times times(samples);
    for (std::size_t row = 0; row < stacks->size(); ++row) {
      const std::int64_t time = times.next();
      const json::value* stack = &(*stacks)[row];
      const std::int64_t cpu = weight_of(number_of(element(deltas, row)).value_or(0), delta_ns_.value_or(0));
      std::int64_t weight = deltas != nullptr ? cpu : weight_of(interval_ms_, kMillisecond);
      if (weights != nullptr) weight = weight_of(number_of(element(weights, row)).value_or(0), unit_ns);
      if (stack->is_null() && weight == 0) continue;  // marks the start of an interval
      const bool has_waited = weights != nullptr && deltas != nullptr && cpu == 0 && weight > 0;
      if (!has_waited) running_ns_ += static_cast<double>(weight);
      cpu_ns_ += static_cast<double>(cpu);
      out_.sample_at(time, thread, tables.stack(stack), weight, has_waited ? Activity::kOther : Activity::kRunning);
    }
  }

  void read_markers(const json::value* markers, const ReadTables& tables, ThreadId thread) {
    const json::array* names = array_member(markers, "name");
    const json::array* data = array_member(markers, "data");
    const json::array* starts = array_member(markers, "startTime");
    const json::array* ends = array_member(markers, "endTime");
    if (names == nullptr) return;
    for (std::size_t row = 0; row < names->size(); ++row) {
      const std::optional<double> start = number_of(element(starts, row));
      const double end = number_of(element(ends, row)).value_or(start.value_or(0));
      if (!start) continue;
      profile::Marker marker{nanoseconds_of(*start, kMillisecond),
                             nanoseconds_of(end - *start, kMillisecond),
                             thread,
                             std::string(tables.text(&(*names)[row])),
                             {}};
      const json::value* fields = element(data, row);
      if (fields != nullptr && fields->is_object())
        for (const auto& [key, value] : fields->get_object())
          if (key != "type") marker.fields.emplace_back(field_name(key), field_text(value));
      out_.profile.markers.push_back(std::move(marker));
    }
  }
  // The writer puts a line behind names that mean something to the viewer.
  static std::string field_name(std::string_view key) {
    return std::string(key == "type_" || key == "cause_" || key == "stack_" ? key.substr(0, key.size() - 1) : key);
  }
  static std::string field_text(const json::value& value) {
    return value.is_string() ? std::string(text_of(&value)) : json::serialize(value);
  }

  // Differences -> absolute values.
  void read_counter(const json::value& value) {
    const json::value* samples = member(&value, "samples");
    const json::array* counts = array_member(samples, "count");
    if (counts == nullptr) return;
    const json::value* display = member(&value, "display");
    profile::Counter counter{out_.process(number_in_text(member(&value, "pid"))),
                             std::string(text_member(&value, "name")),
                             std::string(text_member(display, "unit")),
                             {},
                             {}};
    Times times(samples);
    std::int64_t sum = 0;
    for (const json::value& count : *counts) {
      counter.time_ns.push_back(times.next());
      if (__builtin_add_overflow(sum, integer_of(&count).value_or(0), &sum)) sum = 0;
      counter.value.push_back(sum);
    }
    out_.profile.counters.push_back(std::move(counter));
  }

  void read_sources(const json::value* sources, const ReadTables& tables) {
    const json::array* names = array_member(sources, "filename");
    const json::array* contents = array_member(sources, "content");
    if (names == nullptr || contents == nullptr) return;
    for (std::size_t row = 0; row < std::min(names->size(), contents->size()); ++row) {
      const std::string_view text = text_of(&(*contents)[row]);
      if (!text.empty()) out_.profile.sources.push_back({std::string(tables.text(&(*names)[row])), std::string(text)});
    }
  }

  ForeignProfile out_{"firefox"};
  double interval_ms_ = 0;
  std::optional<double> delta_ns_;
  std::size_t number_ = 0;
  double running_ns_ = 0, cpu_ns_ = 0;  // in samples
  bool has_bytes_ = false;
};

}  // namespace

bool is_firefox(std::string_view bytes) {
  return is_jslb(bytes) || is_json_with(bytes, "\"preprocessedProfileVersion\"");
}

Result<profile::Profile> read(std::string_view bytes) {
  if (!is_jslb(bytes)) return read_json_with<Reader>(bytes);
  json::monotonic_resource memory;
  const Result<json::value> file = parse_jslb(bytes, &memory);
  if (!file.ok()) return file.error();
  return Reader().read(file.value());
}

}  // namespace plimsoll::formats::firefox
