// formats/mojo/reader.cc: events into samples: a stack begins with its thread, and ends where the next one begins.
#include "formats/mojo/reader.h"

#include <boost/container_hash/hash.hpp>
#include <boost/unordered/unordered_flat_map.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "formats/austin_facts.h"
#include "formats/foreign.h"
#include "formats/mojo/events.h"
#include "formats/text_lines.h"

namespace plimsoll::formats::mojo {
namespace {

using profile::FunctionKind;

// Of a stack that is told by the one before it, each frame costs the file nothing, and every reader of the profile
// much.
constexpr std::size_t kDeepestRepeated = 8'192;

// What is between two beginnings of stacks.
struct Sample {
  ThreadId thread;
  StackId stack;
  std::size_t depth = 0;
  std::vector<FrameId> frames;
  std::optional<std::int64_t> time_us;
  bool has_memory = false, is_idle = false, is_collecting = false;
};

// A thread's last stack.
struct LastStack {
  StackId stack;
  std::size_t depth = 0;
};

// Fills a Profile from events.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : events_(bytes) {}

  Result<profile::Profile> read() {
    if (events_.version() < 1 || events_.version() > kNewestVersion)
      return Error{ErrorKind::kUnsupported,
                   "a MOJO file of version " + std::to_string(events_.version()) + ": versions 1 to 4 can be read"};
    for (Record record; !is_too_deep_ && events_.next(record);) take(record);
    end();
    if (out_.profile.samples.size() == 0 && without_time_ > 0)
      return Error{ErrorKind::kUnsupported, "a MOJO file of memory: only profiles of time can be read"};
    return out_.take();
  }

 private:
  void take(const Record& record) {
    switch (record.event) {
      case Event::kMetadata: return facts_.take(record.name, record.value, out_.profile);
      case Event::kStack: return begin(record);
      case Event::kFrame: return define_frame(record);
      case Event::kString: strings_[{process_, record.numbers[0]}] = record.name; return;
      case Event::kFrameReference: return push(frame_at(record.numbers[0]));
      case Event::kKernelFrame:
        return push(out_.frame({.name = record.name, .file = "[kernel]", .kind = FunctionKind::kNative}));
      case Event::kInvalidFrame: return push(out_.frame({.name = kAustinInvalidFrame, .file = {}}));
      case Event::kGarbageCollection: sample_.is_collecting = true; return;
      case Event::kIdle: sample_.is_idle = true; return;
      case Event::kTime: return time(record.numbers[0]);
      case Event::kMemory: sample_.has_memory = true; return;
      case Event::kStackRepeat: return repeat();
      case Event::kTaskStack: in_task_ = true; return;
      default: return;
    }
  }

  void begin(const Record& record) {
    finish();
    process_ = record.numbers[0];
    const std::string key = std::to_string(process_) + " " + std::to_string(record.numbers[1]) + " ";
    // An id in hexadecimal digits; from version 4 on a name.
    const bool has_name = events_.version() >= kNewestVersion;
    const std::int64_t tid = has_name ? 0 : integer(record.name, 16).value_or(0);
    sample_.thread =
        out_.thread(key + std::string(record.name), tid == 0 ? record.name : std::string_view{}, tid, process_);
    is_open_ = true;
  }

  void define_frame(const Record& record) {
    const auto& [key, file, function, line, last_line, column, last_column] = record.numbers;
    frames_[{process_, key}] = out_.frame(
        austin_frame({.name = string_at(function), .file = string_at(file), .line = line, .column = column}));
  }
  [[nodiscard]] std::string_view string_at(std::int64_t key) const {
    const auto found = strings_.find({process_, key});
    if (found != strings_.end()) return found->second;
    return key == 0 ? "" : "<unknown>";  // for the latter Austin uses the key 1
  }
  FrameId frame_at(std::int64_t key) {
    const auto found = frames_.find({process_, key});
    return found != frames_.end() ? found->second : out_.frame({.name = "[unknown frame]", .file = {}});
  }
  // A task's frames are on no thread's stack.
  void push(FrameId frame) {
    if (!in_task_) sample_.frames.push_back(frame);
  }
  void time(std::int64_t microseconds) {
    if (!std::exchange(in_task_, false)) sample_.time_us = microseconds;
  }

