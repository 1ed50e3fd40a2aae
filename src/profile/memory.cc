#include "profile/memory.h"

#include <algorithm>
#include <array>
#include <boost/unordered/unordered_flat_map.hpp>
#include <charconv>
#include <cmath>
#include <string>

#include "base/poisson.h"
#include "capture/raw_allocation.h"
#include "profile/peak_accounts.h"
#include "profile/process_ends.h"
#include "profile/stack_totals.h"

namespace plimsoll::profile {
namespace {

// By capture::AllocationDomain.
constexpr std::array<const char*, 5> kDomainNames = {"object", "memory", "raw", "malloc", "mmap"};

constexpr double kZ = 1.959964;     // of the normal distribution, 95 %
constexpr double kBelow = 0.025;    // the chance that the true value is below an interval
constexpr double kNone = 3.688879;  // sample points that may have been passed over, to 97.5 %: -ln 0.025

// Of how many blocks like it a row's block tells.
double weight_of(const AllocationRow& row, std::uint64_t distance) {
  return distance == 0 ? 1 : 1 / chance_of_sample(row.chance_bytes, distance);
}

// Wilson and Hilferty's approximation of the quantile of a chi-square distribution with 2n degrees of freedom, halved.
double poisson_bound(double n, double z) {
  if (n <= 0) return 0;
  const double root = 1 - 1 / (9 * n) + z / (3 * std::sqrt(n));
  return root <= 0 ? 0 : n * root * root * root;
}

// How far above its mean a normal variable is with this small chance, in standard deviations.
double quantile_above(double chance) {
  double z = std::sqrt(-2 * std::log(chance));
  for (int i = 0; i < 8; ++i) {
    const double above = std::erfc(z / std::sqrt(2.0)) / 2;
    z += (std::log(above) - std::log(chance)) * above * std::exp(z * z / 2) * std::sqrt(2 * M_PI);
  }
  return z;
}

// At the end means that of its process.
bool is_alive_at(const AllocationRow& row, std::int64_t time_ns, const ProcessEnds& ends) {
  if (time_ns == MemoryQuestion::kEnd) return row.freed_ns == AllocationRow::kAlive;
  return row.time_ns <= time_ns && ends.of_blocks(row) > time_ns;
}

// Whether it is known how long blocks lived: sums of an exact recording say less.
bool has_lifetimes(const Profile& profile) { return !is_in_sums(profile); }

// Of a block that has come to its end: it was by realloc.
bool was_moved(const AllocationRow& row, const Profile& profile) {
  return profile.has_events ? !row.is_temporary : row.is_moved;
}

bool is_soon_freed(const AllocationRow& row, const MemoryQuestion& question, const Profile& profile) {
  if (!has_lifetimes(profile)) return row.is_temporary;
  if (was_moved(row, profile)) return false;
  return row.freed_ns != AllocationRow::kAlive && row.freed_ns - row.time_ns <= question.within_ns;
}

bool is_of_view(const AllocationRow& row, const MemoryQuestion& question, std::int64_t peak_ns, const Profile& profile,
                const ProcessEnds& ends) {
  switch (question.view) {
    case MemoryView::kAllocated: return true;
    case MemoryView::kLive: return is_alive_at(row, question.at_ns, ends);
    case MemoryView::kPeak: return is_alive_at(row, peak_ns, ends);
    case MemoryView::kLeaks: return row.time_ns >= question.from_ns && is_alive_at(row, question.at_ns, ends);
    case MemoryView::kTemporary: return is_soon_freed(row, question, profile);
  }
  return false;
}

// A sum that nothing has been added to: what no sample tells of may be there all the same.
MemoryEstimate nothing_of(const Profile& profile, const Peak& peak = {}) {
  MemoryEstimate nothing;
  nothing.distance = profile.allocation_distance;
  nothing.looks = peak.looks;
  return nothing;
}

// The one that a view is of, if it is of one.
Peak peak_asked_for(const Profile& profile, const MemoryQuestion& question) {
  return question.view == MemoryView::kPeak ? peak_of(profile) : Peak{};
}

std::vector<MemoryRow> flat_of(const Profile& profile, std::vector<MemoryEstimate> by_stack,
                               const MemoryEstimate& nothing) {
  std::vector<MemoryRow> rows(profile.functions.size(), MemoryRow{{}, nothing, nothing});
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i].function = FunctionId{i};
  for (std::size_t i = 0; i < by_stack.size(); ++i)
    rows[profile.leaf_function(StackId{i}).index()].self.add(by_stack[i]);
  add_up(profile.stacks, by_stack);
  const auto row_of = [&](FrameId frame) { return std::size_t{profile.frames[frame].function.index()}; };
  each_outermost(profile.stacks, rows.size(), row_of,
                 [&](StackId stack, std::size_t row) { rows[row].total.add(by_stack[stack.index()]); });
  std::erase_if(rows, [](const MemoryRow& row) { return row.total.samples == 0; });
  std::stable_sort(rows.begin(), rows.end(), [](const MemoryRow& a, const MemoryRow& b) {
    return a.self.bytes != b.self.bytes ? a.self.bytes > b.self.bytes : a.total.bytes > b.total.bytes;
  });
  return rows;
}

}  // namespace

