#include <algorithm>

#include "heap/views.h"
#include "heap/words.h"

namespace plimsoll::heap {
namespace {

Result<std::vector<FoldRule>> rules_in(std::string_view words) {
  std::vector<FoldRule> rules;
  std::string wrong;
  split(words, ";\n", [&](std::string_view line) {
    if (line[0] == '#') return true;
    const std::size_t colon = std::min(line.find(':'), line.size());
    FoldRule rule{std::string(trimmed(line.substr(0, colon))), {}};
    if (colon != line.size())
      split(line.substr(colon + 1), ",", [&](std::string_view part) {
        rule.parts.emplace_back(part);
        return true;
      });
    if (rule.classes.empty() || rule.parts.empty()) wrong = line;
    rules.push_back(std::move(rule));
    return wrong.empty();
  });
  if (!wrong.empty())
    return Error{ErrorKind::kUsage,
                 "a rule of a view is CLASSES: ATTRIBUTE, ..., or CLASSES: *, not \"" + wrong + "\""};
  return rules;
}

}  // namespace

Result<View> add_view(View below, std::string_view words) {
  words = trimmed(words);
  const auto is_memory = [](const ViewStage& stage) { return stage.kind == ViewStage::Kind::kMemory; };
  const bool has_memory = std::any_of(below.begin(), below.end(), is_memory);
  const bool has_parts = below.size() > (has_memory ? 1U : 0U);
  if (words == "raw") return View{};
  if (words == "memory") {
    if (!has_memory) below.insert(below.begin(), {ViewStage::Kind::kMemory, {}});
    return below;
  }
  if (!has_parts) below.push_back({ViewStage::Kind::kParts, {}});
  if (words == "parts") return below;
  if (words == "module") {
    below.push_back({ViewStage::Kind::kModule, {}});
    return below;
  }
  if (words.find(':') == std::string_view::npos)
    return Error{ErrorKind::kUsage,
                 "no view \"" + std::string(words) +
                     "\": choose raw, memory, parts or module, or give rules (\"app.Cache: entries\"), or a "
                     "file of them"};
  Result<std::vector<FoldRule>> rules = rules_in(words);
  if (!rules.ok()) return rules.error();
  below.push_back({ViewStage::Kind::kRules, rules.take()});
  return below;
}

}  // namespace plimsoll::heap
