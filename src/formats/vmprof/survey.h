// formats/vmprof/survey.h: a first pass over a vmprof profile. Names may follow the samples that need them, and how
// long the program ran is known at the end only.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/vmprof/records.h"

namespace plimsoll::formats::vmprof {

// All of a file but its samples. Views point into the file's bytes.
struct Survey {
  Mode mode;
  std::int64_t period_us = 0;
  // Where a file names an id twice the greater text holds, as in vmprof's own reader: "py:" beats "n:".
  boost::unordered_flat_map<std::int64_t, std::string_view> names;
  std::vector<std::pair<std::string_view, std::string_view>> meta;
  std::optional<std::int64_t> start_us, end_us;             // since 1970
  std::string_view maps;                                    // version 0: the text of /proc/self/maps
  std::int64_t samples = 0;                                 // stacks, each as often as it counts
  std::int64_t most_of_a_thread = 0;                        // samples
  std::optional<std::int64_t> first_time_ns, last_time_ns;  // on the clock of the samples
  bool has_counts = false;  // samples have a count, also where they have a time: then the time is what was used
  RecordReader::Ending ending = RecordReader::Ending::kNone;
  std::size_t end_position = 0;  // of the bytes that were understood

  // The value of a meta record; empty if there is none.
  [[nodiscard]] std::string_view meta_value(std::string_view name) const;
  // From start to end; none if either is unknown or the clock was set back meanwhile.
  [[nodiscard]] std::optional<std::int64_t> elapsed_us() const;
};

Survey survey(Input input, Layout layout);

}  // namespace plimsoll::formats::vmprof