const char* domain_name(std::uint8_t domain) { return domain < kDomainNames.size() ? kDomainNames[domain] : "?"; }

std::optional<std::uint8_t> domain_named(std::string_view name) {
  const auto found = std::find(kDomainNames.begin(), kDomainNames.end(), name);
  if (found == kDomainNames.end()) return std::nullopt;
  return static_cast<std::uint8_t>(found - kDomainNames.begin());
}

bool is_pythons(std::uint8_t domain) { return domain < static_cast<std::uint8_t>(capture::AllocationDomain::kMalloc); }

void MemoryEstimate::add(const AllocationRow& row, std::uint64_t mean_distance) {
  distance = mean_distance;
  const double weight = weight_of(row, distance);
  const auto size = static_cast<double>(row.size);
  bytes += size * weight;
  blocks += static_cast<double>(row.blocks) * weight;
  variance += size * size * (weight - 1) * weight;
  skew += size * size * size * (weight - 1) * weight * (2 * weight - 1);
  samples += row.blocks;
}

void MemoryEstimate::add(const MemoryEstimate& other) {
  bytes += other.bytes;
  blocks += other.blocks;
  variance += other.variance;
  skew += other.skew;
  samples += other.samples;
  distance = std::max(distance, other.distance);
  looks = std::max(looks, other.looks);
}

double MemoryEstimate::missed_at_most() const {
  // Of blocks that are nearly all samples few are missed, each as large as they are: by the variance alone the interval
  // ended too early in one trial of ten. (Cornish and Fisher's quantile; where hardly any is missed ever, it knows
  // nothing.)
  constexpr double kRare = 0.025318;  // -ln 0.975: that many are missed on average where none is, to 97.5 %
  if (variance * variance * variance <= kRare * skew * skew) return 0;
  return kZ * std::sqrt(variance) + skew / variance * (kZ * kZ - 1) / 6;
}

Interval MemoryEstimate::interval() const {
  if (distance == 0) return {bytes, bytes};
  // However sure the blocks are that were seen, there may be small ones beside them, none of which was.
  const double at_least = bytes + kNone * static_cast<double>(distance);
  if (variance <= 0 || bytes <= 0) return {bytes, at_least};
  const double worth = bytes * bytes / variance;  // samples of equal weight that would be as sure
  // Each of the estimates was as likely to be too high by chance, and the one that was most is looked at.
  const double below = looks > 1 ? quantile_above(kBelow / static_cast<double>(looks)) : kZ;
  const double above = bytes * poisson_bound(worth + 1, kZ) / worth;
  return {bytes * poisson_bound(worth, -below) / worth, std::max({above, at_least, bytes + missed_at_most()})};
}

std::uint64_t lost_allocations(const Profile& profile) {
  std::uint64_t lost = 0;
  for (const Drop& drop : profile.drops)
    if (drop.reason == capture::text(capture::DropReason::kAllocation)) lost += drop.count;
  return lost;
}

namespace {

std::vector<const AllocationRow*> allocations_of(const Profile& profile, const MemoryQuestion& question,
                                                 const Peak& peak) {
  std::vector<const AllocationRow*> chosen;
  if (profile.is_exact && question.view == MemoryView::kPeak) {
    for (const AllocationRow& row : profile.peak_allocations) chosen.push_back(&row);
    return chosen;
  }
  const ProcessEnds ends(profile);
  for (const AllocationRow& row : profile.allocations)
    if (is_of_view(row, question, peak.at_ns, profile, ends)) chosen.push_back(&row);
  return chosen;
}

}  // namespace

std::vector<const AllocationRow*> allocations_of(const Profile& profile, const MemoryQuestion& question) {
  return allocations_of(profile, question, peak_asked_for(profile, question));
}

