// formats/tachyon/reader.cc: tables of names, then samples that say how a thread's stack differs from its last one.
#include "formats/tachyon/reader.h"

#include <boost/container_hash/hash.hpp>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "base/varint.h"
#include "formats/foreign.h"
#include "formats/tachyon/layout.h"

namespace plimsoll::formats::tachyon {
namespace {

using profile::FunctionKind;

constexpr double kSecond = 1e9;
// A stack is told by what differs from the one before it, so that deep ones cost the file nothing. CPython's own walk
// ends much earlier.
constexpr std::size_t kDeepest = 8'192;

// How a record tells a stack.
enum class Encoding : std::uint8_t { kRepeat, kFull, kSuffix, kPopPush };

// Bits of a thread's state.
constexpr std::uint8_t kHasGil = 1, kOnCpu = 2, kWantsGil = 8, kIsMain = 32;

// By the numbers in the file; 0 is not told.
constexpr std::string_view kModes[] = {"", "wall", "cpu", "gil", "wall", "exception"};

Activity activity_of(std::uint8_t status) {
  if ((status & (kHasGil | kOnCpu)) != 0) return Activity::kRunning;
  return (status & kWantsGil) != 0 ? Activity::kGil : Activity::kOther;
}

// A thread as the samples go on.
struct ThreadState {
  ThreadId id;
  StackId stack;
  std::size_t depth = 0;
  std::uint64_t time_us = 0;  // since the start
};

// Fills a Profile from a file.
class Reader {
 public:
  explicit Reader(const Layout& layout) : layout_(layout) {}

  Result<profile::Profile> read() {
    session();
    read_strings();
    read_frames();
    std::string storage;
    const std::string_view samples = unpacked_samples(layout_, storage);
    VarintCursor data(samples);
    while (!data.at_end() && read_record(data)) record_at_ = samples.size() - data.remaining();
    const profile::Profile& profile = out_.profile;
    if (!data.at_end() || profile.samples.size() != layout_.samples) {
      out_.profile.complete = false;
      out_.profile.set_meta("damage", std::to_string(layout_.samples) +
                                          " samples were announced, and make sense up to byte " +
                                          std::to_string(record_at_) + " of them");
    }
    return out_.take();
  }

 private:
  void session() {
    profile::Profile& profile = out_.profile;
    profile.complete = layout_.is_whole;
    profile.set_meta("engine", "profiling.sampling");
    profile.set_meta("python", layout_.python);
    if (layout_.mode > 0 && layout_.mode < std::size(kModes)) profile.set_meta("mode", kModes[layout_.mode]);
    profile.start_monotonic_ns = nanoseconds_of(static_cast<double>(layout_.start_us), kMicrosecond);
    const auto interval_us = static_cast<double>(layout_.interval_us);
    if (interval_us >= 1) profile.set_meta("rate_hz", std::to_string(std::llround(1e6 / interval_us)));
    const Statistics measured = layout_.statistics.value_or(Statistics{});
    const bool is_measured = measured.rate_hz >= 1e-3;
    weight_ns_ =
        is_measured ? nanoseconds_of(1 / measured.rate_hz, kSecond) : nanoseconds_of(interval_us, kMicrosecond);
    profile.set_meta(
        "weights", is_measured ? "assumed: the mean period of the session" : "assumed: the period that was asked for");
    profile.end_ns = nanoseconds_of(measured.duration_s, kSecond);
    lost(measured, measured.failed_percent, "stacks that could not be read");
    lost(measured, measured.missed_percent, "looks that were not taken in time");
  }
  void lost(const Statistics& measured, double percent, std::string_view reason) {
    const double looks = measured.duration_s * measured.rate_hz * percent / 100;
    if (looks >= 0.5 && looks < 1e15)
      out_.profile.drops.push_back({std::string(reason), static_cast<std::uint64_t>(std::llround(looks)), 0});
  }

  void read_strings() {
    VarintCursor table(layout_.string_table);
    while (!table.at_end() && (!layout_.is_whole || strings_.size() < layout_.strings)) {
      const std::string_view text = table.bytes();
      if (table.failed()) return;
      strings_.push_back(text);
    }
  }

  void read_frames() {
    VarintCursor table(layout_.frame_table);
    while (!table.at_end() && (!layout_.is_whole || frames_.size() < layout_.frames)) {
      const std::uint64_t file = table.varint();
      const std::uint64_t function = table.varint();
      const std::int64_t line = table.signed_varint();
      table.signed_varint();  // lines that the expression goes on
      const std::int64_t column = table.signed_varint();
      table.signed_varint();  // columns
      table.take(1);          // the opcode
      if (table.failed()) return;
      frames_.push_back(frame(text(function), text(file), line, column));
    }
  }
  [[nodiscard]] std::string_view text(std::uint64_t index) const {
    return index < strings_.size() ? strings_[index] : "[unknown]";
  }
  // Columns count from 0 in the file. "~" is the file of what is no function: "<GC>", "<native>".
  FrameId frame(std::string_view function, std::string_view file, std::int64_t line, std::int64_t column) {
    constexpr std::int64_t kLargest = INT32_MAX;
    if (file != "~")
      return out_.frame({.name = function,
                         .file = file,
                         .line = line,
                         .column = column >= 0 && column < kLargest ? column + 1 : 0,
                         .kind = FunctionKind::kPython});
    if (function == "<GC>") return out_.frame({.name = "[gc]", .file = {}});
    if (function == "<native>") return out_.frame({.name = "[native]", .file = {}});
    return out_.frame({.name = function, .file = {}, .kind = FunctionKind::kSynthetic});
  }
  FrameId frame_at(std::uint64_t index) {
    if (index < frames_.size()) return frames_[index];
    return out_.frame({.name = "[unknown frame]", .file = {}});
  }

