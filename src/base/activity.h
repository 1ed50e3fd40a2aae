// base/activity.h: what a thread does while it is looked at.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace plimsoll {

// What a thread did with the time that a sample stands for. All but kRunning are time off the CPU. The numbers are
// part of the .plim format.
enum class Activity : std::uint8_t {
  kRunning,  // on a CPU
  kReady,    // it could run, but no CPU was free
  kGil,      // waits for the global interpreter lock
  kLock,     // waits for another lock, a condition, or a thread's end
  kIo,       // waits for a file, a socket, a pipe, or for any of several
  kSleep,    // sleeps for a time that it chose
  kOther,    // waits for something else: a child process, a page from disk
};
inline constexpr std::size_t kActivityCount = 7;

// One word each, as options and JSON have them.
inline constexpr std::array<std::string_view, kActivityCount> kActivityNames = {"running", "ready", "gil",  "lock",
                                                                                "io",      "sleep", "other"};
constexpr std::string_view text(Activity activity) { return kActivityNames[static_cast<std::size_t>(activity)]; }

// The activity of that name; none if there is none.
constexpr std::optional<Activity> activity_named(std::string_view name) {
  for (std::size_t i = 0; i < kActivityCount; ++i)
    if (kActivityNames[i] == name) return static_cast<Activity>(i);
  return std::nullopt;
}

}  // namespace plimsoll
