// cli/render_dump.h: the stacks of a process, as text and as JSON.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "cli/source_text.h"
#include "cli/terminal.h"
#include "remote/dump.h"

namespace plimsoll::cli {

// The lines of a file that a frame names.
using SourceLookup = std::function<const SourceText&(std::string_view file)>;

std::string render_dump(const remote::Dump& dump, const SourceLookup& source, const Page& page);
// docs/json.md describes it.
std::string dump_json(const remote::Dump& dump, const SourceLookup& source);

}  // namespace plimsoll::cli
