// cli/top_loop.h: the loops of `plimsoll top`: pictures on a screen, and pictures into a pipe.
#pragma once

#include <sys/signalfd.h>

#include <csignal>
#include <cstdint>
#include <optional>

#include "base/unique_fd.h"
#include "cli/console.h"
#include "cli/render_top.h"
#include "cli/screen.h"
#include "cli/top_feed.h"

namespace plimsoll::cli {

// The signals that matter to a screen come as events while this lives, on all threads that begin meanwhile.
class TopSignals {
 public:
  TopSignals();
  TopSignals(const TopSignals&) = delete;
  TopSignals& operator=(const TopSignals&) = delete;
  // Those that wait still have been obeyed by then: a terminal that is gone sends several.
  ~TopSignals();

  // Can be read from when there is one.
  [[nodiscard]] int event() const { return event_.get(); }
  // The next one; 0: none has come.
  [[nodiscard]] int next() const;
  [[nodiscard]] const sigset_t& mask_before() const { return before_; }

  // Whether a signal asks for the end.
  static bool is_end(int signal);

 private:
  sigset_t before_{};
  UniqueFd event_;
};

// Why a loop has ended.
enum class TopEnd : std::uint8_t { kAsked, kProcessEnded };

// What the loops have in common. All must outlive them.
struct TopShow {
  TopFeed& feed;
  const TopSignals& signals;
  const TopSources& sources;
  std::int64_t interval_ns = 1'000'000'000;
};

// Shows pictures and obeys keys.
TopEnd run_screen(const TopShow& show, Screen& screen, TopState& state);

// Prints a picture every interval, until nobody reads any more.
Result<TopEnd> run_plain(const TopShow& show, Console& console, const TopState& state, const Page& page,
                         std::size_t limit);

// Waits; none if the time has passed, else why the wait has ended earlier.
std::optional<TopEnd> wait_quietly(const TopShow& show, std::int64_t until_ns);

}  // namespace plimsoll::cli
