#include "cli/dumped_greenlets.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "cli/units.h"
#include "cli/utf8.h"

namespace plimsoll::cli {
namespace {

using remote::DumpedFrame;
using remote::DumpedGreenlet;
using remote::GreenletDump;

// What greenlets of a group share.
using GroupKey = std::tuple<std::optional<Tid>, bool, DumpedGreenlet::State, std::optional<std::size_t>, bool,
                            std::vector<std::tuple<std::string_view, std::string_view, std::int32_t, std::int32_t>>>;

GroupKey key_of(const DumpedGreenlet& greenlet) {
  GroupKey key{greenlet.thread, greenlet.is_main, greenlet.state, greenlet.parent, greenlet.is_truncated, {}};
  for (const DumpedFrame& frame : greenlet.frames)
    std::get<5>(key).emplace_back(frame.function, frame.file, frame.at.line, frame.at.column);
  return key;
}

bool has_variables(const DumpedGreenlet& greenlet) {
  return std::any_of(greenlet.frames.begin(), greenlet.frames.end(),
                     [](const DumpedFrame& frame) { return !frame.locals.variables.empty(); });
}

// The module of a class says little.
std::string type_of(const DumpedGreenlet& greenlet) {
  return printable(greenlet.type.substr(greenlet.type.rfind('.') + 1));
}

// "Worker 0x7f12 "fetch"".
std::string name_of(const DumpedGreenlet& greenlet) {
  const std::string name = greenlet.name.empty() ? "" : fmt::format(" \"{}\"", printable(greenlet.name));
  return fmt::format("{} {:#x}{}", type_of(greenlet), raw(greenlet.address), name);
}

// "greenlet Worker 0x7f12", "main greenlet 0x7f34".
std::string full_name_of(const DumpedGreenlet& greenlet) {
  const std::string_view kind = type_of(greenlet) == "greenlet" ? "" : "greenlet ";
  return fmt::format("{}{}{}", greenlet.is_main ? "main " : "", kind, name_of(greenlet));
}

}  // namespace

std::vector<GreenletGroup> groups_of(const GreenletDump& dump) {
  std::vector<GreenletGroup> groups;
  std::map<GroupKey, std::size_t> known;
  for (std::size_t i = 0; i < dump.greenlets.size(); ++i) {
    const DumpedGreenlet& greenlet = dump.greenlets[i];
    std::size_t group = groups.size();
    if (!has_variables(greenlet)) group = known.try_emplace(key_of(greenlet), group).first->second;
    if (group == groups.size()) groups.emplace_back();
    groups[group].members.push_back(i);
  }
  return groups;
}

std::string heading_of(const GreenletGroup& group, const GreenletDump& dump) {
  const DumpedGreenlet& first = dump.greenlets[group.members.front()];
  const bool is_one = group.members.size() == 1;
  std::string words = is_one ? full_name_of(first) : plural(group.members.size(), "greenlet");
  switch (first.state) {
    case DumpedGreenlet::State::kRunning: words += ": runs"; break;
    case DumpedGreenlet::State::kSuspended: words += ": suspended"; break;
    case DumpedGreenlet::State::kNew: words += ": not begun"; break;
  }
  if (first.thread)
    words += fmt::format("{} thread {}", first.state == DumpedGreenlet::State::kRunning ? " in" : ", of",
                         static_cast<int>(*first.thread));
  if (first.parent) words += (is_one ? ", child of " : ", children of ") + name_of(dump.greenlets[*first.parent]);
  return words;
}

std::string names_of(const GreenletGroup& group, const GreenletDump& dump) {
  constexpr std::size_t kMostNamed = 3;
  const std::size_t named = std::min(group.members.size(), kMostNamed);
  std::string words;
  for (std::size_t i = 0; i < named; ++i) words += (i > 0 ? ", " : "") + name_of(dump.greenlets[group.members[i]]);
  const std::size_t rest = group.members.size() - named;
  return rest == 0 ? words : fmt::format("{} and {} more", words, rest);
}

std::string_view text(DumpedGreenlet::State state) {
  switch (state) {
    case DumpedGreenlet::State::kRunning: return "running";
    case DumpedGreenlet::State::kSuspended: return "suspended";
    case DumpedGreenlet::State::kNew: break;
  }
  return "new";
}

}  // namespace plimsoll::cli
