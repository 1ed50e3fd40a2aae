#include "server/list_page.h"

#include <array>
#include <cstdio>
#include <ctime>

#include "formats/labels.h"
#include "server/url.h"

namespace plimsoll::server {
namespace {

constexpr std::string_view kBefore = R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Plimsoll: profiles</title>
<style>
:root { color-scheme: light dark; font: 14px/1.5 system-ui, sans-serif; }
body { margin: 0 auto; max-width: 64rem; padding: 0 16px 24px; }
table { width: 100%; border-collapse: collapse; font-variant-numeric: tabular-nums; }
th { text-align: left; }
td, th { padding: 3px 16px 3px 0; border-bottom: 1px solid color-mix(in srgb, currentcolor 20%, transparent); }
td:first-child { overflow-wrap: anywhere; }
.size { text-align: right; white-space: nowrap; }
</style>
</head>
<body>
<h1>Profiles</h1>
)";

constexpr std::string_view kNone = R"(<p>There are none yet: <code>plimsoll run -o DIRECTORY/app.plim app.py</code>, or
<code>plimsoll upload app.plim --web-url ADDRESS</code> with the address of this page.</p>
)";

// What vmprof's clients print leads to the profile of that number.
constexpr std::string_view kAfter = R"(<script>
const asked = /^#\/([0-9a-f-]{36})/.exec(location.hash);
const link = asked && document.querySelector(`a[href$="-${asked[1]}.prof"]`);
if (link) location.replace(link.href);
</script>
</body>
</html>
)";

std::string size_text(std::int64_t bytes) {
  constexpr std::array<const char*, 4> kUnits = {"kB", "MB", "GB", "TB"};
  if (bytes < 1000) return std::to_string(bytes) + " B";
  double value = static_cast<double>(bytes) / 1000;
  std::size_t unit = 0;
  for (; value >= 999.5 && unit + 1 < kUnits.size(); ++unit) value /= 1000;
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(),
                value < 9.995   ? "%.2f %s"
                : value < 99.95 ? "%.1f %s"
                                : "%.0f %s",
                value, kUnits[unit]);
  return text.data();
}

std::string date_text(std::int64_t realtime_ns) {
  const auto seconds = static_cast<std::time_t>(realtime_ns / 1'000'000'000);
  std::tm parts{};
  std::array<char, 64> text{};
  if (::gmtime_r(&seconds, &parts) != nullptr) std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S UTC", &parts);
  return text.data();
}

void add_row(std::string& page, const StoredProfile& profile) {
  const std::string name = html_escaped(formats::valid_utf8(profile.name));
  const std::string link = percent_encoded(profile.name);
  page += "<tr><td><a href=\"graph/" + link + "\">" + name + "</a></td>";
  page += "<td>" + date_text(profile.modified_ns) + "</td>";
  page += "<td class=\"size\">" + size_text(profile.bytes) + "</td>";
  page += "<td><a href=\"open/" + link + "\">Firefox Profiler</a></td>";
  page += "<td><a href=\"file/" + link + "\">file</a></td></tr>\n";
}

}  // namespace

std::string html_escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '&')
      out += "&amp;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

std::string list_page(const std::vector<StoredProfile>& profiles) {
  std::string page(kBefore);
  if (profiles.empty()) {
    page += kNone;
  } else {
    page +=
        "<table>\n<thead><tr><th>Flame graph</th><th>Changed</th><th class=\"size\">Size</th><th></th><th></th></tr>"
        "</thead>\n<tbody>\n";
    for (const StoredProfile& profile : profiles) add_row(page, profile);
    page += "</tbody>\n</table>\n";
  }
  if (profiles.size() == ProfileStore::kMostListed) page += "<p>Older ones are not listed.</p>\n";
  page += kAfter;
  return page;
}

}  // namespace plimsoll::server
