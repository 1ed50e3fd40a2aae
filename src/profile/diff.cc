#include "profile/diff.h"

#include <algorithm>
#include <boost/container_hash/hash.hpp>
#include <boost/unordered/unordered_flat_map.hpp>
#include <charconv>
#include <cmath>
#include <limits>

#include "profile/flat.h"
#include "profile/same_functions.h"
#include "profile/tree.h"

namespace plimsoll::profile {
namespace {

constexpr std::int64_t kMicrosecond = 1'000;
constexpr std::int64_t kSecond = 1'000'000;  // in µs; the longest period there is

// Of a profile that does not tell its rate: formats of stacks and their sums. Most of the stacks in which little was
// spent are of one sample, so the lower quartile of the weights is taken, and no more than a sampler of 100 Hz has.
std::int64_t assumed_period_ns(const Profile& profile) {
  constexpr std::int64_t kLongest = 10'000'000;
  std::vector<std::int64_t> weights;
  for (const std::int64_t weight : profile.samples.weight_ns)
    if (weight > 0) weights.push_back(weight);
  if (weights.empty()) return kLongest;
  const auto quartile = weights.begin() + static_cast<std::ptrdiff_t>(weights.size() / 4);
  std::nth_element(weights.begin(), quartile, weights.end());
  return std::min(*quartile, kLongest);
}

// What samples of running threads stand for in a recording of our own, by the median of its time: far more than was
// asked for where --max-overhead lowers the rate, or where ticks take too long for it. 0 where that is not known: in
// other formats a row may be a sum of many samples.
std::int64_t delivered_period_ns(const Profile& profile) {
  if (profile.meta_value("plimsoll").empty() || !profile.meta_value("format").empty()) return 0;
  std::vector<std::int64_t> weights;
  std::int64_t all = 0;
  for (std::size_t i = 0; i < profile.samples.size(); ++i) {
    const std::int64_t weight = profile.samples.weight_ns[i];
    if (profile.samples.activity[i] != Activity::kRunning || weight <= 0) continue;
    weights.push_back(weight);
    all += weight;
  }
  std::sort(weights.begin(), weights.end());
  std::int64_t sum = 0;
  for (const std::int64_t weight : weights)
    if (sum += weight; sum >= all - sum) return weight;
  return 0;
}

SamplingPeriod period_of(const Profile& profile) {
  const std::string_view text = profile.meta_value("rate_hz");
  double rate = 0;
  std::from_chars(text.data(), text.data() + text.size(), rate);
  if (rate > 0) return {std::max(static_cast<std::int64_t>(1e9 / rate), delivered_period_ns(profile)), false};
  return {assumed_period_ns(profile), true};
}

double in_us(const SamplingPeriod& period) {
  return static_cast<double>(std::clamp<std::int64_t>(period.ns / kMicrosecond, 1, kSecond));
}

// Puts the variance of each sample, in square microseconds, in the place of its weight. What a sample stands for was
// measured, but whether the instant fell into this function was chance, for one period of it at most. A sum of several
// samples has the sum of their variances.
void weights_to_variances(Profile& profile, const SamplingPeriod& period) {
  std::int64_t all_us = 1;
  for (const std::int64_t weight : profile.samples.weight_ns)
    all_us += std::max<std::int64_t>(weight / kMicrosecond, 1);
  constexpr std::int64_t kLargestSum = std::int64_t{1} << 62U;
  const std::int64_t period_us = std::min(static_cast<std::int64_t>(in_us(period)), kLargestSum / all_us);
  for (std::int64_t& weight : profile.samples.weight_ns) {
    const std::int64_t us = std::max<std::int64_t>(weight / kMicrosecond, 1);
    weight = us * std::min(us, period_us);
  }
}

// Whether all the time that the program took is in the weights: CPU time by the threads' clocks.
bool is_measured(const Profile& profile) {
  const std::string_view weights = profile.meta_value("weights");
  return !profile.meta_value("plimsoll").empty() && profile.meta_value("mode") == "cpu" &&
         (weights.empty() || weights.starts_with("measured"));
}

// The variance of a sum that was measured: each thread ends within a period that no sample stands for any more, what
// was lost is not in it, and the same work takes a thousandth more or less time each time on an idle machine.
double variance_of_measured(const Profile& profile, const SamplingPeriod& period) {
  constexpr double kRepeats = 1e-3;
  const double ends = in_us(period) * in_us(period) * static_cast<double>(profile.threads.size());
  double lost_ns = 0;
  for (const Drop& drop : profile.drops) lost_ns += static_cast<double>(drop.cpu_ns);
  const double lost = lost_ns / 1e3;
  const double repeats = static_cast<double>(profile.sampled_ns()) / 1e3 * kRepeats;
  return ends + lost * lost + repeats * repeats;
}

// One side of a comparison: its times, and after use() of the other sums the variances of these times.
enum class Side : std::uint8_t { kBefore, kAfter };

void put(TimeChange& change, Side side, std::int64_t ns) {
  (side == Side::kBefore ? change.before_ns : change.after_ns) += ns;
}
// What judge() needs of it beside the times: variances are collected in error_ns, as squares of its unit, until it
// takes the root, and variances of blocks in step_ns. They are told in units of their own, so that many can be added
// up.
using Moment = double TimeChange::*;
void put_moment(TimeChange& change, Moment moment, std::int64_t value, double unit) {
  change.*moment += static_cast<double>(value) * unit;
}
constexpr double kSquareMicrosecond = 1e6;

// The chance of a change of so many steps or more, up or down, if it is of so many steps up or down on average: the
// saddle point of the difference of two Poisson numbers. For many steps it is that of a normal distribution.
double chance_of_steps(double steps, double average) {
  if (steps <= 0) return 1;
  const double tilt = std::asinh(steps / average);
  const double root = std::hypot(steps, average);
  const double exponent = steps * tilt - (root - average);
  return 2 * std::exp(-exponent) / (-std::expm1(-tilt) * std::sqrt(2 * M_PI * root));
}

double chance_of(const TimeChange& change) {
  const double by = std::abs(static_cast<double>(change.change_ns()));
  if (change.step_ns <= 0) return std::erfc(by / change.error_ns / std::sqrt(2.0));
  const double average = change.error_ns / change.step_ns * (change.error_ns / change.step_ns);
  // No change is less likely by chance than a single step. (Of a step that one side has missed, only the other tells.)
  return std::min(chance_of_steps(by / change.step_ns, average), 2 * average);
}

bool is_beyond_chance(const TimeChange& change, std::size_t rows) {
  constexpr double kFalseAlarms = 0.01;
  // What has no error was counted.
  if (change.error_ns <= 0) return change.before_ns != change.after_ns;
  return chance_of(change) * static_cast<double>(std::max<std::size_t>(rows, 1)) < kFalseAlarms;
}
void judge(TimeChange& change, std::size_t rows) {
  if (change.error_ns > 0) change.step_ns /= change.error_ns;
  change.error_ns = std::sqrt(change.error_ns);
  change.is_beyond_chance = is_beyond_chance(change, rows);
}

// Rows of both sides under their identities. Functions and lines alike.
class RowMerger {
 public:
  using Rows = std::vector<FlatRow> (*)(const Profile&);
  RowMerger(const std::vector<NamedFunction>& functions, Rows rows, bool by_line)
      : functions_(functions), rows_(rows), by_line_(by_line) {}