MemoryReport memory_report(const Profile& profile, const MemoryQuestion& question) {
  MemoryReport report;
  const Peak peak = peak_asked_for(profile, question);
  report.at_ns = question.view == MemoryView::kPeak ? peak.at_ns : std::min(question.at_ns, profile.end_ns);
  const MemoryEstimate nothing = nothing_of(profile, peak);
  report.all = report.no_stack = nothing;
  report.stack.resize(profile.stacks.size(), nothing);
  for (const AllocationRow* at : allocations_of(profile, question, peak)) {
    const AllocationRow& row = *at;
    (row.stack.is_none() ? report.no_stack : report.stack[row.stack.index()]).add(row, profile.allocation_distance);
    report.all.add(row, profile.allocation_distance);
  }
  report.flat = flat_of(profile, report.stack, nothing);
  return report;
}

bool is_in_sums(const Profile& profile) { return profile.is_exact && !profile.has_events; }

std::int64_t sums_taken_ns(const Profile& profile, std::int64_t time_ns) {
  std::int64_t last = 0;
  for (const AllocationRow& row : profile.allocations)
    for (const std::int64_t taken_ns : {row.time_ns, row.freed_ns})
      if (taken_ns <= time_ns) last = std::max(last, taken_ns);
  return last;
}

namespace {

// Estimated bytes by function, and the function with most.
class ByFunction {
 public:
  void add(FunctionId function, double bytes) {
    if (!function.is_none()) bytes_[function.index()] += bytes;
  }
  [[nodiscard]] FunctionId most() const {
    const auto found = std::max_element(bytes_.begin(), bytes_.end(), [](const auto& a, const auto& b) {
      return a.second != b.second ? a.second < b.second : a.first > b.first;
    });
    return found == bytes_.end() ? FunctionId{} : FunctionId{std::size_t{found->first}};
  }
  [[nodiscard]] double bytes_of(FunctionId function) const {
    const auto found = function.is_none() ? bytes_.end() : bytes_.find(function.index());
    return found == bytes_.end() ? 0 : found->second;
  }

 private:
  boost::unordered_flat_map<std::uint32_t, double> bytes_;
};

double bytes_of(const Profile& profile, const AllocationRow& row) {
  return static_cast<double>(row.size) * weight_of(row, profile.allocation_distance);
}

// What was alive at the peak of an exact recording, by type as far as that is known. Its rows are sums of stacks, and
// types were read at the end: so of what was there before the peak, and was never freed.
AllocationTable peak_with_types(const Profile& profile) {
  AllocationTable rows = profile.peak_allocations;
  boost::unordered_flat_map<BlockSource, std::size_t, boost::hash<BlockSource>> row_of;
  for (std::size_t i = 0; i < rows.size(); ++i)
    row_of.try_emplace(BlockSource{rows[i].thread, rows[i].stack, rows[i].domain}, i);
  for (const AllocationRow& living : profile.allocations) {
    const bool is_told = living.freed_ns == AllocationRow::kAlive && !living.type.is_none();
    if (!is_told || living.time_ns > profile.peak_ns.value_or(0)) continue;
    const auto found = row_of.find(BlockSource{living.thread, living.stack, living.domain});
    if (found == row_of.end()) continue;
    AllocationRow& rest = rows[found->second];
    // (Times of events are rounded down. What came right after the peak may look as if it had been there.)
    const bool is_all = living.blocks >= rest.blocks || living.size >= rest.size;
    AllocationRow typed = is_all ? rest : living;
    typed.type = living.type;
    rest.blocks -= typed.blocks;
    rest.size -= typed.size;
    if (typed.blocks > 0) rows.push_back(typed);
  }
  std::erase_if(rows, [](const AllocationRow& row) { return row.blocks == 0 && row.size == 0; });
  return rows;
}

}  // namespace

std::vector<TypeRow> memory_by_type(const Profile& profile, const MemoryQuestion& question) {
  const Peak peak = peak_asked_for(profile, question);
  const bool is_exact_peak = profile.is_exact && question.view == MemoryView::kPeak;
  const AllocationTable at_peak = is_exact_peak ? peak_with_types(profile) : AllocationTable{};
  std::vector<const AllocationRow*> chosen;
  for (const AllocationRow& row : at_peak) chosen.push_back(&row);
  if (!is_exact_peak) chosen = allocations_of(profile, question, peak);
  const MemoryEstimate nothing = nothing_of(profile, peak);
  std::vector<TypeRow> rows;
  std::vector<ByFunction> functions;
  boost::unordered_flat_map<std::uint64_t, std::size_t> row_of;
  for (const AllocationRow* at : chosen) {
    const AllocationRow& row = *at;
    const bool is_object = row.domain == 0;
    const std::uint64_t key = std::uint64_t{row.type.is_none() ? 0U : row.type.index() + 1U} << 8U | row.domain;
    const auto [position, inserted] = row_of.try_emplace(key, rows.size());
    if (inserted) {
      rows.emplace_back();
      rows.back().type = row.type;
      rows.back().is_object = is_object;
      rows.back().domain = row.domain;
      rows.back().all = nothing;
      functions.emplace_back();
    }
    rows[position->second].all.add(row, profile.allocation_distance);
    functions[position->second].add(profile.leaf_function(row.stack), bytes_of(profile, row));
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i].mostly = functions[i].most();
    rows[i].mostly_bytes = functions[i].bytes_of(rows[i].mostly);
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const TypeRow& a, const TypeRow& b) { return a.all.bytes > b.all.bytes; });
  return rows;
}