  bool read_record(VarintCursor& data) {
    const std::string_view head = data.take(13);
    if (data.failed()) return false;
    ThreadState& thread = thread_of(layout_.order.number(head, 0, 8), layout_.order.number(head, 8, 4));
    switch (static_cast<Encoding>(head[12])) {
      case Encoding::kRepeat: return repeat(data, thread);
      case Encoding::kFull: return changed(data, thread, Encoding::kFull);
      case Encoding::kSuffix: return changed(data, thread, Encoding::kSuffix);
      case Encoding::kPopPush: return changed(data, thread, Encoding::kPopPush);
    }
    return false;
  }

  bool repeat(VarintCursor& data, ThreadState& thread) {
    for (std::uint64_t left = data.varint(); left > 0 && !data.failed(); --left) {
      const std::uint64_t delta = data.varint();
      const std::string_view status = data.take(1);
      if (!data.failed()) sample(thread, delta, static_cast<std::uint8_t>(status[0]));
    }
    return !data.failed();
  }

  bool changed(VarintCursor& data, ThreadState& thread, Encoding encoding) {
    const std::uint64_t delta = data.varint();
    const std::string_view status = data.take(1);
    const std::uint64_t number = encoding == Encoding::kFull ? 0 : data.varint();
    const std::size_t count = data.count();
    std::vector<std::uint64_t> added(count);
    for (std::uint64_t& index : added) index = data.varint();
    if (data.failed()) return false;
    const std::uint64_t kept = encoding == Encoding::kPopPush
                                   ? thread.depth - std::min<std::uint64_t>(number, thread.depth)
                                   : std::min<std::uint64_t>(number, thread.depth);
    for (; thread.depth > kept; --thread.depth) thread.stack = out_.profile.stacks[thread.stack].parent;
    if (kept + count > kDeepest) return false;
    for (auto index = added.rbegin(); index != added.rend(); ++index) push(thread, frame_at(*index));
    sample(thread, delta, static_cast<std::uint8_t>(status[0]));
    return true;
  }
  // Each frame counts, also one that is none to a Profile: depths are the file's.
  void push(ThreadState& thread, FrameId frame) {
    if (frame.is_none()) frame = out_.frame({.name = "[unknown frame]", .file = {}});
    thread.stack = out_.push(thread.stack, frame);
    ++thread.depth;
  }

  void sample(ThreadState& thread, std::uint64_t delta_us, std::uint8_t status) {
    constexpr std::uint64_t kLatestUs = 4'000'000'000'000'000;
    thread.time_us = std::min(kLatestUs, thread.time_us + std::min(delta_us, kLatestUs));
    if ((status & kIsMain) != 0) out_.profile.threads[thread.id.index()].is_main = true;
    out_.sample_at(nanoseconds_of(static_cast<double>(thread.time_us), kMicrosecond), thread.id, thread.stack,
                   weight_ns_, activity_of(status));
  }

  ThreadState& thread_of(std::uint64_t tid, std::uint64_t interpreter) {
    const auto [position, is_new] = threads_.try_emplace({tid, interpreter});
    if (is_new) {
      const std::string key = std::to_string(tid) + " " + std::to_string(interpreter);
      position->second.id = out_.thread(key, "", static_cast<std::int64_t>(tid));
      out_.profile.threads[position->second.id.index()].is_main = false;
    }
    return position->second;
  }

  using ThreadKey = std::pair<std::uint64_t, std::uint64_t>;

  const Layout& layout_;
  ForeignProfile out_{"profiling.sampling 1"};
  std::vector<std::string_view> strings_;
  std::vector<FrameId> frames_;
  boost::unordered_flat_map<ThreadKey, ThreadState, boost::hash<ThreadKey>> threads_;
  std::int64_t weight_ns_ = 0;
  std::size_t record_at_ = 0;
};

}  // namespace

bool is_tachyon(std::string_view bytes) { return has_magic(bytes); }

Result<profile::Profile> read(std::string_view bytes) {
  if (!has_magic(bytes)) return Error{ErrorKind::kBadInput, "not a binary profile of profiling.sampling"};
  const Result<Layout> layout = find_layout(bytes);
  if (!layout.ok()) return layout.error();
  return Reader(layout.value()).read();
}

}  // namespace plimsoll::formats::tachyon
