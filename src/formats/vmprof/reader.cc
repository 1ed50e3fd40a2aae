// formats/vmprof/reader.cc: a second pass: samples, counters and markers.
#include "formats/vmprof/reader.h"

#include <algorithm>
#include <charconv>

#include "formats/vmprof/allocations.h"
#include "formats/vmprof/format.h"
#include "formats/vmprof/stacks.h"
#include "formats/vmprof/survey.h"

namespace plimsoll::formats::vmprof {
namespace {

constexpr std::int64_t kMillisecond = 1'000'000;
constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kKibibyte = 1'024;
constexpr std::int64_t kLongestPeriodUs = 1'000'000;  // vmprof takes none of a second or longer

double number_or(std::string_view digits, double otherwise) {
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return error == std::errc{} && std::abs(value) < 4e9 ? value : otherwise;
}

// What a sample without a measured weight stands for, and where that comes from.
struct Weight {
  std::int64_t ns = 0;
  std::string_view source;
};
Weight weight_of(const Survey& survey) {
  const std::int64_t period = std::min(survey.period_us, kLongestPeriodUs);
  const std::int64_t most = survey.most_of_a_thread;
  const std::optional<std::int64_t> elapsed = survey.elapsed_us();
  // A thread cannot have used more time than passed; 5 % for the clock that tells when recording began and ended.
  const bool is_too_much =
      elapsed && static_cast<double>(period) * static_cast<double>(most) > 1.05 * static_cast<double>(*elapsed);
  if (period > 0 && !is_too_much) return {period * kMicrosecond, "assumed: the period that was asked for"};
  if (elapsed && most > 0)
    return {std::max<std::int64_t>(*elapsed / most, 1) * kMicrosecond, "assumed: an equal share of the time recorded"};
  return {kMillisecond, "assumed: a millisecond"};
}

// Fills a Profile from the records of a file.
class Reader {
 public:
  Reader(Input input, Layout layout)
      : input_(input),
        layout_(layout),
        survey_(survey(input, layout)),
        weight_(weight_of(survey_)),
        stacks_(profile_, survey_, layout),
        allocations_(profile_, survey_, layout) {}

  [[nodiscard]] int version() const { return survey_.mode.version; }

  profile::Profile read() {
    session();
    reserve();
    RecordReader records(input_, layout_);
    for (Record record; records.next(record);) take(record, records.mode());
    finish();
    return std::move(profile_);
  }

 private:
  void session() {
    const Mode& mode = survey_.mode;
    profile_.processes.push_back({.pid = 0, .parent_pid = 0, .name = std::string(survey_.meta_value("argv"))});
    profile_.start_realtime_ns = survey_.start_us.value_or(0) * kMicrosecond;
    profile_.complete = survey_.ending == RecordReader::Ending::kTrailer;
    set("format", "vmprof " + std::to_string(mode.version));
    set("engine", "vmprof");
    set("mode", mode.is_real_time ? "wall" : "cpu");
    if (mode.interpreter == "cpython") set("python", "CPython");
    if (mode.interpreter == "pypy") set("python", "PyPy");
    if (survey_.period_us > 0) set("rate_hz", rate());
    set("weights", is_measured() ? std::string_view("measured: the time since the sample before") : weight_.source);
    if (!survey_.first_time_ns) set("times", "assumed: samples are spread evenly");
    if (is_measured() && !mode.is_real_time) set(kClockFact, std::to_string(zero()));
    if (survey_.ending == RecordReader::Ending::kDamaged)
      set("damage", "bytes that make no sense from byte " + std::to_string(survey_.end_position) + " on");
    system();
  }
  // Columns that grow by doubling would take twice the memory. A damaged file may count what it cannot hold.
  void reserve() {
    constexpr std::size_t kSmallestRecord = 9;
    const std::size_t count =
        std::min(static_cast<std::size_t>(survey_.samples), input_.bytes.size() / kSmallestRecord);
    profile::SampleTable& samples = profile_.samples;
    samples.time_ns.reserve(count);
    samples.thread.reserve(count);
    samples.stack.reserve(count);
    samples.weight_ns.reserve(count);
    samples.activity.reserve(count);
    samples.tags.reserve(count);
  }
  void set(std::string_view name, std::string_view value) {
    if (!value.empty()) profile_.set_meta(name, value);
  }
  [[nodiscard]] std::string rate() const {
    std::string text = std::to_string(1e6 / static_cast<double>(survey_.period_us));
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
    return text;
  }
  void system() {
    std::string platform;
    for (const auto& [name, value] : survey_.meta) {
      const bool is_type = name.starts_with(kTypeMeta);
      if (name == "os" || name == "bits")
        platform += (platform.empty() ? "" : " ") + std::string(value) + (name == "bits" ? "-bit" : "");
      else if (name == "argv")
        set(name, value);
      else if (!is_type)
        set("vmprof." + std::string(name), value);
    }
    set("platform", platform);
  }

  // The clock of the samples is one of time used, and every gap on it belongs to the sample that ends it.
  [[nodiscard]] bool is_measured() const { return survey_.first_time_ns && survey_.has_counts; }

  void take(const Record& record, const Mode& mode) {
    switch (record.marker) {
      case Marker::kStack: return sample(record, mode);
      case Marker::kAllocationStack:
        return allocations_.stack(time_of(record), thread(record.thread), stacks_.stack_of(record.entries, mode));
      case Marker::kObjects: return allocations_.objects(time_of(record), record.entries);
      default: return;
    }
  }