std::vector<DomainRow> memory_by_domain(const Profile& profile, const MemoryQuestion& question) {
  const Peak peak = peak_asked_for(profile, question);
  std::vector<DomainRow> rows(kDomainNames.size(), DomainRow{0, nothing_of(profile, peak)});
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i].domain = static_cast<std::uint8_t>(i);
  for (const AllocationRow* row : allocations_of(profile, question, peak))
    if (row->domain < rows.size()) rows[row->domain].all.add(*row, profile.allocation_distance);
  std::erase_if(rows, [](const DomainRow& row) { return row.all.samples == 0; });
  return rows;
}

std::vector<LifetimeRow> lifetimes(const Profile& profile) {
  std::vector<LifetimeRow> rows;
  if (!has_lifetimes(profile)) return rows;
  const MemoryEstimate nothing = nothing_of(profile);
  for (std::int64_t up_to = 100'000; up_to <= 10'000'000'000; up_to *= 10) rows.push_back({up_to, nothing});
  rows.push_back({MemoryQuestion::kEnd, nothing});
  rows.push_back({AllocationRow::kAlive, nothing});
  LifetimeRow moved{MemoryQuestion::kEnd, nothing, true};
  for (const AllocationRow& row : profile.allocations) {
    const std::int64_t lived = row.freed_ns - row.time_ns;
    const bool is_alive = row.freed_ns == AllocationRow::kAlive;
    auto found = std::prev(rows.end());
    if (!is_alive)
      found = std::find_if(rows.begin(), rows.end(), [&](const LifetimeRow& at) { return lived <= at.up_to_ns; });
    const bool is_moved = !is_alive && was_moved(row, profile);
    (is_moved ? moved : *found).all.add(row, profile.allocation_distance);
  }
  if (profile.has_events || moved.all.samples > 0) rows.insert(std::prev(rows.end()), moved);
  return rows;
}

// In units that many samples can be added up in: the variance of a sample is at most the square of the distance.
constexpr double kVarianceUnits = 1 << 20U;

double unit_of_variances(const Profile& profile) {
  const auto distance = static_cast<double>(profile.allocation_distance);
  return distance * distance / kVarianceUnits;
}

double unit_of_variances_of_blocks(const Profile& profile) {
  return unit_of_variances(profile) * static_cast<double>(profile.allocation_distance);
}

double margin_of(const Profile& profile, std::int64_t bytes, std::int64_t variance, std::uint64_t looks) {
  if (bytes <= 0) return 0;
  MemoryEstimate sum;
  sum.bytes = static_cast<double>(bytes);
  sum.distance = profile.allocation_distance;
  sum.looks = looks;
  sum.variance = static_cast<double>(variance) * unit_of_variances(profile);
  const Interval interval = sum.interval();
  return (interval.high - interval.low) / 2 / sum.bytes;
}

void put_memory_in_place_of_samples(Profile& profile, const MemoryQuestion& question, MemoryWeight weight) {
  const auto distance = static_cast<double>(profile.allocation_distance);
  SampleTable samples;
  for (const AllocationRow* at : allocations_of(profile, question)) {
    const AllocationRow& row = *at;
    MemoryEstimate estimate;
    estimate.add(row, profile.allocation_distance);
    const double variance = estimate.variance > 0 ? estimate.variance / distance / distance * kVarianceUnits : 0;
    double value = estimate.bytes;
    if (weight == MemoryWeight::kVariance) value = variance;
    if (weight == MemoryWeight::kVarianceOfBlocks) value = variance > 0 ? variance * estimate.bytes / distance : 0;
    samples.push_back(row.time_ns, row.thread, row.stack, std::llround(value), Activity::kRunning, row.tags);
  }
  profile.samples = std::move(samples);
}

}  // namespace plimsoll::profile
