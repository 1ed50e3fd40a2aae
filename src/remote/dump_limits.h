// remote/dump_limits.h: how much is shown of a process, however it lies about itself.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstddef>
#include <cstdint>

#include "remote/dump.h"

namespace plimsoll::remote {

inline constexpr const char* kTooManyFrames = "its frames are left out: all threads together have more than are shown";

// What the threads of one dump have taken so far.
class DumpLimits {
 public:
  // Of all threads together: each frame has names.
  static constexpr std::size_t kMostFrames = 500'000;
  // Of one thread, which has one in each interpreter that it has been in.
  static constexpr std::size_t kMostStates = 64;

  // Whether one more state of a thread is looked at.
  bool takes_state_of(Tid thread) { return ++states_[static_cast<std::int32_t>(thread)] <= kMostStates; }
  // Whether one more thread may have frames, be they as many as a thread may have.
  [[nodiscard]] bool has_room() const { return frames_ < kMostFrames; }
  void count(const DumpedThread& thread) { frames_ += thread.frames.size() + thread.native_frames.size(); }

 private:
  boost::unordered_flat_map<std::int32_t, std::size_t> states_;
  std::size_t frames_ = 0;
};

}  // namespace plimsoll::remote
