#include "capture/resolve.h"

#include <algorithm>
#include <utility>

#include "cpython/awaiting.h"

namespace plimsoll::capture {

bool Resolver::is_news(CodeId id) {
  const std::uint32_t epoch = sink_.code_epoch();
  return std::exchange(known_[id].epoch, epoch) != epoch;
}

void Resolver::announce(CodeId id, const cpython::CodeInfo& info) {
  if (is_news(id)) sink_.code(id, info);
}

void Resolver::clear_frames() {
  frames_.clear();
  codes_.clear();
  known_since_ns_ = kAlways;
}

bool Resolver::add_frames(const RawSample& raw, std::span<const cpython::PyFrame> frames, Codes codes) {
  return cpython::each_from_outermost(frames, [&](const cpython::PyFrame& frame, std::string_view name) {
    return frame.position == cpython::kTaskMark ? add_task(raw, frame.code, name, codes) : add_frame(raw, frame, codes);
  });
}

bool Resolver::resolve_frames(const RawSample& raw, std::span<const cpython::PyFrame> frames, Codes codes) {
  clear_frames();
  return add_frames(raw, frames, codes);
}

bool Resolver::add_task(const RawSample& raw, Address code, std::string_view name, Codes codes) {
  const CodeRegistry::Entry* coroutine = is_null(code) ? nullptr : registry_.find(code, raw.time_ns);
  if (!is_null(code) && coroutine == nullptr) return false;
  const TaskNames::Named& task =
      task_names_.find(is_null(code) ? std::string(kSeveralTasks) : task_label(name, coroutine->info->name));
  announce(task.id, *task.info);
  frames_.push_back(SampleFrame{task.id, {}});
  if (codes == Codes::kKeep) codes_.push_back(task.info);
  return true;
}

const CodeRegistry::Entry* Resolver::describe(const cpython::PyFrame& frame, std::int64_t time_ns, SampleFrame& out) {
  out = {};
  const CodeRegistry::Entry* entry = registry_.find(frame.code, time_ns);
  if (entry == nullptr || entry->info->is_init_cleanup()) return entry;
  announce(entry->id, *entry->info);
  out = SampleFrame{entry->id, location_of(*entry, frame.position)};
  return entry;
}

bool Resolver::add_frame(const RawSample& raw, const cpython::PyFrame& frame, Codes codes) {
  SampleFrame found;
  const CodeRegistry::Entry* entry = describe(frame, raw.time_ns, found);
  if (entry == nullptr) return false;
  if (found.code.is_none()) return true;
  if (trust_ == Trust::kKnown) known_since_ns_ = std::max(known_since_ns_, entry->known_since_ns);
  frames_.push_back(found);
  if (codes == Codes::kKeep) codes_.push_back(entry->info);
  return true;
}

void Resolver::announce_machine_code(CodeId id) {
  if (is_news(id)) sink_.native_function(id, native_->function(id));
}

void Resolver::add_native_frame(const RawSample& raw, const native::NativeFrame& frame, Codes codes) {
  const std::optional<SampleFrame> found = native_->frame_at(frame.instruction, raw.time_ns);
  if (!found) return;
  frames_.push_back(*found);
  announce_machine_code(frames_.back().code);
  if (codes == Codes::kKeep) codes_.push_back(nullptr);
}

bool Resolver::resolve_both(const RawSample& raw, const NativeStack& native, std::span<const cpython::PyFrame> frames,
                            std::span<const cpython::PyFrame> awaiting, Codes codes, bool& is_matched) {
  // What is beyond a task's step is not shown.
  const cpython::WalkStop stop = awaiting.empty() ? raw.stop : cpython::WalkStop::kTruncated;
  if (counts_calls_)
    is_matched =
        native_ && native_->code() != nullptr && interleave_by_calls(native, *native_->code(), frames, stop, items_);
  else
    is_matched = native_ && interleave(native, frames, stop, items_);
  clear_frames();
  if (!add_frames(raw, awaiting, codes)) return false;
  if (is_matched) {
    for (auto item = items_.rbegin(); item != items_.rend(); ++item)
      if (item->kind == StackItem::Kind::kNative)
        add_native_frame(raw, native.frames[item->index], codes);
      else if (!add_frame(raw, frames[item->index], codes))
        return false;
  } else {
    for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame)
      if (frame->position != cpython::kEntryMark && !add_frame(raw, *frame, codes)) return false;
  }
  return true;
}

