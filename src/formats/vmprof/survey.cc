// formats/vmprof/survey.cc: reads all records, keeps all but the stacks.
#include "formats/vmprof/survey.h"

#include <algorithm>

namespace plimsoll::formats::vmprof {
namespace {

// The samples of each thread so far.
using ThreadCounts = boost::unordered_flat_map<std::int64_t, std::int64_t>;

void add_stack(Survey& survey, ThreadCounts& counts, const Record& record) {
  if (record.time_ns) {
    survey.first_time_ns = std::min(survey.first_time_ns.value_or(*record.time_ns), *record.time_ns);
    survey.last_time_ns = std::max(survey.last_time_ns.value_or(*record.time_ns), *record.time_ns);
  }
  if (record.marker != Marker::kStack) return;
  survey.samples += record.count;
  std::int64_t& of_thread = counts[record.thread];
  of_thread += record.count;
  survey.most_of_a_thread = std::max(survey.most_of_a_thread, of_thread);
}

void add_name(Survey& survey, const Record& record) {
  // Some writers name line numbers, negated, as if they were native code.
  if (record.marker == Marker::kNativeName && record.id <= 0) return;
  std::string_view& known = survey.names[record.id];
  known = std::max(known, record.name);
}

void add(Survey& survey, ThreadCounts& counts, const Record& record) {
  switch (record.marker) {
    case Marker::kStack:
    case Marker::kAllocationStack: return add_stack(survey, counts, record);
    case Marker::kName:
    case Marker::kNativeName: return add_name(survey, record);
    case Marker::kMeta: survey.meta.emplace_back(record.name, record.value); return;
    case Marker::kStartTime: survey.start_us = record.time_us; return;
    case Marker::kTrailer:
      survey.end_us = record.time_us;
      survey.maps = record.value;
      return;
    default: return;
  }
}

}  // namespace

std::string_view Survey::meta_value(std::string_view name) const {
  const auto found = std::find_if(meta.begin(), meta.end(), [&](const auto& entry) { return entry.first == name; });
  return found == meta.end() ? std::string_view{} : found->second;
}

std::optional<std::int64_t> Survey::elapsed_us() const {
  if (!start_us || !end_us || *end_us < *start_us) return std::nullopt;
  return *end_us - *start_us;
}

Survey survey(Input input, Layout layout) {
  Survey result;
  ThreadCounts counts;
  RecordReader reader(input, layout);
  for (Record record; reader.next(record);) add(result, counts, record);
  result.mode = reader.mode();
  result.period_us = std::max<std::int64_t>(0, reader.period_us());
  result.has_counts = reader.has_counts();
  result.ending = reader.ending();
  result.end_position = reader.position();
  return result;
}

}  // namespace plimsoll::formats::vmprof
