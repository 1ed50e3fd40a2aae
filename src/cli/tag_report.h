// cli/tag_report.h: how much time went into what, by the program's own words for it (plimsoll.tag).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/activity.h"
#include "cli/terminal.h"
#include "profile/profile.h"

namespace plimsoll::cli {

// The samples that have one value of one tag; or no tag at all.
struct TagRow {
  profile::Tag tag;  // without a name: no tag
  std::int64_t sampled_ns = 0;
  std::array<std::int64_t, kActivityCount> by_activity{};  // the same, by Activity
  std::uint64_t samples = 0;
};

// The tag with the most time first, and of each tag the value with the most; samples without tags come last. A sample
// with several tags counts for each of them.
std::vector<TagRow> tag_report(const profile::Profile& profile);

// At most `limit` rows as a table; 0 = all.
std::string render_tags(const profile::Profile& profile, const std::vector<TagRow>& rows, std::size_t limit,
                        const Page& page);

}  // namespace plimsoll::cli
