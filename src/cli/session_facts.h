// cli/session_facts.h: what `plimsoll info` tells: the facts of a session, computed once, for text and for JSON.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/terminal.h"
#include "profile/profile.h"

namespace plimsoll::cli {

// All markers of one name.
struct MarkerSum {
  std::string name;
  std::uint64_t count = 0;
  std::int64_t total_ns = 0;
  std::int64_t longest_ns = 0;
};

// One counter over the session.
struct CounterSum {
  std::string name;
  std::string unit;
  ProcessId process;
  std::size_t points = 0;
  std::int64_t least = 0;
  std::int64_t most = 0;
  std::int64_t last = 0;
};

// Everything about a session that its profile does not store but implies.
struct SessionFacts {
  std::int64_t sampled_cpu_ns = 0;
  std::int64_t waited_ns = 0;     // of samples of threads that were not running
  double covered_percent = 0;     // of the CPU time of the process, by samples; 0 if that time is unknown
  std::int64_t child_cpu_ns = 0;  // CPU time of child processes that ended meanwhile, recorded or not
  double delivered_hz = 0;        // samples per second of CPU time
  std::uint64_t dropped = 0;      // samples that were lost, for all reasons
  std::int64_t dropped_cpu_ns = 0;
  std::uint64_t file_bytes = 0;
  double bytes_per_sample = 0;
  std::vector<MarkerSum> markers;    // in order of first appearance
  std::vector<CounterSum> counters;  // those with a value
};

SessionFacts session_facts(const profile::Profile& profile, std::uint64_t file_bytes);
// A fact of the recording that is a number, in the unit of its name; 0 if the profile does not tell it.
std::int64_t meta_number(const profile::Profile& profile, std::string_view name);

// A line per fact, grouped.
std::string render_info(const profile::Profile& profile, const SessionFacts& facts, std::string_view path,
                        const Page& page);

}  // namespace plimsoll::cli
