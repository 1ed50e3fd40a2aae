// profile/memory_moments.cc: what was alive at moments of a recording.
//
// A row is looked at twice, where it begins and where it ends, however many moments there are.
#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <queue>
#include <utility>

#include "profile/memory.h"
#include "profile/process_ends.h"

namespace plimsoll::profile {
namespace {

// Moments at equal distances, the last one at the end of a window.
class Moments {
 public:
  Moments(const Profile& profile, std::size_t count, MemoryWindow window)
      : process_ends_(profile),
        end_ns_(std::max(std::min(window.to_ns, profile.end_ns), std::int64_t{0})),
        from_ns_(std::clamp(window.from_ns, std::int64_t{0}, end_ns_)),
        count_(count) {}

  [[nodiscard]] std::size_t count() const { return count_; }
  [[nodiscard]] std::int64_t time_ns(std::size_t number) const {
    return from_ns_ + static_cast<std::int64_t>(static_cast<double>(end_ns_ - from_ns_) *
                                                static_cast<double>(number + 1) / static_cast<double>(count_));
  }
  // The number of the first one at that time or later; count() if there is none.
  [[nodiscard]] std::size_t first_from(std::int64_t time_ns) const {
    std::size_t low = 0;
    std::size_t high = count_;
    while (low < high) {
      const std::size_t middle = low + (high - low) / 2;
      if (this->time_ns(middle) < time_ns)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  }
  // The first one at which a row is alive, and the first one after that at which it is not.
  [[nodiscard]] std::pair<std::size_t, std::size_t> life_of(const AllocationRow& row) const {
    const std::size_t begin = first_from(row.time_ns);
    const std::int64_t gone_ns = process_ends_.of_blocks(row);
    return {begin, gone_ns != ProcessEnds::kNever ? std::max(first_from(gone_ns), begin) : count_};
  }

 private:
  const ProcessEnds process_ends_;
  const std::int64_t end_ns_, from_ns_;
  const std::size_t count_;
};

MemoryEstimate estimate_of(const Profile& profile, const AllocationRow& row) {
  MemoryEstimate one;
  one.add(row, profile.allocation_distance);
  return one;
}

// A sum that rows leave again. Where none is left it is nothing, and not what rounding makes of it.
void take_away(MemoryEstimate& sum, const MemoryEstimate& part) {
  sum.samples -= part.samples;
  sum.bytes = sum.samples == 0 ? 0 : std::max(sum.bytes - part.bytes, 0.0);
  sum.blocks = sum.samples == 0 ? 0 : std::max(sum.blocks - part.blocks, 0.0);
  sum.variance = sum.samples == 0 ? 0 : std::max(sum.variance - part.variance, 0.0);
  sum.skew = sum.samples == 0 ? 0 : std::max(sum.skew - part.skew, 0.0);
}

// What is alive, and the function that made most of it, while rows come and go.
class Living {
 public:
  // What no sample tells of may be there all the same; but not where malloc's memory is not recorded at all.
  explicit Living(const Profile& profile) {
    all_.distance = profile.allocation_distance;
    if (!profile.meta_value("native_memory").empty()) native_.distance = profile.allocation_distance;
  }
  void comes(const MemoryEstimate& part, FunctionId maker, bool is_native) {
    all_.add(part);
    if (is_native) native_.add(part);
    if (!maker.is_none()) changed(maker, [&](MemoryEstimate& sum) { sum.add(part); });
  }
  void goes(const MemoryEstimate& part, FunctionId maker, bool is_native) {
    take_away(all_, part);
    if (is_native) take_away(native_, part);
    if (!maker.is_none()) changed(maker, [&](MemoryEstimate& sum) { take_away(sum, part); });
  }
  void tell(MemoryMoment& moment) {
    moment.alive = all_;
    moment.alive_native = native_;
    while (!ranked_.empty() && !is_so_still(ranked_.top())) ranked_.pop();
    if (ranked_.empty()) return;
    moment.mostly = FunctionId{std::size_t{ranked_.top().function}};
    moment.mostly_bytes = ranked_.top().bytes;
  }

 private:
  // What a function had at some time. Of several with as much, the first one is before the others.
  struct Rank {
    double bytes = 0;
    std::uint32_t function = 0;
    bool operator<(const Rank& other) const {
      return bytes != other.bytes ? bytes < other.bytes : function > other.function;
    }
  };

