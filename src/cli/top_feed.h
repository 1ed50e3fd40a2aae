// cli/top_feed.h: looks at a process on a thread of its own, and makes pictures of it.
#pragma once

#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "base/unique_fd.h"
#include "cli/top_picture.h"
#include "remote/session.h"

namespace plimsoll::cli {

// A session that goes on while somebody else draws: a slow terminal must not make looks late.
class TopFeed {
 public:
  // Begins at once. Signals should be blocked, so that they come to others.
  TopFeed(remote::Target target, const remote::SessionSettings& settings);
  TopFeed(const TopFeed&) = delete;
  TopFeed& operator=(const TopFeed&) = delete;
  ~TopFeed() { (void)stop(); }

  // Can be read from once the session has ended by itself: the process has, or something failed.
  [[nodiscard]] int ended() const { return ended_.get(); }
  // What the last so many nanoseconds were like. After select_samples it can be rendered.
  TopPicture picture(std::int64_t window_ns);
  // This process was stopped, and goes on: what was used meanwhile is nobody's.
  void begin_anew();
  // Ends it; the outcome. Also after it has ended by itself.
  Result<remote::SessionResult> stop();

 private:
  void look();
  // As long as it looks, and not only as pictures are made: in a pause there are none, and then one of the last
  // seconds.
  void note_cpu();
  std::optional<double> cpu_percent(const TopPicture& picture, std::int64_t now_ns);

  const remote::Target target_;
  const remote::SessionSettings settings_;
  profile::LiveWindow window_;
  TopPicture facts_;  // what is the same in all pictures
  std::mutex cpu_mutex_;
  std::deque<std::pair<std::int64_t, std::int64_t>> cpu_ns_;  // by CLOCK_MONOTONIC
  UniqueFd stop_, ended_;
  Result<remote::SessionResult> result_;
  std::thread thread_;
};

}  // namespace plimsoll::cli