  // First with weights, then with variances.
  void add_times(const Profile& profile, const std::vector<std::uint32_t>& names, Side side) {
    for (const FlatRow& row : rows_(profile)) {
      ChangedRow& changed = row_for(profile, names, row);
      // Not all formats tell where a function begins.
      const std::uint32_t line = by_line_ ? row.line : profile.functions[row.function].first_line;
      if (line != 0) changed.line = line;
      put(changed.self, side, row.self_ns);
      put(changed.total, side, row.total_ns);
    }
  }
  void add_moments(const Profile& profile, const std::vector<std::uint32_t>& names, Moment moment, double unit) {
    for (const FlatRow& row : rows_(profile)) {
      ChangedRow& changed = row_for(profile, names, row);
      put_moment(changed.self, moment, row.self_ns, unit);
      put_moment(changed.total, moment, row.total_ns, unit);
    }
  }
  std::vector<ChangedRow> take() {
    for (ChangedRow& row : changed_) {
      judge(row.self, changed_.size());
      judge(row.total, changed_.size());
    }
    std::stable_sort(changed_.begin(), changed_.end(), [](const ChangedRow& a, const ChangedRow& b) {
      return std::abs(a.self.change_ns()) > std::abs(b.self.change_ns());
    });
    return std::move(changed_);
  }

