// formats/firefox/meta.cc: versions, times, categories, and the facts under "More info".
#include "formats/firefox/meta.h"

#include <algorithm>
#include <charconv>

#include "profile/time_kind.h"

namespace plimsoll::formats::firefox {
namespace {

constexpr std::int64_t kProcessedVersion = 66;
constexpr std::int64_t kVersionWithSlabs = 67;  // the first one whose times may be slabs
constexpr std::int64_t kGeckoVersion = 30;      // of the format before processing; required, not used
constexpr std::int64_t kNanosecondsPerSecond = 1'000'000'000;
constexpr std::size_t kMostVisibleThreads = 15;  // that the viewer shows at first

// The time between two samples: as asked for, else a millisecond.
std::int64_t interval_ns(const profile::Profile& profile) {
  const std::string_view digits = profile.meta_value("rate_hz");
  double rate_hz = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), rate_hz);
  if (!(rate_hz >= 1e-3)) rate_hz = 1000;
  return std::max<std::int64_t>(static_cast<std::int64_t>(static_cast<double>(kNanosecondsPerSecond) / rate_hz), 1);
}

// A time after all samples: the viewer leaves out what is at the end of the range or later.
std::int64_t end_ns(const profile::Profile& profile) {
  constexpr std::int64_t kResolutionNs = 1000;  // of the times of samples in the file
  const std::vector<std::int64_t>& times = profile.samples.time_ns;
  const auto last = std::max_element(times.begin(), times.end());
  return std::max(profile.end_ns, last == times.end() ? 0 : *last + kResolutionNs);
}

// Threads by sampled CPU time, busiest first.
std::vector<ThreadId> by_cpu_time(const FileLayout& layout) {
  std::vector<ThreadId> threads = layout.threads;
  std::stable_sort(threads.begin(), threads.end(), [&](ThreadId a, ThreadId b) {
    return layout.thread_cpu_ns[a.index()] > layout.thread_cpu_ns[b.index()];
  });
  return threads;
}

void write_flag(JsonWriter& json, std::string_view name) {
  json.key(name);
  json.boolean(true);
}

void write_milliseconds(JsonWriter& json, std::string_view name, std::int64_t ns) {
  json.key(name);
  json.milliseconds(ns);
}

void write_versions(JsonWriter& json, const FileLayout& layout) {
  json.member("version", kGeckoVersion);
  json.member("preprocessedProfileVersion", layout.slabs == nullptr ? kProcessedVersion : kVersionWithSlabs);
  json.member("processType", 0);
  json.member("stackwalk", 1);
  json.member("importedFrom", kProductAndVersion);
  write_flag(json, "symbolicated");
  write_flag(json, "symbolicationNotSupported");
  write_flag(json, "sourceCodeIsNotOnSearchfox");
  write_flag(json, "keepProfileThreadOrder");
}

void write_times(JsonWriter& json, const profile::Profile& profile) {
  write_milliseconds(json, "interval", interval_ns(profile));
  write_milliseconds(json, "startTime", profile.start_realtime_ns);
  json.member("startTimeAsClockMonotonicNanosecondsSinceBoot", profile.start_monotonic_ns);
  json.member("profilingStartTime", 0);
  write_milliseconds(json, "profilingEndTime", end_ns(profile));
  json.key("sampleUnits");
  json.begin_object();
  json.member("time", "ms");
  json.member("eventDelay", "ms");
  json.member("threadCPUDelta", "ns");
  json.end_object();
}

void write_program(JsonWriter& json, const profile::Profile& profile) {
  const bool has_name = !profile.processes.empty() && !profile.processes[0].name.empty();
  json.member("product", has_name ? command_title(profile.processes[0].name) : std::string("Python"));
  if (const std::string_view argv = profile.meta_value("argv"); !argv.empty()) json.member("arguments", argv);
  if (const std::string_view platform = profile.meta_value("platform"); !platform.empty())
    json.member("oscpu", platform);
  const auto& functions = profile.functions.rows();
  const bool has_native = std::any_of(functions.begin(), functions.end(), [](const profile::Function& function) {
    return function.kind == profile::FunctionKind::kNative;
  });
  json.key("usesOnlyOneStackType");  // else the viewer offers to hide native frames
  json.boolean(!has_native);
}

