// formats/chrometrace/reader.cc: events in order of time, by their phase.
#include "formats/chrometrace/reader.h"

#include <algorithm>
#include <map>
#include <vector>

#include "formats/chrometrace/cut.h"
#include "formats/chrometrace/sampled.h"
#include "formats/chrometrace/spans.h"
#include "formats/foreign.h"
#include "formats/json_values.h"

namespace plimsoll::formats::chrometrace {
namespace {

namespace json = boost::json;

// An event and when it was.
struct TimedEvent {
  double at_us;
  const json::value* event;
};

// Fills a Profile from the events.
class Reader {
 public:
  Result<profile::Profile> read(const json::value& file) {
    const json::array* events = file.is_array() ? file.if_array() : array_member(&file, "traceEvents");
    if (events == nullptr) return Error{ErrorKind::kBadInput, "a Chrome trace without traceEvents"};
    frames_ = StackFrames(out_, member(&file, "stackFrames"));
    for (const TimedEvent& one : in_order_of_time(*events, array_member(&file, "samples"))) take(one);
    if (!has_any_) return Error{ErrorKind::kBadInput, "a Chrome trace without samples and without events that last"};
    finish();
    return out_.take();
  }

 private:
  // Names come first, whenever they were told.
  std::vector<TimedEvent> in_order_of_time(const json::array& events, const json::array* samples) {
    std::vector<TimedEvent> timed;
    timed.reserve(events.size());
    for (const json::value& event : events) {
      if (text_member(&event, "ph") == "M")
        take_name(event);
      else if (const std::optional<double> at = number_member(&event, "ts"))
        timed.push_back({*at, &event});
    }
    if (samples != nullptr)
      for (const json::value& sample : *samples)
        if (const std::optional<double> at = number_member(&sample, "ts")) timed.push_back({*at, &sample});
    std::stable_sort(timed.begin(), timed.end(),
                     [](const TimedEvent& a, const TimedEvent& b) { return a.at_us < b.at_us; });
    if (!timed.empty()) zero_us_ = timed.front().at_us;
    for (const TimedEvent& one : timed)
      if (text_member(one.event, "name") == "Profile") zero_us_ = std::min(zero_us_, start_of_profile(one));
    return timed;
  }

  [[nodiscard]] std::int64_t since_start(double at_us) const { return nanoseconds_of(at_us - zero_us_, kMicrosecond); }

  static std::string id_text(const json::value* id) { return id == nullptr ? std::string{} : json::serialize(*id); }
  static std::string thread_key(const json::value& event) {
    return id_text(member(&event, "pid")) + " " + id_text(member(&event, "tid"));
  }
  ThreadId thread_of(const json::value& event) {
    const std::string key = thread_key(event);
    const auto name = thread_names_.find(key);
    return out_.thread(key, name == thread_names_.end() ? std::string_view{} : name->second,
                       integer_of(member(&event, "tid")).value_or(0), integer_of(member(&event, "pid")).value_or(0));
  }

  void take_name(const json::value& event) {
    const std::string_view what = text_member(&event, "name");
    const std::string_view name = text_member(member(&event, "args"), "name");
    if (name.empty() || (what != "thread_name" && what != "process_name")) return;
    if (what == "thread_name") thread_names_[thread_key(event)] = name;
    if (what == "process_name") process_names_[integer_of(member(&event, "pid")).value_or(0)] = name;
  }

  void take(const TimedEvent& one) {
    const json::value& event = *one.event;
    const std::string_view phase = text_member(&event, "ph");
    const std::string_view name = text_member(&event, "name");
    const std::int64_t at_ns = since_start(one.at_us);
    last_ns_ = std::max(last_ns_, at_ns);
    if (phase == "X") {
      const std::int64_t end_ns = since_start(one.at_us + number_member(&event, "dur").value_or(0));
      last_ns_ = std::max(last_ns_, end_ns);
      spans_of(event).complete(at_ns, end_ns - at_ns, name);
    } else if (phase == "B") {
      spans_of(event).begin(at_ns, name);
    } else if (phase == "E") {
      spans_of(event).end(at_ns);
    } else if (phase == "C") {
      take_counter(event, one.at_us);
    } else if (name == "Profile" || name == "ProfileChunk" || name == "CpuProfile") {
      take_profile(event, name, one.at_us);
    } else if (phase == "P" || phase.empty()) {  // a row of "samples" has no phase
      take_sample(event, one.at_us);
    }
  }
  Spans& spans_of(const json::value& event) {
    has_any_ = true;
    return spans_[thread_of(event)];
  }

