// formats/foreign.h: what the readers of foreign formats share: rows from texts and numbers that may be anything.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "profile/profile.h"

namespace plimsoll::formats {

// A frame as other tools tell of it.
struct ForeignFrame {
  std::string_view name;
  std::string_view file;
  std::int64_t line = 0;
  std::int64_t column = 0;
  std::int64_t first_line = 0;
  std::optional<profile::FunctionKind> kind{};  // where the format tells it; else it is guessed from the names
};

// "function (file:line)", as many tools write a frame; the parts that are missing stay empty.
ForeignFrame frame_of_label(std::string_view label);

// Fills a Profile. Threads are named by any key that tells them apart.
class ForeignProfile {
 public:
  // `format` goes into the profile's facts.
  explicit ForeignProfile(std::string_view format);

  // Lines that are no lines are taken for unknown. The name of the empty stack (labels.h) gives no frame: none.
  FrameId frame(const ForeignFrame& frame);
  // The stack with a frame on top; the stack itself where there is no frame.
  StackId push(StackId below, FrameId frame);
  ThreadId thread(const std::string& key, std::string_view name, std::int64_t tid = 0, std::int64_t pid = 0);
  // The process of that id, which is added if it is not there.
  ProcessId process(std::int64_t pid);
  // A sample, at the end of the thread's time so far unless a time is given.
  void sample(ThreadId thread, StackId stack, std::int64_t weight_ns) {
    sample(thread, stack, weight_ns, Activity::kRunning);
  }
  void sample(ThreadId thread, StackId stack, std::int64_t weight_ns, Activity activity);
  void sample_at(std::int64_t time_ns, ThreadId thread, StackId stack, std::int64_t weight_ns, Activity activity);
  // A part of the file speaks of something that is not in it: that is told as a drop.
  void miss(std::string_view what);
  // Gives the profile away. Weights that nobody can have spent are an error: negative ones, and more than a century.
  Result<profile::Profile> take();

  profile::Profile profile;

 private:
  boost::unordered_flat_map<std::string, ThreadId> threads_;
  boost::unordered_flat_map<std::int64_t, ProcessId> processes_;
  std::int64_t weight_left_;
  bool has_negative_ = false;
};

// Tells in the facts how often samples were taken, if the time between two of them is one.
void set_period(profile::Profile& profile, double period_ns);

// What ForeignProfile::miss is told where a number leads to no row of a table.
inline constexpr std::string_view kMissingFrames = "frames that are not in the file";
inline constexpr std::string_view kMissingStacks = "stacks that are not in the file";

inline constexpr double kMicrosecond = 1'000;  // in nanoseconds
// A number of nanoseconds from a number of units; 0 for what is no time. Negative ones stay: some formats have them.
std::int64_t nanoseconds_of(double value, double unit_ns);
// Likewise of a weight that a file tells: what is too much stays too much, for take() to refuse it.
std::int64_t weight_of(double value, double unit_ns);

}  // namespace plimsoll::formats
