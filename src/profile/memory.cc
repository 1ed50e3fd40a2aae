#include "profile/memory.h"

#include <algorithm>
#include <cmath>

#include "base/poisson.h"

namespace plimsoll::profile {
namespace {

constexpr double kZ = 1.959964;  // of the normal distribution, 95 %

// Wilson and Hilferty's approximation of the quantile of a chi-square distribution with 2n degrees of freedom, halved.
double poisson_bound(double n, double z) {
  if (n <= 0) return 0;
  const double root = 1 - 1 / (9 * n) + z / (3 * std::sqrt(n));
  return root <= 0 ? 0 : n * root * root * root;
}

bool is_alive_at(const AllocationRow& row, std::int64_t time_ns) {
  return row.time_ns <= time_ns && (row.freed_ns == AllocationRow::kAlive || row.freed_ns > time_ns);
}

std::vector<MemoryRow> flat_of(const Profile& profile, const std::vector<MemoryEstimate>& by_stack) {
  std::vector<MemoryRow> rows(profile.functions.size());
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i].function = FunctionId{i};
  constexpr std::size_t kNever = ~std::size_t{0};
  std::vector<std::size_t> last_stack(rows.size(), kNever);  // the stack that counted a row last
  for (std::size_t i = 0; i < by_stack.size(); ++i) {
    if (by_stack[i].samples == 0) continue;
    rows[profile.leaf_function(StackId{i}).index()].self.add(by_stack[i]);
    for (StackId at{i}; !at.is_none(); at = profile.stacks[at].parent) {
      const std::size_t number = profile.frames[profile.stacks[at].frame].function.index();
      if (std::exchange(last_stack[number], i) != i) rows[number].total.add(by_stack[i]);
    }
  }
  std::erase_if(rows, [](const MemoryRow& row) { return row.total.samples == 0; });
  std::stable_sort(rows.begin(), rows.end(), [](const MemoryRow& a, const MemoryRow& b) {
    return a.self.bytes != b.self.bytes ? a.self.bytes > b.self.bytes : a.total.bytes > b.total.bytes;
  });
  return rows;
}

}  // namespace

void MemoryEstimate::add(const AllocationRow& row, std::uint64_t distance) {
  const double chance = chance_of_sample(row.chance_bytes, distance);
  const auto size = static_cast<double>(row.size);
  bytes += size / chance;
  blocks += 1 / chance;
  variance += size * size * (1 - chance) / (chance * chance);
  ++samples;
}

void MemoryEstimate::add(const MemoryEstimate& other) {
  bytes += other.bytes;
  blocks += other.blocks;
  variance += other.variance;
  samples += other.samples;
}

Interval MemoryEstimate::interval() const {
  if (variance <= 0 || bytes <= 0) return {bytes, bytes};
  const double worth = bytes * bytes / variance;  // samples of equal weight that would be as sure
  return {bytes * poisson_bound(worth, -kZ) / worth, bytes * poisson_bound(worth + 1, kZ) / worth};
}

std::int64_t peak_time_ns(const Profile& profile) {
  // Steps of the living bytes: frees before allocations of the same instant.
  std::vector<std::pair<std::int64_t, double>> steps;
  for (const AllocationRow& row : profile.allocations) {
    const double bytes =
        static_cast<double>(row.size) / chance_of_sample(row.chance_bytes, profile.allocation_distance);
    steps.emplace_back(row.time_ns, bytes);
    if (row.freed_ns != AllocationRow::kAlive) steps.emplace_back(row.freed_ns, -bytes);
  }
  std::sort(steps.begin(), steps.end());
  double now = 0;
  double most = 0;
  std::int64_t time_ns = 0;
  for (const auto& [at, bytes] : steps) {
    now += bytes;
    if (now > most) {
      most = now;
      time_ns = at;
    }
  }
  return time_ns;
}

std::vector<std::size_t> allocations_of(const Profile& profile, MemoryView view) {
  const std::int64_t peak_ns = view == MemoryView::kPeak ? peak_time_ns(profile) : 0;
  std::vector<std::size_t> chosen;
  for (std::size_t i = 0; i < profile.allocations.size(); ++i) {
    const AllocationRow& row = profile.allocations[i];
    const bool is_of_view =
        view == MemoryView::kAllocated ||
        (view == MemoryView::kLive ? row.freed_ns == AllocationRow::kAlive : is_alive_at(row, peak_ns));
    if (is_of_view) chosen.push_back(i);
  }
  return chosen;
}

MemoryReport memory_report(const Profile& profile, MemoryView view) {
  MemoryReport report;
  report.at_ns = view == MemoryView::kPeak ? peak_time_ns(profile) : profile.end_ns;
  report.stack.resize(profile.stacks.size());
  for (const std::size_t i : allocations_of(profile, view)) {
    const AllocationRow& row = profile.allocations[i];
    (row.stack.is_none() ? report.no_stack : report.stack[row.stack.index()]).add(row, profile.allocation_distance);
    report.all.add(row, profile.allocation_distance);
  }
  report.flat = flat_of(profile, report.stack);
  return report;
}

// In units that many samples can be added up in: the variance of a sample is at most the square of the distance.
constexpr double kVarianceUnits = 1 << 20U;

double margin_of(const Profile& profile, std::int64_t bytes, std::int64_t variance) {
  if (bytes <= 0) return 0;
  const auto distance = static_cast<double>(profile.allocation_distance);
  MemoryEstimate sum;
  sum.bytes = static_cast<double>(bytes);
  sum.variance = static_cast<double>(variance) / kVarianceUnits * distance * distance;
  const Interval interval = sum.interval();
  return (interval.high - interval.low) / 2 / sum.bytes;
}

void put_memory_in_place_of_samples(Profile& profile, MemoryView view, MemoryWeight weight) {
  const auto distance = static_cast<double>(profile.allocation_distance);
  SampleTable samples;
  for (const std::size_t i : allocations_of(profile, view)) {
    const AllocationRow& row = profile.allocations[i];
    MemoryEstimate estimate;
    estimate.add(row, profile.allocation_distance);
    const double value =
        weight == MemoryWeight::kBytes ? estimate.bytes : estimate.variance / distance / distance * kVarianceUnits;
    samples.push_back(row.time_ns, row.thread, row.stack, std::llround(value), Activity::kRunning, row.tags);
  }
  profile.samples = std::move(samples);
}

}  // namespace plimsoll::profile
