// jitlog/forest.cc: look-ups.
#include "jitlog/forest.h"

namespace plimsoll::jitlog {

const MergePoint* Trace::first_place() const {
  for (const Stage& one : stages)
    if (!one.merge_points.empty()) return &one.merge_points.front();
  return nullptr;
}

std::string_view Forest::name_of(const Operation& operation) const {
  const auto found = names.find(operation.number);
  return found == names.end() ? std::string_view("?") : found->second;
}

std::optional<TraceIndex> Forest::bridge_of(std::uint64_t guard) const {
  const auto target = stitch_targets.find(guard);
  if (target == stitch_targets.end()) return std::nullopt;
  const auto found = by_code_address.find(target->second);
  return found == by_code_address.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace plimsoll::jitlog
