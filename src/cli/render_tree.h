// cli/render_tree.h: the call tree as text.
#pragma once

#include <string>

#include "cli/terminal.h"
#include "cli/tree_view.h"

namespace plimsoll::cli {

// The table of the view's rows and a line about what the view left out.
std::string render_tree(const profile::Profile& profile, const profile::Tree& tree, const TreeView& view,
                        const TreeOptions& options, const Page& page);

}  // namespace plimsoll::cli