  void sample(const Record& record, const Mode& mode) {
    const ThreadId id = thread(record.thread);
    const StackId stack = stacks_.stack_of(record.entries, mode);
    for (std::int64_t i = 0; i < std::min(record.count, kMostOfOne); ++i) {
      const std::int64_t weight = is_measured() ? measured(record, mode) : weight_.ns;
      const std::int64_t time = time_of(record);
      profile_.samples.push_back(time, id, stack, weight);
      use(profile_.threads[id.index()], time, weight, mode);
      ++position_;
    }
    if (record.memory_kib > 0) memory(profile_.samples.time_ns.back(), record.memory_kib);
  }
  // A count of one record. Writers count only to 1; a few bytes cannot make us store very many rows.
  static constexpr std::int64_t kMostOfOne = 10;

  static void use(profile::Thread& thread, std::int64_t time, std::int64_t weight, const Mode& mode) {
    thread.end_ns = std::max(thread.end_ns, time);
    if (!mode.is_real_time) thread.cpu_ns += weight;
  }

  // The time since the previous sample: of the process, whose CPU clock ticks, or of the thread in real time. vmprof
  // makes of a longer gap a second, as a process that was stopped shows one, too.
  std::int64_t measured(const Record& record, const Mode& mode) {
    const std::int64_t now = record.time_ns.value_or(0);
    const auto [last, is_first] = last_times_.try_emplace(mode.is_real_time ? record.thread : 0, now);
    if (is_first) return weight_.ns;
    const std::int64_t gap = now > last->second ? now - last->second : 0;
    last->second = std::max(now, last->second);
    if (gap > kSecond) lost_ns_ += gap - kSecond;
    return std::clamp(gap, std::int64_t{0}, kSecond);
  }

  // Since the start of the profile.
  [[nodiscard]] std::int64_t time_of(const Record& record) const {
    if (record.time_ns && survey_.first_time_ns) return std::max<std::int64_t>(0, *record.time_ns - zero());
    const std::int64_t span = survey_.elapsed_us().value_or(0) * kMicrosecond;
    if (span == 0 || survey_.samples == 0) return (position_ + 1) * weight_.ns;
    return static_cast<std::int64_t>(static_cast<double>(span) * static_cast<double>(position_ + 1) /
                                     static_cast<double>(survey_.samples));
  }
  // The start on the clock of the samples: told, or a period before the first.
  [[nodiscard]] std::int64_t zero() const {
    const std::int64_t first = *survey_.first_time_ns;
    const double told = number_or(survey_.meta_value("start_time_offset"), -1);
    if (told >= 0) return std::min(first, static_cast<std::int64_t>(told * 1e9));
    return first - weight_.ns;
  }

  ThreadId thread(std::int64_t id) {
    const auto [position, is_new] = threads_.try_emplace(id, profile_.threads.size());
    if (is_new) {
      profile::Thread thread;
      thread.process = ProcessId{0};
      thread.os_tid = id;
      thread.is_main = profile_.threads.empty();
      // PyPy gives the samples of all threads the id 0, and version 0 has none.
      if (id == 0) thread.name = profile::kAllThreads;
      profile_.threads.push_back(thread);
    }
    return position->second;
  }

  void memory(std::int64_t time, std::int64_t kib) {
    constexpr std::int64_t kMostKib = INT64_MAX / kKibibyte;
    if (rss_ == kNoCounter) {
      rss_ = profile_.counters.size();
      profile_.counters.push_back({ProcessId{0}, "rss", "bytes", {}, {}});
    }
    profile_.counters[rss_].time_ns.push_back(time);
    profile_.counters[rss_].value.push_back(std::min(kib, kMostKib) * kKibibyte);
  }

  void finish() {
    allocations_.finish();
    for (const std::int64_t time : profile_.samples.time_ns) profile_.end_ns = std::max(profile_.end_ns, time);
    profile_.end_ns = std::max(profile_.end_ns, survey_.elapsed_us().value_or(0) * kMicrosecond);
    if (lost_ns_ > 0) profile_.drops.push_back({"gaps of over a second between samples", 0, lost_ns_});
  }

  static constexpr std::size_t kNoCounter = ~std::size_t{0};
  const Input input_;
  const Layout layout_;
  const Survey survey_;
  const Weight weight_;
  profile::Profile profile_;
  StackBuilder stacks_;
  Allocations allocations_;
  boost::unordered_flat_map<std::int64_t, ThreadId> threads_;
  boost::unordered_flat_map<std::int64_t, std::int64_t> last_times_;
  std::int64_t position_ = 0;  // samples so far
  std::int64_t lost_ns_ = 0;
  std::size_t rss_ = kNoCounter;
};

Result<profile::Profile> read_input(Input input) {
  const Result<std::optional<Layout>> layout = detect_layout(input.bytes);
  if (!layout.ok()) return layout.error();
  if (!layout.value()) return Error{ErrorKind::kBadInput, "not a vmprof profile"};
  Reader reader(input, *layout.value());
  if (const int version = reader.version(); version < 0 || version > kNewestVersion)
    return Error{ErrorKind::kUnsupported, "a vmprof profile of version " + std::to_string(version) +
                                              ": those of 0 to " + std::to_string(kNewestVersion) + " can be read"};
  return reader.read();
}

}  // namespace

bool is_vmprof(std::string_view bytes) {
  const Result<std::optional<Layout>> layout = detect_layout(bytes);
  return !layout.ok() || layout.value().has_value();
}

Result<profile::Profile> read(std::string_view bytes) { return read_input({bytes}); }
Result<profile::Profile> read_file(const MappedFile& file) { return read_input({file.view(), &file}); }

}  // namespace plimsoll::formats::vmprof
