#include "capture/resolve.h"

#include <algorithm>

namespace plimsoll::capture {

bool Resolver::resolve(const RawSample& raw, std::span<const cpython::PyFrame> frames) {
  frames_.clear();
  const std::uint32_t epoch = sink_.code_epoch();
  bool all_known = true;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const cpython::PyFrame& frame = frames[frames.size() - 1 - i];  // a Sample is root first
    const CodeRegistry::Entry* entry = registry_.find(frame.code, raw.time_ns);
    if (entry == nullptr) return false;
    if (entry->info->is_init_cleanup()) continue;
    if (trust_ == Trust::kKnown && entry->known_since_ns >= raw.time_ns) all_known = false;
    const std::size_t id = entry->id.index();
    if (id >= announced_.size()) {
      announced_.resize(id + 1);
      locations_.resize(id + 1);
    }
    if (announced_[id] != epoch) {
      sink_.code(entry->id, *entry->info);
      announced_[id] = epoch;
    }
    frames_.push_back(SampleFrame{entry->id, location_of(*entry, frame.position)});
  }
  if (!all_known) return false;
  Sample sample;
  sample.time_ns = raw.time_ns;
  sample.cpu_ns = raw.cpu_ns;
  sample.thread = raw.thread;
  sample.is_truncated = raw.stop == cpython::WalkStop::kTruncated;
  sample.has_python = raw.python == RawSample::Python::kFrames;
  sample.frames = frames_;
  sink_.sample(sample);
  return true;
}

cpython::Location Resolver::location_of(const CodeRegistry::Entry& entry, std::int32_t position) {
  auto& known = locations_[entry.id.index()];
  const auto found = std::lower_bound(known.begin(), known.end(), position,
                                      [](const auto& pair, std::int32_t wanted) { return pair.first < wanted; });
  if (found != known.end() && found->first == position) return found->second;
  const cpython::Location location =
      cpython::locate_near(line_table_style_, entry.info->line_table, entry.info->first_line, position);
  known.insert(found, {position, location});
  return location;
}

void Resolver::forget_deaths_before(std::int64_t time_ns) {
  for (const CodeId id : registry_.forget_deaths_before(time_ns)) {
    if (id.index() >= announced_.size()) continue;
    locations_[id.index()] = {};
    if (announced_[id.index()] != 0) sink_.forget_code(id);
  }
}

}  // namespace plimsoll::capture