  // The stack before stands below, without the native code that Python had called: that is told anew.
  void repeat() {
    const auto found = last_.find(sample_.thread.index());
    if (!is_open_ || found == last_.end()) return;
    LastStack below = found->second;
    while (!below.stack.is_none() && is_native(below.stack)) {
      below.stack = out_.profile.stacks[below.stack].parent;
      --below.depth;
    }
    sample_.stack = below.stack;
    sample_.depth = below.depth;
    is_too_deep_ = below.depth > kDeepestRepeated;
  }
  [[nodiscard]] bool is_native(StackId stack) const {
    const profile::Profile& profile = out_.profile;
    return profile.functions[profile.frames[profile.stacks[stack].frame].function].kind == FunctionKind::kNative;
  }

  void finish() {
    if (is_open_) {
      for (const FrameId frame : sample_.frames) sample_.stack = out_.push(sample_.stack, frame);
      last_[sample_.thread.index()] = {sample_.stack, sample_.depth + sample_.frames.size()};
      add();
    }
    sample_ = {};
    is_open_ = in_task_ = false;
  }
  void add() {
    if (!sample_.time_us) {
      ++without_time_;
      return;
    }
    StackId stack = sample_.stack;
    if (sample_.is_collecting) stack = out_.push(stack, out_.frame({.name = kAustinCollector, .file = {}}));
    out_.sample(sample_.thread, stack, weight_of(static_cast<double>(*sample_.time_us), kMicrosecond),
                sample_.is_idle ? Activity::kOther : Activity::kRunning);
  }

  void end() {
    profile::Profile& profile = out_.profile;
    // The last of a sample's numbers tells that it is whole.
    const bool is_whole = sample_.time_us && (sample_.has_memory || !facts_.is_full());
    if (is_open_ && !is_whole && facts_.has_time()) {
      is_open_ = false;
      profile.drops.push_back({"cut off by the end of the file", 1, 0});
    }
    finish();
    if (events_.is_damaged() || is_too_deep_)
      profile.set_meta("damage", "bytes that make no sense from byte " + std::to_string(events_.position()) + " on");
    profile.complete = facts_.is_ended() && !events_.is_cut() && !events_.is_damaged() && !is_too_deep_;
    profile.set_meta("format", "mojo " + std::to_string(events_.version()));
    profile.set_meta("times", "assumed: one stack after the other");
    facts_.finish(profile);
  }

  using Key = std::pair<std::int64_t, std::int64_t>;  // of a process, whose number comes first

  EventReader events_;
  ForeignProfile out_{"mojo"};
  AustinFacts facts_;
  boost::unordered_flat_map<Key, std::string_view, boost::hash<Key>> strings_;
  boost::unordered_flat_map<Key, FrameId, boost::hash<Key>> frames_;
  boost::unordered_flat_map<std::uint32_t, LastStack> last_;
  Sample sample_;
  std::int64_t process_ = 0;
  std::uint64_t without_time_ = 0;
  bool is_open_ = false, in_task_ = false, is_too_deep_ = false;
};

}  // namespace

bool is_mojo(std::string_view bytes) {
  // Text could begin with these letters, but not with such a version behind them.
  return bytes.starts_with(kMagic) && bytes.size() > kMagic.size() &&
         static_cast<unsigned char>(bytes[kMagic.size()]) < ' ';
}

Result<profile::Profile> read(std::string_view bytes) {
  if (!is_mojo(bytes)) return Error{ErrorKind::kBadInput, "not a MOJO file"};
  return Reader(bytes).read();
}

}  // namespace plimsoll::formats::mojo
