// cli/session_facts.cc: sums over a session's tables.
#include "cli/session_facts.h"

#include <algorithm>
#include <charconv>

#include "cli/summary.h"
#include "cli/units.h"

namespace plimsoll::cli {
namespace {

std::vector<MarkerSum> sum_markers(const profile::Profile& profile) {
  std::vector<MarkerSum> sums;
  for (const profile::Marker& marker : profile.markers) {
    auto found = std::find_if(sums.begin(), sums.end(), [&](const MarkerSum& sum) { return sum.name == marker.name; });
    if (found == sums.end()) found = sums.insert(sums.end(), MarkerSum{marker.name});
    ++found->count;
    found->total_ns += marker.duration_ns;
    found->longest_ns = std::max(found->longest_ns, marker.duration_ns);
  }
  return sums;
}

std::vector<CounterSum> sum_counters(const profile::Profile& profile) {
  std::vector<CounterSum> sums;
  for (const profile::Counter& counter : profile.counters) {
    if (counter.value.empty()) continue;
    const auto [least, most] = std::minmax_element(counter.value.begin(), counter.value.end());
    sums.push_back(
        {counter.name, counter.unit, counter.process, counter.value.size(), *least, *most, counter.value.back()});
  }
  return sums;
}

}  // namespace

std::int64_t meta_number(const profile::Profile& profile, std::string_view name) {
  const std::string_view digits = profile.meta_value(name);
  std::int64_t value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return value;
}

SessionFacts session_facts(const profile::Profile& profile, std::uint64_t file_bytes) {
  SessionFacts facts;
  const std::size_t samples = profile.samples.size();
  facts.sampled_cpu_ns = profile.sampled_cpu_ns();
  facts.waited_ns = profile.sampled_ns() - facts.sampled_cpu_ns;
  facts.covered_percent = percent_of(facts.sampled_cpu_ns, profile.process_cpu_ns);
  facts.child_cpu_ns = meta_number(profile, "child_cpu_ns");
  facts.delivered_hz = delivered_hz(profile.running_samples(), facts.sampled_cpu_ns);
  for (const profile::Drop& drop : profile.drops) {
    if (is_lost(drop)) facts.dropped += drop.count;
    facts.dropped_cpu_ns += drop.cpu_ns;
  }
  facts.file_bytes = file_bytes;
  if (samples > 0) facts.bytes_per_sample = static_cast<double>(file_bytes) / static_cast<double>(samples);
  facts.markers = sum_markers(profile);
  facts.counters = sum_counters(profile);
  return facts;
}

}  // namespace plimsoll::cli
