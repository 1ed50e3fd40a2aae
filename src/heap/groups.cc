#include "heap/groups.h"

#include <algorithm>
#include <array>
#include <bit>
#include <boost/unordered/unordered_flat_map.hpp>

namespace plimsoll::heap {
namespace {

constexpr std::array<std::string_view, kGenerationCount> kGenerations{"young",  "middle",      "old",
                                                                      "frozen", "not tracked", "not known"};

// In the order of GroupBy.
constexpr std::array<std::string_view, 7> kGroupings{"place", "referrers",       "module",          "generation",
                                                     "size",  "allocation-site", "allocation-stack"};

constexpr std::string_view kNoAllocation = "[not recorded]";

// "json.decoder" of "json.decoder.JSONDecoder"; inner classes are in their module with what is around them.
std::string module_of(const std::string& type) {
  const std::size_t dot = type.rfind('.');
  return dot == std::string::npos ? "builtins" : type.substr(0, dot);
}

Places by_module(const Snapshot& snapshot) {
  Places result;
  std::vector<std::uint32_t> of_type;
  for (const Type& type : snapshot.types) {
    const std::string module = module_of(type.name);
    const auto known = std::find(result.names.begin(), result.names.end(), module);
    of_type.push_back(static_cast<std::uint32_t>(known - result.names.begin()));
    if (known == result.names.end()) result.names.push_back(module);
  }
  for (const std::uint32_t type : snapshot.type) result.of.push_back(of_type[type]);
  return result;
}

Places by_generation(const Snapshot& snapshot) {
  Places result;
  result.names.assign(kGenerations.begin(), kGenerations.end());
  result.of.assign(snapshot.type.size(), static_cast<std::uint32_t>(Generation::kUnknown));
  for (std::size_t i = 0; i < snapshot.generation.size(); ++i)
    result.of[i] = static_cast<std::uint32_t>(snapshot.generation[i]);
  return result;
}

Places by_size(const Snapshot& snapshot) {
  constexpr unsigned kBins = 64;
  Places result;
  result.names.emplace_back("0");
  for (unsigned bit = 0; bit < kBins; ++bit) {
    const std::uint64_t from = std::uint64_t{1} << bit;
    result.names.push_back(std::to_string(from) + " to " + std::to_string(from - 1 + from));
  }
  for (std::size_t i = 0; i < snapshot.size.size(); ++i)
    result.of.push_back(static_cast<std::uint32_t>(std::bit_width(snapshot.size[i])));
  return result;
}

enum class Whole : std::uint8_t { kSite, kStack };

Places by_allocation(const Snapshot& snapshot, Whole whole) {
  constexpr std::size_t kMostFrames = 20;
  Places result;
  result.names.emplace_back(kNoAllocation);
  boost::unordered_flat_map<std::string, std::uint32_t> known;
  std::vector<std::uint32_t> of_stack(snapshot.allocated.frames.size(), 0);
  result.names.emplace_back("[root]");
  result.of.assign(snapshot.type.size(), 1);
  std::fill_n(result.of.begin(), snapshot.object_count, 0);
  for (std::size_t i = 0; i < snapshot.allocated.of.size(); ++i) {
    const std::uint32_t stack = snapshot.allocated.of[i];
    if (stack == AllocationStacks::kNone) continue;
    if (of_stack[stack] == 0) {
      const std::string name = whole == Whole::kSite ? describe_site(snapshot.allocated, stack)
                                                     : describe_stack(snapshot.allocated, stack, kMostFrames);
      const auto [found, is_new] = known.try_emplace(name, static_cast<std::uint32_t>(result.names.size()));
      if (is_new) result.names.push_back(name);
      of_stack[stack] = found->second;
    }
    result.of[i] = of_stack[stack];
  }
  return result;
}

Places grouping(const Snapshot& snapshot, GroupBy by) {
  switch (by) {
    case GroupBy::kPlace: return places(snapshot);
    case GroupBy::kReferrers: return referrer_classes(snapshot, reversed(snapshot.graph));
    case GroupBy::kModule: return by_module(snapshot);
    case GroupBy::kGeneration: return by_generation(snapshot);
    case GroupBy::kSize: return by_size(snapshot);
    case GroupBy::kAllocationSite: return by_allocation(snapshot, Whole::kSite);
    case GroupBy::kAllocationStack: return by_allocation(snapshot, Whole::kStack);
  }
  return {};
}

}  // namespace

std::optional<GroupBy> group_by(std::string_view name) {
  const auto found = std::find(kGroupings.begin(), kGroupings.end(), name);
  return found == kGroupings.end() ? std::nullopt : std::optional(static_cast<GroupBy>(found - kGroupings.begin()));
}

std::vector<std::string_view> group_names() { return {kGroupings.begin(), kGroupings.end()}; }

std::vector<GroupRow> groups(const Snapshot& snapshot, const Dominance& dominance, GroupBy by, const NodeSet& chosen) {
  const Places group = grouping(snapshot, by);
  const NodeSet topmost = topmost_of_their_group(dominance.tree, group.of, group.names.size(), chosen);
  std::vector<GroupRow> rows(group.names.size());
  chosen.for_each([&](Node node) {
    GroupRow& row = rows[group.of[node]];
    ++row.count;
    row.size += snapshot.size[node];
    if (topmost.contains(node)) row.retained += dominance.retained[node];
  });
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i].name = group.names[i];
  std::erase_if(rows, [](const GroupRow& row) { return row.count == 0; });
  std::stable_sort(rows.begin(), rows.end(), [](const GroupRow& a, const GroupRow& b) { return a.size > b.size; });
  return rows;
}

std::string_view generation_name(Generation generation) { return kGenerations[static_cast<std::size_t>(generation)]; }

}  // namespace plimsoll::heap
