#include "capture/exact_recorder.h"

#include <algorithm>
#include <iterator>
#include <new>
#include <utility>

#include "base/clock.h"

namespace plimsoll::capture {
namespace {

constexpr std::int64_t kShortestEpoch = 50'000'000;
// So much of a log of events is lost at most when the program is killed, beside what is not in the file yet.
constexpr std::int64_t kBetweenEvents = 200'000'000;
// A program that has not told of an epoch by then is taken for idle.
constexpr std::int64_t kPatience = 100'000'000;
// An epoch is at least this part of the time that the recording has lasted,
constexpr std::int64_t kEpochShare = 16;
// and this many times as long as it took to tell of the last one, where there are very many stacks.
constexpr std::int64_t kCostShare = 100;

bool is_same(const ExactRow& row, const ExactRow& other) {
  return row.change == other.change && row.domain == other.domain && row.epoch == other.epoch;
}
bool is_same(const TypedRow& row, const TypedRow& other) {
  return is_same(static_cast<const ExactRow&>(row), static_cast<const ExactRow&>(other)) && row.type == other.type;
}

}  // namespace

ExactRecorder::ExactRecorder(const Interpreter& interpreter, CpuSampler& sampler, SeenFilter& seen,
                             std::size_t max_depth, const native::Modules* modules)
    : sampler_(sampler),
      stacks_(interpreter, sampler, seen, max_depth, modules),
      clock_ns_(monotonic_ns()),
      frames_(1),
      epoch_ends_(256) {
  nodes_.push_back({});
  nodes_[0].kind = CallNodeInfo::Kind::kThread;
}

void ExactRecorder::add(ExactBatch batch) {
  if (is_closed_.load()) return;
  const std::lock_guard guard(mutex_);
  batches_.push_back(std::move(batch));
}

void ExactRecorder::add(EventBatch batch) {
  if (is_closed_.load()) return give_back(std::move(batch.words));
  const std::lock_guard guard(mutex_);
  events_.push_back(std::move(batch));
}

void ExactRecorder::give_back(std::vector<std::uint32_t> words) {
  if (const WordsDone words_done = words_done_.load(); words_done != nullptr) words_done(std::move(words));
}

void ExactRecorder::keep_time(std::int64_t now_ns, std::int64_t start_ns) {
  clock_ns_.store(now_ns, std::memory_order_relaxed);
  if (const TimeHasPassed tell = time_has_passed_.load(); tell != nullptr) tell();
  if (next_epoch_ns_ == 0) next_epoch_ns_ = start_ns + kShortestEpoch;
  if (const HandOver hand_over = hand_over_.load(); hand_over != nullptr && now_ns >= asked_ns_ + kPatience)
    hand_over();
  if (now_ns < next_epoch_ns_) return;
  next_epoch_ns_ =
      now_ns + (words_done_.load() != nullptr
                    ? kBetweenEvents
                    : std::max({kShortestEpoch, (now_ns - start_ns) / kEpochShare, pass_on_ns_ * kCostShare}));
  // (Who is asked again has not told for as long as before: epochs may be shorter than the patience.)
  if (const AskForEpoch ask = ask_for_epoch_.load(); ask != nullptr && ask()) asked_ns_ = now_ns;
}

void ExactRecorder::fetch() {
  if (const AskForEpoch ask = ask_for_epoch_.load(); ask != nullptr) (void)ask();
  if (const HandOver hand_over = hand_over_.load(); hand_over != nullptr) hand_over();
}

void ExactRecorder::collect(Resolver& resolver) {
  if (has_failed_.load()) throw std::bad_alloc();
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
  for (ExactBatch& batch : collected_) pass_on_batch(batch, resolver, sink);
  pass_on_ns_ = monotonic_ns() - began_ns;
  collected_.clear();
}

void ExactRecorder::resolve_new(Resolver& resolver) {
  stacks_.take_new(new_);
  for (const CallNodeInfo& info : new_) {
    ResolvedNode node;
    node.parent = info.parent;
    node.kind = info.kind;
    node.thread = info.parent == 0 ? info.thread : nodes_[info.parent].thread;
    if (!is_root(info.kind)) {
      node.frame = resolve(info, resolver);
      node.is_known = node.frame != 0 && nodes_[info.parent].is_known;
      if (node.frame == 0) sampler_.count_drop(DropReason::kUnknownCode, 0);
    }
    nodes_.push_back(node);
  }
}

std::uint32_t ExactRecorder::resolve(const CallNodeInfo& info, Resolver& resolver) {
  const cpython::PyFrame& frame = info.frame;
  const std::uint64_t hash = (raw(frame.code) + static_cast<std::uint32_t>(frame.position)) * 0x9e3779b97f4a7c15U;
  LastResolved& last = last_resolved_[hash >> 54U];
  if (last.frame != 0 && last.code == frame.code && last.position == frame.position && last.time_ns == info.time_ns &&
      last.kind == info.kind)
    return last.frame;
  ResolvedFrame found;
  if (info.kind == CallNodeInfo::Kind::kMachineCode)
    found.frame = resolver.resolve_machine_code(frame.code, info.time_ns);
  else if (!resolver.resolve_frame(frame, info.time_ns, found.frame, found.code))
    return 0;
  else
    found.frame.at.column = 0;  // which would be that of the first of a line's that was met
  frames_.push_back(std::move(found));
  last = {frame.code, info.time_ns, frame.position, info.kind, static_cast<std::uint32_t>(frames_.size() - 1)};
  return last.frame;
}

ExactStack ExactRecorder::stack_of(CallNode number, Resolver& resolver) const {
  using Kind = ExactStack::Kind;
  const ResolvedNode& node = nodes_[number];
  const ResolvedFrame& frame = frames_[node.frame];
  ExactStack stack{number, node.parent, Kind::kFrame, frame.frame};
  if (node.kind == CallNodeInfo::Kind::kTruncated) {
    stack.kind = Kind::kTruncated;
  } else if (is_root(node.kind) || !node.is_known) {
    // (Of a stack of which not all is known it is only told whose it is.)
    CallNode root = number;
    while (!is_root(nodes_[root].kind)) root = nodes_[root].parent;
    stack.kind = nodes_[root].kind == CallNodeInfo::Kind::kNative ? Kind::kNative : Kind::kNoPython;
  } else if (node.kind == CallNodeInfo::Kind::kMachineCode && !frame.frame.code.is_none()) {
    resolver.announce_machine_code(frame.frame.code);
  } else if (frame.code == nullptr) {
    stack.kind = Kind::kHidden;
  } else {
    resolver.announce(frame.frame.code, *frame.code);
  }
  return stack;
}

CallNode ExactRecorder::tell_stack(CallNode number, Resolver& resolver, SampleSink& sink) {
  if (number >= nodes_.size()) number = 0;
  untold_.clear();
  for (CallNode at = number; !sink.knows_stack(at); at = nodes_[at].parent) {
    untold_.push_back(at);
    if (is_root(nodes_[at].kind)) break;
  }
  for (; !untold_.empty(); untold_.pop_back()) sink.exact_stack(stack_of(untold_.back(), resolver));
  return number;
}

ThreadSerial ExactRecorder::thread_of(CallNode number) const {
  const ThreadSerial thread = nodes_[number].thread;
  return thread.is_none() ? ThreadSerial{0} : thread;
}

bool ExactRecorder::find_names(CallNode number, std::vector<NamedFrame>& frames) const {
  frames.clear();
  if (number == 0 || number >= nodes_.size()) return false;
  for (CallNode at = number; at != 0 && !is_root(nodes_[at].kind); at = nodes_[at].parent) {
    const ResolvedNode& node = nodes_[at];
    if (!node.is_known) return false;
    // (Of machine code there is no name yet.)
    const ResolvedFrame& frame = frames_[node.frame];
    if (frame.code != nullptr) frames.push_back({frame.code, frame.frame.at.line});
  }
  return true;
}

void ExactRecorder::pass_on_events(EventBatch batch, Resolver& resolver, SampleSink& sink) {
  for (const EventBatch::Site& site : batch.sites) {
    AllocationSite out;
    out.stack = tell_stack(site.stack, resolver, sink);
    out.thread = thread_of(out.stack);
    out.domain = site.domain;
    out.size = site.size;
    sink.allocation_site(out);
  }
  if (!batch.words.empty()) sink.allocation_events(batch.words);
  give_back(std::move(batch.words));
  for (const auto& [slot, type] : batch.living) sink.allocation_type(slot, batch.types[type]);
}

template <typename Row>
std::size_t ExactRecorder::merge(std::span<Row> rows) {
  // There may be very many: they are merged where they are. So many rows, in front, are done with.
  std::size_t count = 0;
  std::vector<std::uint32_t> next;  // row of the same stack; like those of row_of_stack_, 1 + its number
  next.reserve(rows.size());
  for (const Row& row : rows) {
    row_of_stack_.extend(std::size_t{row.stack} + 1);
    std::uint32_t& first = row_of_stack_[row.stack];
    std::uint32_t found = first;
    while (found != 0 && !is_same(row, rows[found - 1])) found = next[found - 1];
    if (found != 0) {
      rows[found - 1].blocks += row.blocks;
      rows[found - 1].bytes += row.bytes;
      continue;
    }
    rows[count++] = row;
    next.push_back(std::exchange(first, static_cast<std::uint32_t>(count)));
  }
  for (const Row& row : rows.first(count)) row_of_stack_[row.stack] = 0;
  return count;
}

void ExactRecorder::pass_on_batch(ExactBatch& batch, Resolver& resolver, SampleSink& sink) {
  epoch_ends_[batch.epoch] = batch.time_ns;
  const auto pass_on = [&](const ExactRow& row, std::string_view type) {
    ExactAllocation out;
    out.stack = tell_stack(row.stack, resolver, sink);
    out.thread = thread_of(out.stack);
    out.change = row.change;
    out.domain = row.domain;
    out.born_ns = row.change == ExactChange::kPeak ? batch.peak_ns : epoch_ends_[row.epoch];
    out.at_ns = batch.time_ns;
    out.type = type;
    out.blocks = row.blocks;
    out.bytes = row.bytes;
    if (out.blocks != 0 || out.bytes != 0) sink.exact_allocation(out);
  };
  const std::span<ExactRow> rows(batch.rows.begin(), batch.rows.end());
  for (const ExactRow& row : rows.first(merge(rows))) pass_on(row, {});
  const std::span<TypedRow> living(batch.living);
  for (const TypedRow& row : living.first(merge(living))) pass_on(row, batch.types[row.type]);
}

}  // namespace plimsoll::capture
