#include "capture/resolve.h"

#include <algorithm>

namespace plimsoll::capture {

void Resolver::announce(CodeId id, const cpython::CodeInfo& info) {
  const std::uint32_t epoch = sink_.code_epoch();
  if (id.index() >= announced_.size()) {
    announced_.resize(id.index() + 1);
    locations_.resize(id.index() + 1);
  }
  if (announced_[id.index()] == epoch) return;
  sink_.code(id, info);
  announced_[id.index()] = epoch;
}

bool Resolver::resolve_frames(const RawSample& raw, std::span<const cpython::PyFrame> frames, Codes codes) {
  frames_.clear();
  codes_.clear();
  bool all_known = true;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const cpython::PyFrame& frame = frames[frames.size() - 1 - i];  // a Sample is root first
    const CodeRegistry::Entry* entry = registry_.find(frame.code, raw.time_ns);
    if (entry == nullptr) return false;
    if (entry->info->is_init_cleanup()) continue;
    if (trust_ == Trust::kKnown && entry->known_since_ns >= raw.time_ns) all_known = false;
    announce(entry->id, *entry->info);
    frames_.push_back(SampleFrame{entry->id, location_of(*entry, frame.position)});
    if (codes == Codes::kKeep) codes_.push_back(entry->info);
  }
  return all_known;
}

bool Resolver::resolve(const RawSample& raw, std::span<const cpython::PyFrame> frames) {
  if (raw.stack != RawSample::Stack::kHere) return resolve_same(raw);
  const bool is_wait = raw.activity != Activity::kRunning;
  if (is_wait) waits_.erase(raw.thread.index());  // of a stack that is not believed nothing may follow, either
  if (!resolve_frames(raw, frames, is_wait ? Codes::kKeep : Codes::kForget)) return false;
  const std::shared_ptr<const Tags> tags = tags_of_sample(raw);
  const Sample sample = sample_of(raw, tags.get());
  sink_.sample(sample);
  if (is_wait)
    waits_[raw.thread.index()] = Wait{frames_, codes_, raw.tags, tags, sample.is_truncated, sample.has_python};
  return true;
}

bool Resolver::resolve_allocation(const RawSample& raw, const RawAllocation& block,
                                  std::span<const cpython::PyFrame> frames) {
  if (!resolve_frames(raw, frames, Codes::kForget)) return false;
  const std::shared_ptr<const Tags> tags = tags_of_sample(raw);
  Allocation allocation;
  allocation.sample = sample_of(raw, tags.get());
  allocation.block = block;
  sink_.allocation(allocation);
  return true;
}

bool Resolver::resolve_frame(const cpython::PyFrame& frame, std::int64_t time_ns, SampleFrame& out,
                             std::shared_ptr<const cpython::CodeInfo>& code) {
  const CodeRegistry::Entry* entry = registry_.find(frame.code, time_ns);
  if (entry == nullptr) return false;
  if (entry->info->is_init_cleanup()) return true;
  announce(entry->id, *entry->info);
  out = SampleFrame{entry->id, location_of(*entry, frame.position)};
  code = entry->info;
  return true;
}

bool Resolver::resolve_same(const RawSample& raw) {
  const auto found = waits_.find(raw.thread.index());
  if (found == waits_.end()) return raw.weight_ns == 0;
  const Wait& wait = found->second;
  if (raw.weight_ns > 0) {
    for (std::size_t i = 0; i < wait.frames.size(); ++i) announce(wait.frames[i].code, *wait.codes[i]);
    Sample sample = sample_of(raw, wait.tags.get());
    sample.frames = wait.frames;
    sample.is_truncated = wait.is_truncated;
    sample.has_python = wait.has_python;
    sample.tag_number = wait.tag_number;
    sink_.sample(sample);
  }
  if (raw.stack == RawSample::Stack::kSameLast) waits_.erase(found);
  return true;
}

std::shared_ptr<const Tags> Resolver::tags_of_sample(const RawSample& raw) const {
  return raw.tags != 0 && tags_ != nullptr ? tags_->find(raw.tags) : nullptr;
}

Sample Resolver::sample_of(const RawSample& raw, const Tags* tags) const {
  Sample sample;
  sample.time_ns = raw.time_ns;
  sample.weight_ns = raw.weight_ns;
  sample.activity = raw.activity;
  sample.thread = raw.thread;
  sample.is_truncated = raw.stop == cpython::WalkStop::kTruncated;
  sample.has_python = raw.python == RawSample::Python::kFrames;
  sample.frames = frames_;
  sample.tag_number = raw.tags;
  sample.tags = tags;
  return sample;
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
  if (tags_ != nullptr) tags_->forget_deaths_before(time_ns);
  for (const CodeId id : registry_.forget_deaths_before(time_ns)) {
    if (id.index() >= announced_.size()) continue;
    locations_[id.index()] = {};
    if (announced_[id.index()] != 0) sink_.forget_code(id);
  }
}

}  // namespace plimsoll::capture
