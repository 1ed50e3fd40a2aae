// cli/json_output.h: what the commands tell, as JSON. docs/json.md describes it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/line_report.h"
#include "cli/session_facts.h"
#include "cli/summary.h"
#include "cli/tag_report.h"
#include "cli/thread_report.h"
#include "cli/tree_view.h"
#include "profile/flat.h"
#include "profile/tree.h"

namespace plimsoll::cli {

// Each returns one JSON object and a line end.
std::string tree_json(const profile::Profile& profile, const Selection& selection, const profile::Tree& tree,
                      const TreeOptions& options);
std::string flat_json(const profile::Profile& profile, const Selection& selection,
                      const std::vector<profile::FlatRow>& rows);
std::string lines_json(const profile::Profile& profile, const Selection& selection, const LineReport& report);
std::string threads_json(const profile::Profile& profile, const Selection& selection,
                         const std::vector<ThreadRow>& rows);
std::string tags_json(const profile::Profile& profile, const Selection& selection, const std::vector<TagRow>& rows);
std::string info_json(const profile::Profile& profile, const SessionFacts& facts, std::string_view path);

}  // namespace plimsoll::cli
