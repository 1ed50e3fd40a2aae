// profile/memory_peak.cc: when most was alive.
#include <algorithm>
#include <charconv>
#include <string>
#include <utility>
#include <vector>

#include "profile/memory.h"
#include "profile/process_ends.h"

namespace plimsoll::profile {
namespace {

// How much was alive by and by, as an estimate.
class Course {
 public:
  explicit Course(const Profile& profile) {
    const ProcessEnds ends(profile);
    for (const AllocationRow& row : profile.allocations) {
      MemoryEstimate one;
      one.add(row, profile.allocation_distance);
      steps_.push_back({row.time_ns, one.bytes, one.variance});
      if (const std::int64_t end_ns = ends.of_blocks(row); end_ns != ProcessEnds::kNever)
        steps_.push_back({end_ns, -one.bytes, -one.variance});
    }
    // Frees before allocations of the same instant.
    std::sort(steps_.begin(), steps_.end(), [](const Step& a, const Step& b) {
      return a.time_ns != b.time_ns ? a.time_ns < b.time_ns : a.bytes < b.bytes;
    });
  }

  Peak peak(std::uint64_t distance) {
    Peak peak;
    MemoryEstimate now, most;
    now.distance = most.distance = distance;
    bool has_risen = false;
    for (const Step& step : steps_) {
      if (step.bytes < 0 && std::exchange(has_risen, false)) tops_.push_back(now.bytes);
      has_risen = has_risen || step.bytes > 0;
      now.bytes += step.bytes;
      now.variance += step.variance;
      if (now.bytes <= most.bytes) continue;
      most = now;
      peak.at_ns = step.time_ns;
    }
    if (has_risen) tops_.push_back(now.bytes);
    peak.looks = rivals(most);
    return peak;
  }

 private:
  // A block comes, or goes.
  struct Step {
    std::int64_t time_ns = 0;
    double bytes = 0, variance = 0;
  };

  // At how many of the times at which the estimate turned there may have been as much as at its highest: those that it
  // was the highest of by chance. (Where little is freed there are few, and where a program goes on and on with as much
  // alive, nearly all.)
  [[nodiscard]] std::uint64_t rivals(MemoryEstimate most) const {
    most.looks = std::max<std::uint64_t>(tops_.size(), 1);
    const double least = most.interval().low;
    const auto found = std::count_if(tops_.begin(), tops_.end(), [&](double bytes) { return bytes >= least; });
    return std::max<std::uint64_t>(static_cast<std::uint64_t>(found), 1);
  }

  std::vector<Step> steps_;
  std::vector<double> tops_;  // of the estimate, where it stopped rising
};

}  // namespace

Peak peak_of(const Profile& profile) {
  if (profile.is_exact || profile.peak_ns) return {profile.peak_ns.value_or(0), profile.peak_looks};
  return Course(profile).peak(profile.allocation_distance);
}

namespace {

constexpr std::string_view kPeakFact = "peak_ns", kLooksFact = "peak_looks", kUnknown = "unknown";

template <typename Number>
bool read_number(std::string_view text, Number& number) {
  return std::from_chars(text.data(), text.data() + text.size(), number).ec == std::errc{};
}

}  // namespace

void set_peak(Profile& profile, std::optional<Peak> peak) {
  profile.peak_ns.reset();
  profile.peak_looks = 1;
  if (peak) {
    profile.peak_ns = peak->at_ns;
    profile.peak_looks = peak->looks;
    profile.set_meta(kPeakFact, std::to_string(peak->at_ns));
    if (peak->looks > 1) profile.set_meta(kLooksFact, std::to_string(peak->looks));
  } else if (profile.is_exact || !profile.meta_value(kPeakFact).empty()) {
    profile.set_meta(kPeakFact, kUnknown);  // it was told: rows are missing to find another
  }
}

void restore_peak(Profile& profile) {
  const std::string_view fact = profile.meta_value(kPeakFact);
  Peak peak;
  if (fact == kUnknown) profile.peak_ns.reset();
  if (fact == kUnknown || !read_number(fact, peak.at_ns)) return;
  profile.peak_ns = peak.at_ns;
  if (read_number(profile.meta_value(kLooksFact), peak.looks))
    profile.peak_looks = std::max<std::uint64_t>(peak.looks, 1);
}

Status check_question(const Profile& profile, const MemoryQuestion& question) {
  if (question.view != MemoryView::kPeak) return Ok{};
  if (!profile.is_exact && profile.meta_value(kPeakFact) == kUnknown)
    return Error{
        ErrorKind::kUsage,
        "the peak of a time, or of several processes, is when all that was allocated there was most, and some of "
        "that has been left out before: ask for the time first, or for all conditions at once"};
  if (!profile.is_exact || profile.peak_ns) return Ok{};
  return Error{ErrorKind::kUsage,
               "exact recordings keep what was alive at the peak of one process over all its time: look at it without "
               "other processes, and without a beginning or an end (samples, --alloc, have the peak of any part)"};
}

}  // namespace plimsoll::profile
