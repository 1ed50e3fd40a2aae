// formats/vmprof/periods.h: samples with weights -> numbers of samples without.
#pragma once

#include <cstdint>
#include <vector>

#include "profile/profile.h"

namespace plimsoll::formats::vmprof {

// How often each row is written, and what each time stands for.
struct Periods {
  std::int64_t period_us = 1000;
  std::vector<std::uint32_t> count;  // by row
};
Periods count_periods(const profile::Profile& profile);

}  // namespace plimsoll::formats::vmprof
