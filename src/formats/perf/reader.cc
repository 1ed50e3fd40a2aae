// formats/perf/reader.cc: lines into samples of events, then those of the best event into rows.
#include "formats/perf/reader.h"

#include <algorithm>
#include <boost/container_hash/hash.hpp>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "formats/perf/lines.h"
#include "formats/text_lines.h"

namespace plimsoll::formats::perf {
namespace {

constexpr double kMillisecond = 1'000'000;
constexpr double kSlowestCycleNs = 1;  // of a CPU that has something to do

// How well an event measures time: its periods are nanoseconds, or nearly proportional to time, or neither.
enum class Rank : std::uint8_t { kNone, kCycles, kClock };

Rank rank_of(std::string_view event) {
  if (event == "cpu-clock" || event == "task-clock") return Rank::kClock;
  return event == "cycles" || event == "cpu-cycles" || event == "ref-cycles" ? Rank::kCycles : Rank::kNone;
}

// A sample as it is in the file.
struct Row {
  ThreadId thread;
  StackId stack;
  std::optional<std::int64_t> time_ns;
  std::int64_t period = 1;
  std::size_t event = 0;
  std::int64_t cpu = -1;
};

// Fills a Profile from lines.
class Reader {
 public:
  void add(std::string_view line) {
    if (line.starts_with('#')) return;
    if (line.find_first_not_of(" \t") == std::string_view::npos) return end_sample();
    const bool is_indented = line.starts_with(' ') || line.starts_with('\t');
    // Names of threads are padded on the left where samples have no stacks, so that both kinds of lines may be
    // indented.
    const bool may_be_frame = is_open_ && !is_one_line_ && is_indented;
    const bool may_be_sample = !may_be_frame || line.ends_with(':') || line.find(": ") != std::string_view::npos;
    if (const std::optional<SampleLine> sample = may_be_sample ? parse_sample(line) : std::nullopt) {
      end_sample();
      begin_sample(*sample);
      is_one_line_ = !sample->frame.empty();
      if (is_one_line_) (void)add_frame(sample->frame);
      // ("file:line" stands below a frame where the user asked for it.)
    } else if (!(may_be_frame && add_frame(line)) && !(is_indented && ends_with_line(line))) {
      ++unread_;
    }
  }

  // Ends a text; whether it ends with a whole line. A stack whose end has not come may be a part of one: it is not
  // kept.
  void end(bool is_whole_line) {
    if (is_open_ && !(is_one_line_ && is_whole_line)) {
      is_open_ = false;
      out_.profile.complete = false;
      out_.profile.drops.push_back({"cut off by the end of the file", 1, 0});
    }
    end_sample();
  }

  Result<profile::Profile> take() {
    if (rows_.empty()) return Error{ErrorKind::kBadInput, "no line is a sample of perf script"};
    choose_event();
    if (rank_of(events_[event_]) == Rank::kNone)
      return Error{ErrorKind::kUnsupported, "perf's samples of " + events_[event_] +
                                                ": only those of time can be read (cpu-clock, task-clock, cycles)"};
    add_rows();
    tell();
    return out_.take();
  }

 private:
  void begin_sample(const SampleLine& line) {
    const std::string key = std::to_string(line.pid) + " " + std::to_string(line.tid);
    row_ = {out_.thread(key, line.comm, line.tid, line.pid),
            {},
            line.time_ns,
            std::max<std::int64_t>(line.period.value_or(1), 0),
            event_index(line.event),
            line.cpu};
    if (line.period) has_periods_[row_.event] = true;
    is_open_ = true;
  }
  std::size_t event_index(std::string_view name) {
    const auto [position, is_new] = event_indices_.try_emplace(std::string(name), events_.size());
    if (is_new) {
      events_.emplace_back(name);
      has_periods_.push_back(false);
    }
    return position->second;
  }

  bool add_frame(std::string_view line) {
    const std::optional<ForeignFrame> frame = parse_frame(line);
    if (frame) frames_.push_back(out_.frame(*frame));
    return frame.has_value();
  }

  void end_sample() {
    if (!is_open_) return;
    for (auto frame = frames_.rbegin(); frame != frames_.rend(); ++frame) row_.stack = out_.push(row_.stack, *frame);
    frames_.clear();
    rows_.push_back(row_);
    is_open_ = false;
  }

  void choose_event() {
    for (std::size_t i = 1; i < events_.size(); ++i)
      if (rank_of(events_[i]) > rank_of(events_[event_])) event_ = i;
  }

