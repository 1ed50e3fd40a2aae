#include "capture/tags.h"

#include <pthread.h>

#include <algorithm>

#include "base/clock.h"

namespace plimsoll::capture {

TagRegistry::TagRegistry() { rows_.emplace_back(); }  // row 0 is never given out

TagNumber TagRegistry::add(std::shared_ptr<const Tags> tags) {
  const std::lock_guard guard(mutex_);
  auto row = static_cast<std::uint32_t>(rows_.size());
  if (free_rows_.empty()) {
    rows_.emplace_back();
    // Room for its death, which nobody could be told of if there were none.
    free_rows_.reserve(rows_.capacity());
    deaths_.reserve(rows_.capacity());
  } else {
    row = free_rows_.back();
    free_rows_.pop_back();
  }
  rows_[row].tags = std::move(tags);
  living_.fetch_add(1, std::memory_order_relaxed);
  return TagNumber{rows_[row].generation} << 32U | row;
}

void TagRegistry::died(TagNumber number) noexcept {
  const std::lock_guard guard(mutex_);
  living_.fetch_sub(1, std::memory_order_relaxed);
  const auto row = static_cast<std::uint32_t>(number);
  if (is_recording_)
    deaths_.push_back({row, monotonic_ns()});
  else
    free_row(row);
}

std::shared_ptr<const Tags> TagRegistry::find(TagNumber number) const {
  const std::lock_guard guard(mutex_);
  const auto row = static_cast<std::uint32_t>(number);
  const bool is_known = row < rows_.size() && rows_[row].generation == number >> 32U;
  return is_known ? rows_[row].tags : nullptr;
}

void TagRegistry::begin_recording() {
  const std::lock_guard guard(mutex_);
  is_recording_ = true;
}

void TagRegistry::end_recording() {
  const std::lock_guard guard(mutex_);
  is_recording_ = false;
  for (const Death& death : deaths_) free_row(death.row);
  deaths_.clear();
}

void TagRegistry::forget_deaths_before(std::int64_t time_ns) {
  const std::lock_guard guard(mutex_);
  const auto kept =
      std::find_if(deaths_.begin(), deaths_.end(), [&](const Death& one) { return one.time_ns >= time_ns; });
  std::for_each(deaths_.begin(), kept, [&](const Death& death) { free_row(death.row); });
  deaths_.erase(deaths_.begin(), kept);
}

void TagRegistry::free_row(std::uint32_t row) {
  rows_[row].tags.reset();
  ++rows_[row].generation;
  free_rows_.push_back(row);
}

}  // namespace plimsoll::capture