  void take_profile(const json::value& event, std::string_view name, double at_us) {
    has_any_ = is_sampled_ = true;
    const json::value* data = member(member(&event, "args"), "data");
    const std::string key = id_text(member(&event, "pid")) + " " + id_text(member(&event, "id"));
    if (name == "Profile")
      profiles_.begin(key, thread_of(event), start_of_profile({at_us, &event}));
    else
      profiles_.chunk(key, thread_of(event), data, at_us);
  }

  static double start_of_profile(const TimedEvent& one) {
    return number_member(member(member(one.event, "args"), "data"), "startTime").value_or(one.at_us);
  }

  // An event of the phase P, or a row of "samples".
  void take_sample(const json::value& sample, double at_us) {
    const json::value* frame = member(&sample, "sf");
    if (frame == nullptr) return;
    has_any_ = is_sampled_ = true;
    samples_[thread_of(sample)].add(at_us, frames_.stack_of(frame));
  }

  void take_counter(const json::value& event, double at_us) {
    const json::value* args = member(&event, "args");
    const json::object* series = args == nullptr ? nullptr : args->if_object();
    if (series == nullptr) return;
    const ProcessId process = out_.profile.threads[thread_of(event).index()].process;
    for (const auto& one : *series) {
      const std::optional<double> value = number_of(&one.value());
      if (!value) continue;
      std::string name(text_member(&event, "name"));
      if (series->size() > 1) (name += ".").append(one.key().data(), one.key().size());
      const auto [position, is_new] = counters_.try_emplace({process, name}, out_.profile.counters.size());
      if (is_new) out_.profile.counters.push_back({process, name, "", {}, {}});
      profile::Counter& counter = out_.profile.counters[position->second];
      counter.time_ns.push_back(since_start(at_us));
      counter.value.push_back(nanoseconds_of(*value, 1));
    }
  }

  void finish() {
    profile::Profile& profile = out_.profile;
    Contradictions all;
    for (auto& [thread, spans] : spans_) {
      spans.finish(last_ns_);
      is_sampled_ ? add_markers(thread, spans) : spans.write_stacks(out_, thread);
      all.ends_without_start += spans.contradictions().ends_without_start;
      all.overlaps += spans.contradictions().overlaps;
      all.overlap_ns += spans.contradictions().overlap_ns;
    }
    profiles_.write(zero_us_);
    for (auto& [thread, samples] : samples_) samples.write(out_, thread, zero_us_);
    profile.set_meta("mode", "wall");
    profile.set_meta("weights", is_sampled_ ? "the time to the next sample" : "measured: the time between two events");
    if (all.ends_without_start > 0)
      profile.drops.push_back({"ends of events without a start", all.ends_without_start, 0});
    if (all.overlaps > 0)
      profile.drops.push_back({"events that end after the one around them", all.overlaps, all.overlap_ns});
    for (profile::Process& process : profile.processes)
      if (const auto found = process_names_.find(process.pid); found != process_names_.end())
        process.name = found->second;
  }
  void add_markers(ThreadId thread, const Spans& spans) {
    for (const Span& span : spans.all())
      out_.profile.markers.push_back({span.start_ns, span.end_ns - span.start_ns, thread, std::string(span.name), {}});
  }

  ForeignProfile out_{"chrome trace"};
  StackFrames frames_{out_, nullptr};
  SampledProfiles profiles_{out_};
  std::map<ThreadId, Spans> spans_;
  std::map<ThreadId, ThreadSamples> samples_;
  std::map<std::pair<ProcessId, std::string>, std::size_t> counters_;
  std::map<std::string, std::string> thread_names_;
  std::map<std::int64_t, std::string> process_names_;
  double zero_us_ = 0;
  std::int64_t last_ns_ = 0;
  bool has_any_ = false, is_sampled_ = false;
};

}  // namespace

bool is_chrome_trace(std::string_view bytes) {
  constexpr std::size_t kPart = std::size_t{64} << 10U;
  if (is_json_with(bytes, "\"traceEvents\"")) return true;
  const std::size_t start = bytes.find_first_not_of(" \t\r\n");
  return start != std::string_view::npos && bytes[start] == '[' &&
         bytes.substr(start, kPart).find("\"ph\"") != std::string_view::npos;
}

Result<profile::Profile> read(std::string_view bytes) {
  Result<profile::Profile> whole = read_json_with<Reader>(bytes);
  if (whole.ok()) return whole;
  const std::optional<WholeEvents> events = whole_events(bytes);
  if (!events) return whole;
  Result<profile::Profile> part = read_json_with<Reader>(events->text);
  if (!part.ok()) return whole;
  part.value().complete = events->is_all_there;
  return part;
}

}  // namespace plimsoll::formats::chrometrace
