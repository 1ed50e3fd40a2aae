#include "capture/exact_recorder.h"

#include <algorithm>
#include <boost/container_hash/hash.hpp>
#include <iterator>
#include <tuple>
#include <utility>

#include "base/clock.h"

namespace plimsoll::capture {
namespace {

constexpr std::int64_t kShortestEpoch = 50'000'000;
// So much of a log of events is lost at most when the program is killed, beside what is not in the file yet.
constexpr std::int64_t kBetweenEvents = 200'000'000;
// An epoch is at least this part of the time that the recording has lasted,
constexpr std::int64_t kEpochShare = 16;
// and this many times as long as it took to tell of the last one, where there are very many stacks.
constexpr std::int64_t kCostShare = 100;

// Rows of one kind are one row: they came from several sites, whose blocks differ in size.
std::vector<ExactRow> merged(const std::vector<ExactRow>& rows) {
  using Key = std::tuple<int, int, int, CallNode, std::uint32_t>;
  boost::unordered_flat_map<Key, std::size_t, boost::hash<Key>> place;
  std::vector<ExactRow> result;
  for (const ExactRow& row : rows) {
    const Key key{static_cast<int>(row.change), static_cast<int>(row.domain), row.epoch, row.stack, row.type};
    const auto [found, is_new] = place.try_emplace(key, result.size());
    if (is_new) {
      result.push_back(row);
      continue;
    }
    result[found->second].blocks += row.blocks;
    result[found->second].bytes += row.bytes;
  }
  return result;
}

}  // namespace

ExactRecorder::ExactRecorder(const Interpreter& interpreter, CpuSampler& sampler, SeenFilter& seen,
                             std::size_t max_depth, const native::Modules* modules)
    : sampler_(sampler),
      stacks_(interpreter, sampler, seen, max_depth, modules),
      clock_ns_(monotonic_ns()),
      nodes_(1),
      epoch_ends_(256) {}

void ExactRecorder::add(ExactBatch batch) {
  if (is_closed_.load()) return;
  const std::lock_guard guard(mutex_);
  batches_.push_back(std::move(batch));
}

void ExactRecorder::add(EventBatch batch) {
  if (is_closed_.load()) return note_words_done(batch.words.size());
  const std::lock_guard guard(mutex_);
  events_.push_back(std::move(batch));
}

void ExactRecorder::note_words_done(std::size_t words) {
  if (const WordsDone words_done = words_done_.load(); words_done != nullptr) words_done(words);
}

void ExactRecorder::keep_time(std::int64_t now_ns, std::int64_t start_ns) {
  clock_ns_.store(now_ns, std::memory_order_relaxed);
  if (next_epoch_ns_ == 0) next_epoch_ns_ = start_ns + kShortestEpoch;
  if (now_ns < next_epoch_ns_) return;
  next_epoch_ns_ =
      now_ns + (words_done_.load() != nullptr
                    ? kBetweenEvents
                    : std::max({kShortestEpoch, (now_ns - start_ns) / kEpochShare, pass_on_ns_ * kCostShare}));
  attention_.fetch_or(kWantsEpoch, std::memory_order_relaxed);
}

void ExactRecorder::collect(Resolver& resolver) {
  {
    const std::lock_guard guard(mutex_);
    std::move(batches_.begin(), batches_.end(), std::back_inserter(collected_));
    batches_.clear();
    std::move(events_.begin(), events_.end(), std::back_inserter(collected_events_));
    events_.clear();
  }
  // After the batches: all nodes that those name are there.
  resolve_new(resolver);
}

void ExactRecorder::pass_on(Resolver& resolver, SampleSink& sink) {
  for (EventBatch& batch : collected_events_) pass_on_events(std::move(batch), resolver, sink);
  collected_events_.clear();
  if (collected_.empty()) return;
  const std::int64_t began_ns = monotonic_ns();
  for (const ExactBatch& batch : collected_) pass_on_batch(batch, resolver, sink);
  pass_on_ns_ = monotonic_ns() - began_ns;
  collected_.clear();
}

void ExactRecorder::resolve_new(Resolver& resolver) {
  stacks_.take_new(new_);
  for (const CallNodeInfo& info : new_) {
    ResolvedNode& node = nodes_.emplace_back();
    node.parent = info.parent;
    node.kind = info.kind;
    node.thread = info.parent == 0 ? info.thread : nodes_[info.parent].thread;
    node.is_known = true;
    if (info.kind == CallNodeInfo::Kind::kMachineCode)
      node.frame = resolver.resolve_machine_code(info.frame.code, info.time_ns);
    if (info.kind != CallNodeInfo::Kind::kFrame) continue;
    node.is_known = resolver.resolve_frame(info.frame, info.time_ns, node.frame, node.code);
    if (!node.is_known) sampler_.count_drop(DropReason::kUnknownCode, 0);
  }
}

bool ExactRecorder::find_stack(CallNode number, Sample& sample, Resolver& resolver) {
  frames_.clear();
  bool is_known = true;
  CallNode at = number < nodes_.size() ? number : 0;
  for (; at != 0 && !is_root(nodes_[at].kind); at = nodes_[at].parent) {
    const ResolvedNode& node = nodes_[at];
    const bool is_python = node.kind == CallNodeInfo::Kind::kFrame;
    is_known = is_known && node.is_known;
    if (!is_known || (is_python && node.code == nullptr)) continue;
    if (is_python)
      resolver.announce(node.frame.code, *node.code);
    else
      resolver.announce_machine_code(node.frame.code);
    frames_.push_back(node.frame);
  }
  if (!is_known) frames_.clear();
  std::reverse(frames_.begin(), frames_.end());
  const bool has_root = at != 0;
  sample.is_truncated = has_root && nodes_[at].kind == CallNodeInfo::Kind::kTruncated;
  sample.has_python = !has_root || nodes_[at].kind != CallNodeInfo::Kind::kNative;
  sample.frames = frames_;
  return is_known;
}

bool ExactRecorder::find_names(CallNode number, std::vector<NamedFrame>& frames) const {
  frames.clear();
  if (number == 0 || number >= nodes_.size()) return false;
  for (CallNode at = number; at != 0 && nodes_[at].kind == CallNodeInfo::Kind::kFrame; at = nodes_[at].parent) {
    const ResolvedNode& node = nodes_[at];
    if (!node.is_known) return false;
    if (node.code != nullptr) frames.push_back({node.code, node.frame.at.line});
  }
  return true;
}

void ExactRecorder::describe(CallNode number, Sample& sample, Resolver& resolver, const SampleSink& sink) {
  if (number < nodes_.size()) sample.thread = nodes_[number].thread;
  if (sample.thread.is_none()) sample.thread = ThreadSerial{0};
  if (!sink.knows_stack(number)) find_stack(number, sample, resolver);
}

void ExactRecorder::pass_on_events(EventBatch batch, Resolver& resolver, SampleSink& sink) {
  for (const EventBatch::Site& site : batch.sites) {
    AllocationSite out;
    out.stack_number = site.stack;
    describe(site.stack, out.stack, resolver, sink);
    out.domain = site.domain;
    out.size = site.size;
    sink.allocation_site(out);
  }
  note_words_done(batch.words.size());
  if (!batch.words.empty()) sink.allocation_events(std::move(batch.words));
  for (const auto& [slot, type] : batch.living) sink.allocation_type(slot, batch.types[type]);
}

void ExactRecorder::pass_on_batch(const ExactBatch& batch, Resolver& resolver, SampleSink& sink) {
  epoch_ends_[batch.epoch] = batch.time_ns;
  for (const ExactRow& row : merged(batch.rows)) {
    ExactAllocation out;
    out.stack_number = row.stack;
    describe(row.stack, out.stack, resolver, sink);
    out.change = row.change;
    out.domain = row.domain;
    out.born_ns = row.change == ExactChange::kPeak ? batch.peak_ns : epoch_ends_[row.epoch];
    out.at_ns = batch.time_ns;
    out.blocks = row.blocks;
    out.bytes = row.bytes;
    if (row.type != 0) out.type = batch.types[row.type - 1];
    if (out.blocks != 0 || out.bytes != 0) sink.exact_allocation(out);
  }
}

}  // namespace plimsoll::capture