void write_categories(JsonWriter& json) {
  json.column("categories", kCategories, [&](const CategoryLook& category) {
    json.begin_object();
    json.member("name", category.name);
    json.member("color", category.color);
    json.key("subcategories");
    json.begin_array();
    json.text("Other");
    json.end_array();
    json.end_object();
  });
}

void write_empty_extensions(JsonWriter& json) {
  json.key("extensions");
  json.begin_object();
  json.member("length", 0);
  for (const std::string_view name : {"baseURL", "id", "name"}) {
    json.key(name);
    json.begin_array();
    json.end_array();
  }
  json.end_object();
}

void write_shown_threads(JsonWriter& json, const FileLayout& layout) {
  std::vector<ThreadId> threads = by_cpu_time(layout);
  if (threads.empty()) return;
  const auto write_index = [&](ThreadId id) {
    json.integer(static_cast<std::int64_t>(layout.index_of_thread[id.index()]));
  };
  threads.resize(std::min(threads.size(), kMostVisibleThreads));
  json.column("initialVisibleThreads", threads, write_index);
  threads.resize(1);
  json.column("initialSelectedThreads", threads, write_index);
}

// One section of "More info".
class Section {
 public:
  Section(JsonWriter& json, std::string_view label) : json_(json) {
    json_.begin_object();
    json_.member("label", label);
    json_.key("entries");
    json_.begin_array();
  }
  Section(const Section&) = delete;
  Section& operator=(const Section&) = delete;
  ~Section() {
    json_.end_array();
    json_.end_object();
  }

  void text(std::string_view label, std::string_view value) {
    begin(label, "string");
    json_.member("value", value);
    json_.end_object();
  }
  void number(std::string_view label, std::string_view format, std::int64_t value) {
    begin(label, format);
    json_.member("value", value);
    json_.end_object();
  }
  void duration(std::string_view label, std::int64_t ns) {
    begin(label, "duration");
    write_milliseconds(json_, "value", ns);
    json_.end_object();
  }

 private:
  void begin(std::string_view label, std::string_view format) {
    json_.begin_object();
    json_.member("label", label);
    json_.member("format", format);
  }
  JsonWriter& json_;
};

void write_extra(JsonWriter& json, const profile::Profile& profile) {
  json.key("extra");
  json.begin_array();
  {
    Section session(json, "Session");
    for (const auto& [name, value] : profile.meta) session.text(name, value);
    session.text("recording", profile.complete ? "complete" : "cut short: the program was killed, or still runs");
  }
  {
    Section coverage(json, "Coverage");
    coverage.number("samples", "integer", static_cast<std::int64_t>(profile.samples.size()));
    coverage.duration(profile::is_cpu_time(profile) ? "CPU time in samples" : "time in samples",
                      profile.sampled_cpu_ns());
    coverage.duration("CPU time of the process", profile.process_cpu_ns);
  }
  if (!profile.drops.empty()) {
    Section drops(json, "Dropped samples");
    for (const profile::Drop& drop : profile.drops) {
      drops.number(drop.reason, "integer", static_cast<std::int64_t>(drop.count));
      drops.duration(drop.reason + ", CPU time", drop.cpu_ns);
    }
  }
  json.end_array();
}

}  // namespace

void write_meta(JsonWriter& json, const FileLayout& layout, const MarkerTypes& marker_types) {
  json.key("meta");
  json.begin_object();
  write_versions(json, layout);
  write_times(json, layout.profile);
  write_program(json, layout.profile);
  write_categories(json);
  marker_types.write_schemas(json);
  write_empty_extensions(json);
  write_shown_threads(json, layout);
  write_extra(json, layout.profile);
  json.end_object();
}

}  // namespace plimsoll::formats::firefox
