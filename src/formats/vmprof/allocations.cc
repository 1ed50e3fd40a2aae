// formats/vmprof/allocations.cc: samples and objects side by side.
#include "formats/vmprof/allocations.h"

#include <algorithm>

namespace plimsoll::formats::vmprof {
namespace {

constexpr std::string_view kStatisticMeta = "gc_stats__";

// Sizes are bytes; what else there is are numbers of states and of objects.
std::string_view unit_of(std::string_view statistic) {
  for (const std::string_view word : {"memory", "size", "Rss", "RSS"})
    if (statistic.find(word) != std::string_view::npos) return "bytes";
  return "";
}

}  // namespace

Allocations::Allocations(profile::Profile& profile, const Survey& survey, Layout layout)
    : profile_(profile), survey_(survey), layout_(layout) {
  for (const auto& [name, value] : survey.meta)
    if (name.starts_with(kTypeMeta)) types_.emplace(name.substr(kTypeMeta.size()), value);
  for (std::size_t i = 0; i < survey.meta.size(); ++i) {
    const std::string_view name = survey.meta_value(std::string(kStatisticMeta) + std::to_string(i));
    if (name.empty()) break;
    statistics_.push_back({ProcessId{0}, std::string(name), std::string(unit_of(name)), {}, {}});
  }
}

void Allocations::stack(std::int64_t time_ns, ThreadId thread, StackId stack) {
  samples_.push_back({time_ns, thread, stack});
}

void Allocations::objects(std::int64_t time_ns, std::string_view entries) {
  const std::size_t count = entries.size() / layout_.address;
  const auto entry = [&](std::size_t i) { return number_at(entries, i * layout_.address, layout_.address); };
  constexpr std::int64_t kLargest = std::int64_t{1} << 61U;  // so that differences of two fit into 64 bits
  const std::size_t objects = count - std::min(count, statistics_.size());
  for (std::size_t i = objects; i > 0; --i) objects_.push_back(entry(i - 1));
  for (std::size_t i = objects; i < count; ++i) {
    statistics_[i - objects].time_ns.push_back(time_ns);
    statistics_[i - objects].value.push_back(std::clamp(entry(i), -kLargest, kLargest));
  }
}

std::string Allocations::type_name(std::uint64_t number) const {
  const std::string digits = std::to_string(number);
  const auto known = types_.find(digits);
  return known == types_.end() || known->second.empty() ? "type " + digits : std::string(known->second);
}

void Allocations::add_marker(const Sample& sample, const std::int64_t* object) {
  profile::Marker marker{sample.time_ns, 0, sample.thread, "allocation", {}};
  if (const FunctionId function = profile_.leaf_function(sample.stack); !function.is_none())
    marker.fields.emplace_back("function", profile_.strings[profile_.functions[function].name]);
  if (object != nullptr) {
    const auto bits = static_cast<std::uint64_t>(*object);
    marker.fields.emplace_back("type", type_name(bits >> 2U));
    marker.fields.emplace_back("survived", (bits & 1U) != 0 ? "yes" : "no");
    if ((bits & 2U) != 0) marker.fields.emplace_back("external", "yes");
  }
  if (const std::string_view bytes = survey_.meta_value("sample_allocated_bytes"); !bytes.empty())
    marker.fields.emplace_back("bytes", bytes);
  profile_.markers.push_back(std::move(marker));
}

void Allocations::finish() {
  for (std::size_t i = 0; i < samples_.size(); ++i) {
    add_marker(samples_[i], i < objects_.size() ? &objects_[i] : nullptr);
    profile_.end_ns = std::max(profile_.end_ns, samples_[i].time_ns);
  }
  for (profile::Counter& statistic : statistics_)
    if (!statistic.value.empty()) profile_.counters.push_back(std::move(statistic));
}

}  // namespace plimsoll::formats::vmprof