 private:
  ChangedRow& row_for(const Profile& profile, const std::vector<std::uint32_t>& names, const FlatRow& row) {
    const std::uint32_t number = names[row.function.index()];
    const NamedFunction& function = functions_[number];
    // A function that has moved has taken its lines along.
    const std::int64_t first = function.has_first_line ? profile.functions[row.function].first_line : 0;
    const std::int64_t place = by_line_ ? std::int64_t{row.line} - first : 0;
    const auto [at, is_new] = index_.try_emplace({number, place}, changed_.size());
    if (is_new) changed_.push_back({function.name, function.file, 0, {}, {}});
    return changed_[at->second];
  }

  using Key = std::pair<std::uint32_t, std::int64_t>;

  const std::vector<NamedFunction>& functions_;
  const Rows rows_;
  const bool by_line_;
  boost::unordered_flat_map<Key, std::size_t, boost::hash<Key>> index_;
  std::vector<ChangedRow> changed_;
};

// The trees of both sides, node on node.
class TreeMerger {
 public:
  explicit TreeMerger(const std::vector<NamedFunction>& functions) : functions_(functions) { nodes_.emplace_back(); }

  // First with weights, then with variances.
  void add_times(const Profile& profile, const std::vector<std::uint32_t>& names, Side side) {
    add(profile, names, [&](ChangedNode& node, const TreeNode& from) {
      put(node.total, side, from.total_ns);
      put(node.self, side, from.self_ns);
    });
  }
  void add_moments(const Profile& profile, const std::vector<std::uint32_t>& names, Moment moment, double unit) {
    add(profile, names, [&](ChangedNode& node, const TreeNode& from) {
      put_moment(node.total, moment, from.total_ns, unit);
      put_moment(node.self, moment, from.self_ns, unit);
    });
  }
  std::vector<ChangedNode> take() {
    for (ChangedNode& node : nodes_) {
      judge(node.total, nodes_.size());
      judge(node.self, nodes_.size());
    }
    for (ChangedNode& node : nodes_)
      std::stable_sort(node.children.begin(), node.children.end(), [&](std::size_t a, std::size_t b) {
        return std::abs(nodes_[a].total.change_ns()) > std::abs(nodes_[b].total.change_ns());
      });
    return std::move(nodes_);
  }

 private:
  template <typename Put>
  void add(const Profile& profile, const std::vector<std::uint32_t>& names, Put put_node) {
    const Tree tree = profile::tree(profile, Granularity::kFunction);
    std::vector<std::size_t> place(tree.nodes.size());  // a parent's index is smaller than its children's
    for (std::size_t i = 0; i < tree.nodes.size(); ++i) {
      const TreeNode& node = tree.nodes[i];
      put_node(nodes_[place[i]], node);
      for (const std::size_t child : node.children)
        place[child] = child_of(place[i], names[tree.nodes[child].function.index()]);
    }
  }
  std::size_t child_of(std::size_t parent, std::uint32_t number) {
    const auto [at, is_new] = index_.try_emplace({parent, number}, nodes_.size());
    if (is_new) {
      nodes_[parent].children.push_back(nodes_.size());
      nodes_.push_back({functions_[number].name, functions_[number].file, {}, {}, {}});
    }
    return at->second;
  }

  using Key = std::pair<std::size_t, std::uint32_t>;

