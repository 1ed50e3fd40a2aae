// cli/top_state.h: what `plimsoll top` is asked to show, and what keys do to it.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/result.h"
#include "cli/keys.h"
#include "cli/render_flat.h"

namespace plimsoll::cli {

// What the screen is about.
enum class TopSubject : std::uint8_t { kFunctions, kLines, kFlame, kThreads };
// Which time counts: that on a CPU, or all of it.
enum class TopTime : std::uint8_t { kCpu, kWall };

// The words for them on the command line; an error lists them.
Result<TopSubject> parse_top_subject(std::string_view word);
Result<TopTime> parse_top_time(std::string_view word);
Result<SortBy> parse_top_sort(std::string_view word);

// What a person has chosen.
struct TopState {
  TopSubject subject = TopSubject::kFunctions;
  TopTime time = TopTime::kCpu;
  SortBy sort = SortBy::kSelf;
  std::int64_t window_ns = 5'000'000'000;
  std::size_t first_row = 0;  // the first that is shown
  std::string filter;
  std::string filter_before;  // while a new one is typed
  bool is_typing = false;
  bool is_paused = false;
  bool is_help = false;
};

// The lengths that + and - choose from.
inline constexpr std::array<std::int64_t, 6> kTopWindows = {1'000'000'000,  2'000'000'000,  5'000'000'000,
                                                            10'000'000'000, 30'000'000'000, 60'000'000'000};

// Whether to go on.
enum class TopWish : std::uint8_t { kGoOn, kQuit };

// What a key does. `page`: rows on a screen.
TopWish press(TopState& state, const Key& key, std::size_t page);

}  // namespace plimsoll::cli