  // What one of the event's periods stands for. The time between two samples of a thread is at least what its cycles
  // took, and more where it has slept: the least of it tells their rate, but for one in twenty, as rates vary. (Of
  // another CPU the cycles may have begun before the thread came to it.) Where no periods are told, all are taken to be
  // of one length, the lower quarter of the gaps.
  [[nodiscard]] double ns_of_period() const {
    if (rank_of(events_[event_]) == Rank::kClock && has_periods_[event_]) return 1;
    boost::unordered_flat_map<std::pair<std::uint32_t, std::int64_t>, std::int64_t,
                              boost::hash<std::pair<std::uint32_t, std::int64_t>>>
        last;
    std::vector<double> ratios;
    for (const Row& row : rows_) {
      if (row.event != event_ || !row.time_ns || row.period == 0) continue;
      const auto [before, is_first] = last.try_emplace({row.thread.index(), row.cpu}, *row.time_ns);
      const auto gap = static_cast<double>(*row.time_ns - before->second);
      before->second = *row.time_ns;
      if (!is_first && gap > 0) ratios.push_back(gap / static_cast<double>(row.period));
    }
    if (ratios.empty()) return 0;
    // (A clock's ticks come late or early, and are late as often.)
    const std::size_t one_in = has_periods_[event_] ? 20 : 4;
    const auto low = ratios.begin() + static_cast<std::ptrdiff_t>(ratios.size() / one_in);
    std::nth_element(ratios.begin(), low, ratios.end());
    return has_periods_[event_] ? std::min(*low, kSlowestCycleNs) : *low;
  }

  void add_rows() {
    ns_of_period_ = ns_of_period();
    std::int64_t zero = INT64_MAX;
    for (const Row& row : rows_) zero = std::min(zero, row.time_ns.value_or(INT64_MAX));
    for (const Row& row : rows_) {
      if (row.event != event_) {
        ++of_other_events_;
        continue;
      }
      const std::int64_t weight = ns_of_period_ == 0 ? nanoseconds_of(1, kMillisecond)
                                                     : nanoseconds_of(static_cast<double>(row.period), ns_of_period_);
      if (row.time_ns)
        out_.sample_at(*row.time_ns - zero, row.thread, row.stack, weight, Activity::kRunning);
      else
        out_.sample(row.thread, row.stack, weight);
      has_times_ = has_times_ && row.time_ns.has_value();
    }
    if (zero != INT64_MAX) out_.profile.start_monotonic_ns = zero;
  }

  [[nodiscard]] std::string_view meaning_of_weights() const {
    if (ns_of_period_ == 0) return "assumed: a sample is a millisecond";
    if (!has_periods_[event_]) return "assumed: the time between two samples of a busy thread";
    if (rank_of(events_[event_]) == Rank::kClock) return "as in the file";
    return ns_of_period_ < kSlowestCycleNs ? "assumed: cycles at the rate of the busiest times"
                                           : "assumed: a cycle is a nanosecond, which is too much";
  }

  void tell() {
    profile::Profile& profile = out_.profile;
    profile.set_meta("engine", "perf " + events_[event_]);
    profile.set_meta("mode", "cpu");
    profile.set_meta("weights", meaning_of_weights());
    if (!has_times_) profile.set_meta("times", "assumed: one stack after the other");
    if (unread_ > 0) profile.drops.push_back({"lines that are no samples", unread_, 0});
    if (of_other_events_ > 0) profile.drops.push_back({"samples of other events", of_other_events_, 0});
  }

  ForeignProfile out_{"perf script"};
  std::vector<Row> rows_;
  std::vector<std::string> events_;
  std::vector<bool> has_periods_;  // by event: whether its samples say how long they are
  boost::unordered_flat_map<std::string, std::size_t> event_indices_;
  Row row_;
  std::vector<FrameId> frames_;
  bool is_open_ = false, is_one_line_ = false, has_times_ = true;
  std::size_t event_ = 0;
  double ns_of_period_ = 0;
  std::uint64_t unread_ = 0, of_other_events_ = 0;
};

}  // namespace

bool is_perf_script(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::string_view line = take_line(bytes);
    if (line.empty() || line.starts_with('#')) continue;
    const std::optional<SampleLine> sample = parse_sample(line);
    if (!sample) return false;
    // Without a time on it a line is a sample's if a frame comes next.
    return sample->time_ns.has_value() || parse_frame(take_line(bytes)).has_value();
  }
  return false;
}

Result<profile::Profile> read(std::string_view bytes) {
  Reader reader;
  const bool is_whole_line = bytes.ends_with('\n');
  while (!bytes.empty()) reader.add(take_line(bytes));
  reader.end(is_whole_line);
  return reader.take();
}

}  // namespace plimsoll::formats::perf
