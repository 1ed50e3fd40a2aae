// formats/vmprof/periods.cc: the method of the largest remainder, per thread and stack.
#include "formats/vmprof/periods.h"

#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>
#include <charconv>
#include <cmath>

#include "formats/vmprof/format.h"

namespace plimsoll::formats::vmprof {
namespace {

constexpr std::int64_t kLongestUs = 999'999;  // vmprof's longest period is below a second
// Waits are few rows of much time: they must not make a file that fills the disk.
constexpr std::int64_t kMostSamples = 50'000'000;

// One thread on one stack.
struct Share {
  std::int64_t time_ns = 0;
  std::int64_t seen_ns = 0;  // of the rows that were given their samples
  std::int64_t samples = 0;
  std::int64_t given = 0;
};

std::int64_t asked_period_us(const profile::Profile& profile) {
  const std::string_view digits = profile.meta_value("rate_hz");
  double rate_hz = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), rate_hz);
  return rate_hz > 1 ? std::llround(1e6 / rate_hz) : kLongestUs;
}

std::int64_t period_us_of(const profile::Profile& profile, std::int64_t total_ns) {
  const auto rows = static_cast<std::int64_t>(profile.samples.size());
  if (rows == 0 || total_ns <= 0) return 1000;
  const std::int64_t mean_us = (total_ns / rows + kMicrosecond / 2) / kMicrosecond;
  const std::int64_t least_us = total_ns / kMostSamples / kMicrosecond;
  return std::clamp<std::int64_t>(std::max(std::min(mean_us, asked_period_us(profile)), least_us), 1, kLongestUs);
}

// Whole periods for each; the periods that are left over go to the largest remainders.
void share_out(std::vector<Share>& shares, std::int64_t total_ns, std::int64_t period_ns) {
  std::int64_t left = (total_ns + period_ns / 2) / period_ns;
  std::vector<std::size_t> order(shares.size());
  for (std::size_t i = 0; i < shares.size(); ++i) {
    order[i] = i;
    shares[i].samples = shares[i].time_ns / period_ns;
    left -= shares[i].samples;
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return shares[a].time_ns % period_ns > shares[b].time_ns % period_ns;
  });
  for (const std::size_t i : order) {
    if (left <= 0) break;
    ++shares[i].samples;
    --left;
  }
}

// The samples that a share has given when this much of its time has passed.
std::int64_t due(const Share& share) {
  if (share.seen_ns >= share.time_ns) return share.samples;
  const double part = static_cast<double>(share.seen_ns) / static_cast<double>(share.time_ns);
  return std::llround(part * static_cast<double>(share.samples));
}

}  // namespace

Periods count_periods(const profile::Profile& profile) {
  const profile::SampleTable& samples = profile.samples;
  std::vector<Share> shares;
  std::vector<std::uint32_t> share_of_row(samples.size());
  boost::unordered_flat_map<std::uint64_t, std::uint32_t> index;
  std::int64_t total_ns = 0;
  for (std::size_t row = 0; row < samples.size(); ++row) {
    const std::uint64_t key = std::uint64_t{samples.thread[row].index()} << 32U | samples.stack[row].index();
    const auto [position, is_new] = index.try_emplace(key, static_cast<std::uint32_t>(shares.size()));
    if (is_new) shares.emplace_back();
    share_of_row[row] = position->second;
    const std::int64_t weight = std::max<std::int64_t>(samples.weight_ns[row], 0);
    shares[position->second].time_ns += weight;
    total_ns += weight;
  }
  Periods periods;
  periods.period_us = period_us_of(profile, total_ns);
  share_out(shares, total_ns, periods.period_us * kMicrosecond);
  periods.count.reserve(samples.size());
  for (std::size_t row = 0; row < samples.size(); ++row) {
    Share& share = shares[share_of_row[row]];
    share.seen_ns += std::max<std::int64_t>(samples.weight_ns[row], 0);
    const std::int64_t now = due(share);
    periods.count.push_back(static_cast<std::uint32_t>(now - share.given));
    share.given = now;
  }
  return periods;
}

}  // namespace plimsoll::formats::vmprof
