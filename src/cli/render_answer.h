// cli/render_answer.h: what a statement of `heap query` gives, as text and as JSON.
#pragma once

#include <string>

#include "cli/terminal.h"
#include "sql/query.h"

namespace plimsoll::cli {

// A table; columns of numbers are aligned right, and nothing is told of what is NULL.
std::string render_answer(const sql::Answer& answer, const Page& page);
// {"columns": [names], "rows": [[values]], "more": whether there are more} (docs/json.md).
std::string answer_json(const sql::Answer& answer);

}  // namespace plimsoll::cli
