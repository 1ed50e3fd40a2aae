// formats/austin_facts.h: what Austin tells of a session, in its text files ("# name: value") and in its binary ones.
#pragma once

#include <string_view>

#include "formats/foreign.h"
#include "profile/profile.h"

namespace plimsoll::formats {

// What Austin puts onto a stack, as it is called here.
inline constexpr std::string_view kAustinCollector = "[gc]";
inline constexpr std::string_view kAustinInvalidFrame = "[invalid frame]";

// A frame as Austin tells of it. Native code has its address in place of a file where no symbol was found: that is
// where it ran, not what it is called.
ForeignFrame austin_frame(ForeignFrame frame);

// Takes facts one by one, and keeps those that the reading of samples depends on.
class AustinFacts {
 public:
  void take(std::string_view name, std::string_view value, profile::Profile& profile);
  // To be called when all samples are there.
  void finish(profile::Profile& profile) const;

  // Whether samples have all numbers: time, idle or not, memory.
  [[nodiscard]] bool is_full() const { return is_full_; }
  // Whether samples have a time. Those of mode "memory" have bytes only.
  [[nodiscard]] bool has_time() const { return has_time_; }
  // Whether Austin has told how long the session was, which it does at its end.
  [[nodiscard]] bool is_ended() const { return duration_us_ > 0; }

 private:
  bool is_full_ = false;
  bool has_time_ = true;
  std::int64_t duration_us_ = 0;
};

}  // namespace plimsoll::formats