  const std::vector<NamedFunction>& functions_;
  boost::unordered_flat_map<Key, std::size_t, boost::hash<Key>> index_;
  std::vector<ChangedNode> nodes_;
};

// All that is wanted of both sides.
class Comparer {
 public:
  Comparer(const SameFunctions& same, ComparedParts parts)
      : same_(same),
        parts_(parts),
        functions_(same.all, &flat, false),
        by_line_(same.all, &lines, true),
        trees_(same.all) {}

  // First with weights, then with variances (and those of blocks) in the place of them.
  void add_weights(const Profile& profile, Side side) {
    put(result_.total, side, profile.sampled_ns());
    if (parts_.functions) functions_.add_times(profile, names_of(side), side);
    if (parts_.lines) by_line_.add_times(profile, names_of(side), side);
    if (parts_.tree) trees_.add_times(profile, names_of(side), side);
  }
  void add_moments(const Profile& profile, Side side, Moment moment, double unit) {
    if (parts_.functions) functions_.add_moments(profile, names_of(side), moment, unit);
    if (parts_.lines) by_line_.add_moments(profile, names_of(side), moment, unit);
    if (parts_.tree) trees_.add_moments(profile, names_of(side), moment, unit);
  }
  void add_moment_of_total(Moment moment, double value) { result_.total.*moment += value; }
  void set_period(Side side, const SamplingPeriod& period) {
    (side == Side::kBefore ? result_.before_period : result_.after_period) = period;
  }
  Comparison take() {
    judge(result_.total, 1);
    if (parts_.functions) result_.functions = functions_.take();
    if (parts_.lines) result_.lines = by_line_.take();
    if (parts_.tree) result_.tree = trees_.take();
    return std::move(result_);
  }

 private:
  [[nodiscard]] const std::vector<std::uint32_t>& names_of(Side side) const {
    return side == Side::kBefore ? same_.before : same_.after;
  }

  const SameFunctions& same_;
  const ComparedParts parts_;
  RowMerger functions_, by_line_;
  TreeMerger trees_;
  Comparison result_;
};

}  // namespace

Comparison compare(Profile before, Profile after, Extent extent, ComparedParts parts) {
  const SameFunctions same = same_functions(before, after);
  Comparer comparer(same, parts);
  const bool is_total_measured = extent == Extent::kWhole && is_measured(before) && is_measured(after);
  for (const Side side : {Side::kBefore, Side::kAfter}) {
    Profile& profile = side == Side::kBefore ? before : after;
    const SamplingPeriod period = period_of(profile);
    comparer.set_period(side, period);
    comparer.add_weights(profile, side);
    const double measured = is_total_measured ? variance_of_measured(profile, period) : 0;
    weights_to_variances(profile, period);
    const double variance = is_total_measured ? measured : static_cast<double>(profile.sampled_ns());
    comparer.add_moment_of_total(&TimeChange::error_ns, variance * kSquareMicrosecond);
    comparer.add_moments(profile, side, &TimeChange::error_ns, kSquareMicrosecond);
  }
  return comparer.take();
}

Comparison compare_memory(Profile before, Profile after, const MemoryQuestion& question, ComparedParts parts) {
  const SameFunctions same = same_functions(before, after);
  Comparer comparer(same, parts);
  for (const Side side : {Side::kBefore, Side::kAfter}) {
    Profile& profile = side == Side::kBefore ? before : after;
    put_memory_in_place_of_samples(profile, question, MemoryWeight::kBytes);
    comparer.add_weights(profile, side);
    const auto add = [&](MemoryWeight weight, Moment moment, double unit) {
      put_memory_in_place_of_samples(profile, question, weight);
      comparer.add_moments(profile, side, moment, unit);
      comparer.add_moment_of_total(moment, static_cast<double>(profile.sampled_ns()) * unit);
    };
    add(MemoryWeight::kVariance, &TimeChange::error_ns, unit_of_variances(profile));
    add(MemoryWeight::kVarianceOfBlocks, &TimeChange::step_ns, unit_of_variances_of_blocks(profile));
  }
  return comparer.take();
}

}  // namespace plimsoll::profile