  template <typename Change>
  void changed(FunctionId maker, Change change) {
    MemoryEstimate& sum = by_function_[maker.index()];
    change(sum);
    if (sum.samples > 0) ranked_.push({sum.bytes, maker.index()});
  }
  [[nodiscard]] bool is_so_still(const Rank& rank) const {
    const MemoryEstimate& sum = by_function_.at(rank.function);
    return sum.samples > 0 && sum.bytes == rank.bytes;
  }

  MemoryEstimate all_, native_;
  boost::unordered_flat_map<std::uint32_t, MemoryEstimate> by_function_;
  std::priority_queue<Rank> ranked_;  // with what is so no more
};

// A row comes, or goes, before a moment is told of.
struct Step {
  std::size_t moment = 0;
  std::size_t row = 0;
  bool comes = true;
};

// In the order of the moments; at one of them rows come before rows go, for a row that goes must have come.
std::vector<Step> steps_of(const Profile& profile, const Moments& moments) {
  std::vector<Step> steps;
  for (std::size_t row = 0; row < profile.allocations.size(); ++row) {
    const auto [begin, end] = moments.life_of(profile.allocations[row]);
    if (begin == end) continue;
    steps.push_back({begin, row, true});
    if (end < moments.count()) steps.push_back({end, row, false});
  }
  std::stable_sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) { return a.moment < b.moment; });
  return steps;
}

// Of all processes that there were then, as each was last measured.
std::int64_t rss_at(const Profile& profile, const ProcessEnds& process_ends, std::int64_t at_ns) {
  std::int64_t bytes = 0;
  for (const Counter& counter : profile.counters) {
    if (counter.name != "rss") continue;
    const auto after = std::upper_bound(counter.time_ns.begin(), counter.time_ns.end(), at_ns);
    if (after == counter.time_ns.begin()) continue;  // not yet
    const bool has_ended = process_ends.of(counter.process) < at_ns;
    if (!has_ended) bytes += counter.value[static_cast<std::size_t>(after - counter.time_ns.begin()) - 1];
  }
  return bytes;
}

}  // namespace

std::vector<MemoryMoment> memory_over_time(const Profile& profile, std::size_t moments, MemoryWindow window) {
  const Moments at(profile, moments, window);
  std::vector<MemoryMoment> result(moments);
  for (MemoryMoment& moment : result) moment.allocated.distance = profile.allocation_distance;
  for (const AllocationRow& row : profile.allocations) {
    const std::size_t moment = at.first_from(row.time_ns);
    if (row.time_ns >= window.from_ns && moment < moments)
      result[moment].allocated.add(row, profile.allocation_distance);
  }
  const std::vector<Step> steps = steps_of(profile, at);
  const ProcessEnds process_ends(profile);
  Living living(profile);
  auto step = steps.begin();
  for (std::size_t i = 0; i < moments; ++i) {
    for (; step != steps.end() && step->moment == i; ++step) {
      const AllocationRow& row = profile.allocations[step->row];
      const MemoryEstimate part = estimate_of(profile, row);
      const FunctionId maker = profile.leaf_function(row.stack);
      const bool is_native = !is_pythons(row.domain);
      if (step->comes)
        living.comes(part, maker, is_native);
      else
        living.goes(part, maker, is_native);
    }
    result[i].at_ns = at.time_ns(i);
    living.tell(result[i]);
    result[i].rss_bytes = rss_at(profile, process_ends, result[i].at_ns);
  }
  return result;
}

std::vector<std::vector<double>> alive_over_time(const Profile& profile, std::size_t moments) {
  std::vector<std::vector<double>> bytes(profile.functions.size(), std::vector<double>(moments));
  const Moments at(profile, moments, {});
  for (const AllocationRow& row : profile.allocations) {
    const FunctionId function = profile.leaf_function(row.stack);
    if (function.is_none()) continue;
    const auto [begin, end] = at.life_of(row);
    const double its_bytes = estimate_of(profile, row).bytes;
    for (std::size_t i = begin; i < end; ++i) bytes[function.index()][i] += its_bytes;
  }
  return bytes;
}

}  // namespace plimsoll::profile
