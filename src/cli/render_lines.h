// cli/render_lines.h: annotated source as text.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/line_report.h"
#include "cli/source_text.h"
#include "cli/terminal.h"

namespace plimsoll::cli {

// What to show of the files.
struct LinesOptions {
  double min_percent = 1;     // of the total, below which a line is shown only as context
  std::uint32_t context = 2;  // lines around those with time
  std::size_t limit = 10;     // of files; 0 = all
};

// Gives the text of a file; source_of with a profile bound to it, or a fake.
using SourceFinder = std::function<SourceText(std::string_view file)>;

// A section for each file with a line that is heavy enough, and what was left out.
std::string render_lines(const profile::Profile& profile, const LineReport& report, const SourceFinder& find_source,
                         const LinesOptions& options, const Page& page);

}  // namespace plimsoll::cli
