// cli/summary.h: the lines above and below a report: what the numbers are, what was chosen, what is missing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cli/terminal.h"
#include "profile/filter.h"
#include "profile/profile.h"

namespace plimsoll::cli {

// What a filter left of a session.
struct Selection {
  profile::Filter conditions;
  std::int64_t session_ns = 0;  // of all samples, before the filter
  std::int64_t session_cpu_ns = 0;
  std::uint64_t session_samples = 0;
  std::uint64_t running_samples = 0;
  std::int64_t shown_ns = 0;  // of the samples that are left
  std::uint64_t shown_samples = 0;
};

// The selection of everything.
Selection whole_session(const profile::Profile& profile);
// Applies the conditions to the profile.
Selection select(profile::Profile& profile, const profile::Filter& conditions);
// Whether there is any condition.
bool is_everything(const profile::Filter& conditions);
// The conditions in words: `thread "worker", function "parse", from 1.5 s to 2 s`.
std::string in_words(const profile::Filter& conditions);

// Samples per second of CPU time, as far as samples cover it; 0 without samples.
double delivered_hz(std::uint64_t samples, std::int64_t cpu_ns);
// "Python 3.12.4": the value of a meta entry with a word before it, unless it says so itself. Empty if there is none.
std::string python_of(const profile::Profile& profile);
// The rate that was asked for, in Hz, as people read it: "1010.1" of a period of 0.99 ms. Empty if that is not known.
std::string asked_hz(const profile::Profile& profile);
// PyPy does not tell them apart.
bool are_threads_told_apart(const profile::Profile& profile);
// "3 threads", as far as they are told apart.
std::string count_of_threads(const profile::Profile& profile);
// One drop: "12 samples (ring full), 12 ms of CPU time".
std::string in_words(const profile::Drop& drop);
// Whether it is of samples that are not there, not of such as lack some of their frames.
bool is_lost(const profile::Drop& drop);

// Two or three lines: session, program, and the selection if there is one.
std::string heading(const profile::Profile& profile, const Selection& selection, const Page& page);
// Why a profile is not complete; of several processes it is not known which one.
std::string early_end(const profile::Profile& profile);
// That it does, as a line below what is shown; empty of a profile that is whole.
std::string incomplete_note(const profile::Profile& profile);
// An error's words: that a file has no allocations, and why.
std::string no_allocations(const profile::Profile& profile, std::string_view file);
// Likewise: that none is left which a view could show.
std::string no_allocation_left(const profile::Profile& profile, const profile::Filter& conditions,
                               std::string_view file);
// A line for each thing that the numbers above do not show: drops, CPU time without samples, a file that ends early.
// Empty for a perfect profile.
std::string caveats(const profile::Profile& profile, const Selection& selection, const Page& page);

// Why a selection is empty, in a sentence: the profile is, or the filter does not match; then with what could have.
std::string nothing_to_show(const profile::Profile& profile, const Selection& selection, std::string_view file);

}  // namespace plimsoll::cli
