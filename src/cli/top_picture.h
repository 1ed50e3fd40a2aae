// cli/top_picture.h: everything that a screen of `plimsoll top` says, at one moment.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/line_report.h"
#include "cli/thread_report.h"
#include "cli/top_state.h"
#include "os/process.h"
#include "profile/live_window.h"

namespace plimsoll::cli {

// Plain data, so that a test can draw one.
struct TopPicture {
  profile::LiveView live;
  profile::SampleTable all_samples;  // of the window; live.profile has those of them that are asked for
  std::vector<ThreadRow> threads;    // of all samples, those with the most CPU time first
  std::int32_t pid = 0;
  std::string command;
  std::string python;     // its version
  std::string directory;  // its current one; paths below it are shown relative to it
  double rate_hz = 0;
  std::optional<os::Usage> usage;     // none: it has ended
  std::optional<double> cpu_percent;  // of one CPU
};

// Fills in what follows from `live`, which has all samples then.
void complete(TopPicture& picture);

// Lets live.profile have the samples that the state asks for. A filter is a matter of rows, but of a flame graph it is
// one of stacks.
void select_samples(TopPicture& picture, const TopState& state);

// "parser.py:12", as shown.
std::string place_in(const TopPicture& picture, StringId file, std::uint32_t line);

// Whether the filter, if there is one, lets through what is called and stands so; a line by any function on it.
bool is_asked_for(std::string_view name, std::string_view place, const TopState& state);
bool is_asked_for(const TopPicture& picture, FunctionId function, const TopState& state);
bool is_asked_for(const TopPicture& picture, StringId file, const LineWeight& line, const TopState& state);

// What a thread does, in a word; "ended" if it is not there any more.
std::string_view state_of(const TopPicture& picture, const profile::LiveThread& thread);

// Of the looks at the lock, those at which it was held; none where there is no lock, or none was taken.
std::optional<double> gil_percent(const TopPicture& picture);

}  // namespace plimsoll::cli
