// profile/filter.h: the part of a profile that a question is about.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "profile/profile.h"

namespace plimsoll::profile {

// A condition on a tag of a sample. A pattern is matched as a whole, with * for any text and ? for any character,
// without regard to ASCII case. An empty pattern stands for samples that do not have the tag, or have it without a
// value.
struct TagCondition {
  std::string name;
  std::string pattern = "*";

  // From NAME or NAME=PATTERN.
  static TagCondition parse(std::string_view words);
};

// Conditions that a sample must meet, all of them. Empty texts match everything. Texts are matched as substrings
// without regard to ASCII case.
struct Filter {
  std::string thread = {};                 // in the thread's name, or equal to its kernel id in decimal
  std::string function = {};               // in the name of any function on the stack
  std::string file = {};                   // in the file of any function on the stack
  std::vector<Activity> activities = {};   // what the thread was doing: one of these; none = any
  std::vector<TagCondition> tags = {};     // all of these
  std::vector<std::uint8_t> domains = {};  // of allocations: from one of these allocators; none = any
  std::int64_t from_ns = 0;                // time since the start of the profile: from_ns <= time < to_ns
  std::int64_t to_ns = std::numeric_limits<std::int64_t>::max();
};

// Whether a text holds another one, without regard to ASCII case.
bool contains(std::string_view text, std::string_view part);

// A stretch of time in which some threads were looked at, by the kernel's ids.
struct ThreadSpan {
  std::int64_t from_ns = 0, to_ns = 0;  // since the start of the profile: from_ns <= time < to_ns
  std::vector<std::int64_t> os_tids;
};
// Keeps the samples of any of these. Of a wait the part that lies in them; time that was computed is that of its end.
void keep_spans(Profile& profile, const std::vector<ThreadSpan>& spans);

// Keeps the samples of `profile` that match, with all tables as they are. Of waits, and of samples of other tools, both
// of which may be long, what is within the time asked for stays. Totals of the session
// (process_cpu_ns, drops) are not changed: they describe the session, not the selection.
void filter(Profile& profile, const Filter& conditions);

}  // namespace plimsoll::profile