bool Resolver::pass_on(const RawSample& raw) {
  const std::shared_ptr<const Tags> tags = tags_of_sample(raw);
  const Sample sample = sample_of(raw, tags.get());
  const bool is_known = known_since_ns_ < raw.time_ns;
  if (is_known) sink_.sample(sample);
  // (What follows of a wait may be known, if it itself is not.)
  if (raw.activity != Activity::kRunning)
    waits_[raw.thread.index()] =
        Wait{frames_, codes_, raw.tags, tags, sample.is_truncated, sample.has_python, known_since_ns_};
  return is_known;
}

bool Resolver::resolve_native(const RawSample& raw, const NativeStack& native, std::span<const cpython::PyFrame> frames,
                              std::span<const cpython::PyFrame> awaiting, bool& is_matched) {
  const bool is_wait = raw.activity != Activity::kRunning;
  if (is_wait) waits_.erase(raw.thread.index());
  if (!resolve_both(raw, native, frames, awaiting, is_wait ? Codes::kKeep : Codes::kForget, is_matched)) return false;
  return pass_on(raw);
}

bool Resolver::resolve(const RawSample& raw, std::span<const cpython::PyFrame> frames) {
  if (raw.stack == RawSample::Stack::kSame || raw.stack == RawSample::Stack::kSameLast) return resolve_same(raw);
  const bool is_wait = raw.activity != Activity::kRunning;
  if (is_wait) waits_.erase(raw.thread.index());  // of a stack that is not believed nothing may follow, either
  if (!resolve_frames(raw, frames, is_wait ? Codes::kKeep : Codes::kForget)) return false;
  return pass_on(raw);
}

bool Resolver::resolve_allocation(const RawSample& raw, const RawAllocation& block,
                                  std::span<const cpython::PyFrame> frames, LivingStacks& living) {
  if (!resolve_frames(raw, frames, Codes::kKeep) || known_since_ns_ >= raw.time_ns) return false;
  pass_on(raw, block, living);
  return true;
}

bool Resolver::resolve_native_allocation(const RawSample& raw, const RawAllocation& block, const NativeStack& native,
                                         std::span<const cpython::PyFrame> frames,
                                         std::span<const cpython::PyFrame> awaiting, LivingStacks& living,
                                         bool& is_matched) {
  if (!resolve_both(raw, native, frames, awaiting, Codes::kKeep, is_matched)) return false;
  if (known_since_ns_ >= raw.time_ns) return false;
  pass_on(raw, block, living);
  return true;
}

void Resolver::pass_on(const RawSample& raw, const RawAllocation& block, LivingStacks& living) {
  living.allocated(block.number, frames_, codes_);
  const std::shared_ptr<const Tags> tags = tags_of_sample(raw);
  Allocation allocation;
  allocation.sample = sample_of(raw, tags.get());
  allocation.block = block;
  sink_.allocation(allocation);
}

bool Resolver::resolve_frame(const cpython::PyFrame& frame, std::int64_t time_ns, SampleFrame& out,
                             std::shared_ptr<const cpython::CodeInfo>& code) {
  const CodeRegistry::Entry* entry = describe(frame, time_ns, out);
  if (entry != nullptr && !out.code.is_none()) code = entry->info;
  return entry != nullptr;
}

bool Resolver::resolve_same(const RawSample& raw) {
  const auto found = waits_.find(raw.thread.index());
  if (found == waits_.end()) return raw.weight_ns == 0;
  const Wait& wait = found->second;
  const bool is_known = wait.known_since_ns < raw.time_ns;
  if (raw.weight_ns > 0 && is_known) {
    for (std::size_t i = 0; i < wait.frames.size(); ++i)
      if (wait.codes[i] != nullptr)
        announce(wait.frames[i].code, *wait.codes[i]);
      else
        announce_machine_code(wait.frames[i].code);
    Sample sample = sample_of(raw, wait.tags.get());
    sample.frames = wait.frames;
    sample.is_truncated = wait.is_truncated;
    sample.has_python = wait.has_python;
    sample.tag_number = wait.tag_number;
    sink_.sample(sample);
  }
  const bool is_told = is_known || raw.weight_ns == 0;
  if (raw.stack == RawSample::Stack::kSameLast) waits_.erase(found);
  return is_told;
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
  auto& known = known_[entry.id].locations;
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
  for (const CodeId id : registry_.forget_deaths_before(time_ns))
    if (known_.forget(id)) sink_.forget_code(id);
}

}  // namespace plimsoll::capture
