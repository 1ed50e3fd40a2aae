#include "heap/groups.h"

#include <algorithm>
#include <array>
#include <bit>

namespace plimsoll::heap {
namespace {

constexpr std::array<std::string_view, kGenerationCount> kGenerations{"young",  "middle",      "old",
                                                                      "frozen", "not tracked", "not known"};

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
  for (const std::uint64_t size : snapshot.size) result.of.push_back(static_cast<std::uint32_t>(std::bit_width(size)));
  return result;
}

Places grouping(const Snapshot& snapshot, GroupBy by) {
  switch (by) {
    case GroupBy::kPlace: return places(snapshot);
    case GroupBy::kReferrers: return referrer_classes(snapshot, reversed(snapshot.graph));
    case GroupBy::kModule: return by_module(snapshot);
    case GroupBy::kGeneration: return by_generation(snapshot);
    case GroupBy::kSize: return by_size(snapshot);
  }
  return {};
}

}  // namespace

std::optional<GroupBy> group_by(std::string_view name) {
  if (name == "place") return GroupBy::kPlace;
  if (name == "referrers") return GroupBy::kReferrers;
  if (name == "module") return GroupBy::kModule;
  if (name == "generation") return GroupBy::kGeneration;
  if (name == "size") return GroupBy::kSize;
  return std::nullopt;
}

std::vector<GroupRow> groups(const Snapshot& snapshot, const Dominance& dominance, GroupBy by,
                             const std::vector<bool>& chosen) {
  const Places group = grouping(snapshot, by);
  const std::vector<bool> is_topmost = topmost_of_their_group(dominance.tree, group.of, group.names.size(), chosen);
  std::vector<GroupRow> rows(group.names.size());
  for (Node node = 0; node < snapshot.object_count; ++node) {
    if (!chosen[node]) continue;
    GroupRow& row = rows[group.of[node]];
    ++row.count;
    row.size += snapshot.size[node];
    if (is_topmost[node]) row.retained += dominance.retained[node];
  }
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i].name = group.names[i];
  std::erase_if(rows, [](const GroupRow& row) { return row.count == 0; });
  std::stable_sort(rows.begin(), rows.end(), [](const GroupRow& a, const GroupRow& b) { return a.size > b.size; });
  return rows;
}

std::string_view generation_name(Generation generation) { return kGenerations[static_cast<std::size_t>(generation)]; }

}  // namespace plimsoll::heap
