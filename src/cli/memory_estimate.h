// cli/memory_estimate.h: sampled amounts of memory, as text and as JSON.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

#include "cli/units.h"
#include "formats/json.h"
#include "profile/memory.h"

namespace plimsoll::cli {

inline std::string bytes_text(double bytes) { return format_bytes(std::llround(bytes)); }

// A member `name`: an object with what is estimated and its confidence interval.
inline void put_estimate(formats::JsonWriter& json, std::string_view name, const profile::MemoryEstimate& estimate) {
  const profile::Interval interval = estimate.interval();
  json.key(name);
  json.begin_object();
  json.member("bytes", std::int64_t{std::llround(estimate.bytes)});
  json.member("low", std::int64_t{std::llround(interval.low)});
  json.member("high", std::int64_t{std::llround(interval.high)});
  json.member("blocks", std::int64_t{std::llround(estimate.blocks)});
  json.member("samples", static_cast<std::int64_t>(estimate.samples));
  json.end_object();
}

}  // namespace plimsoll::cli
