// capture/session_drain.cc: what the drain thread of a session does: records out of the ring, to the sink.
#include <poll.h>

#include <algorithm>
#include <chrono>

#include "base/clock.h"
#include "base/inside.h"
#include "capture/native_sample.h"
#include "capture/session.h"
#include "memory/local.h"
#include "os/termination.h"

namespace plimsoll::capture {
namespace {

constexpr std::int64_t kShortestDrainInterval = 1'000'000;
constexpr std::int64_t kLongestDrainInterval = 50'000'000;
// In the beginning modules are imported, whose C code starts threads and loads libraries.
constexpr std::int64_t kBeginning = 2'000'000'000;
constexpr std::int64_t kLongestInBeginning = 10'000'000;
constexpr std::int64_t kThreadLookInterval = 5'000'000;
constexpr std::int64_t kThreadLookPerThread = 100'000;  // to list them costs a microsecond for each
constexpr std::int64_t kPollInterval = 100'000'000;
constexpr std::int64_t kPollPerThread = 500'000;  // a poll costs about a microsecond a thread: at most 0.2 %
constexpr std::int64_t kGuardInterval = 20'000'000;
constexpr std::size_t kMostHeld = 4;  // times what the ring has room for

// The frames with which a record ends, and those who await them.
std::span<const cpython::PyFrame> frames_in(std::span<const std::byte> rest) {
  return {reinterpret_cast<const cpython::PyFrame*>(rest.data()), rest.size() / sizeof(cpython::PyFrame)};
}

// Whether a record has a copy of a stack, of code that may be known in a moment.
bool has_copy(std::span<const std::byte> record) {
  const auto& raw = *reinterpret_cast<const RawSample*>(record.data());
  if (raw.has_native == 0 || !cpython::is_proven(raw.stop)) return false;
  const std::size_t head = sizeof(RawSample) + (raw.kind == RawSample::Kind::kTick ? 0 : sizeof(RawAllocation));
  return native_stack_of(record.subspan(head)).head.stop == native::UnwindStop::kNoModule;
}

}  // namespace

void Session::run() {
  drain_tid_.store(static_cast<std::int32_t>(os::current_tid()));
  drain_tid_.notify_all();
  std::int64_t interval = kShortestDrainInterval;
  std::unique_lock lock(mutex_);
  while (!stop_requested_ && !rests_) {
    interval = next_drain_interval(interval);
    const std::uint64_t flushes = flushes_requested_;
    const std::uint64_t looks = looks_requested_;
    const bool is_ending = os::is_ending();
    const bool flush_now = flushes != flushes_done_;
    SampleSink::Ending ending = std::exchange(requested_ending_, SampleSink::Ending::kOpen);
    lock.unlock();
    if (!is_complete_.load()) {
      const std::lock_guard working(gate_.work);
      if (is_ending && exact_ != nullptr) exact_->fetch();
      attempt([this] { drain_once(); });
      if (has_failed_.load(std::memory_order_relaxed)) complete();
      // (What is alive is told of exact recordings at their end only.)
      if (is_ending && exact_ == nullptr) ending = SampleSink::Ending::kComplete;
      if (flush_now || is_ending) attempt([&] { flush_all(ending); });
      profiler_cpu_ns_.store(drain_cpu_ns() + (reader_ != nullptr ? reader_->cpu_ns() : 0), std::memory_order_relaxed);
    }
    if (is_ending) os::end_now();
    lock.lock();
    flushes_done_ = flushes;
    looks_done_ = looks;
    gate_.done.notify_all();
    const bool is_crowded = ring_.backlog() > ring_.capacity() / 4;
    if (is_crowded || stop_requested_ || rests_) continue;
    lock.unlock();
    gate_.bell.wait_for(interval);
    lock.lock();
  }
  gate_.done.notify_all();  // whoever waits does so in vain
  past_drain_cpu_ns_ = drain_cpu_ns();
}

std::int64_t Session::next_drain_interval(std::int64_t last) const {
  // Deep stacks can fill a small ring within milliseconds: it is to be found an eighth full at most.
  constexpr std::int64_t kSoon = 2'000'000;
  const std::size_t backlog = ring_.backlog();
  if (modules_ != nullptr && modules_->is_restless(monotonic_ns())) return kSoon;
  if (backlog > ring_.capacity() / 8) return std::max(last / 2, kShortestDrainInterval);
  if (backlog > ring_.capacity() / 32) return last;
  // (Where there is a limit to the overhead, that is the first thing to be saved.)
  const bool is_beginning = !budget_ && monotonic_ns() - start_ns_ < kBeginning;
  return std::min({last * 2, is_beginning ? kLongestInBeginning : kLongestDrainInterval,
                   std::max(settings_.rss_interval_ns, kShortestDrainInterval)});
}

void Session::drain_once() {
  const std::int64_t now = monotonic_ns();
  if (settings_.before_drain != nullptr) settings_.before_drain();
  if (exact_ != nullptr) exact_->collect(resolver_);
  tell_of_threads();
  if (exact_ != nullptr) exact_->pass_on(resolver_, *sink_);
  const std::size_t ended = ended_.size();
  const bool was_empty = drain_ring();
  ring_.make_ready(ring_.capacity() / 8);  // as much as is used until the next time: next_drain_interval()
  // A sample takes its time after its place in the ring, so an empty ring means that all samples of before `now` are
  // done with.
  if (was_empty) {
    resolver_.forget_deaths_before(now);
    for (const ThreadSerial thread : std::span(ended_).first(ended)) last_stacks_.forget(thread);
    ended_.erase(ended_.begin(), ended_.begin() + static_cast<std::ptrdiff_t>(ended));
  }
  look_at_modules(now);
  take_held();
  std::vector<MarkerEvent> markers;
  std::vector<SourceText> sources;
  {
    const std::lock_guard guard(mutex_);
    markers.swap(markers_);
    sources.swap(sources_);
  }
  for (const MarkerEvent& marker : markers) sink_->marker(marker);
  for (const SourceText& source : sources) sink_->source(source);
  housekeeping(now);
}

bool Session::drain_ring() {
  const bool was_empty = ring_.drain([this](std::span<const std::byte> record) {
    if (held_.is_empty() && !has_copy(record))
      take(record);
    else
      held_.add(record);
  });
  take_held();
  return was_empty;
}

void Session::take_held() {
  // What comes while there is a look at the modules may be of those that are loaded then.
  while (!held_.is_empty()) {
    HeldRecords held = std::exchange(held_, {});
    look_at_modules(monotonic_ns());
    std::move(held).take_all([this](std::span<const std::byte> record) { take(record); });
  }
}

void Session::tell_of_threads() {
  for (const ThreadInfo& thread : sampler_->take_thread_changes()) {
    sink_->thread(thread);
    if (thread.has_ended) ended_.push_back(thread.serial);
  }
}

void Session::take(std::span<const std::byte> record) {
  const auto& raw = *reinterpret_cast<const RawSample*>(record.data());
  if (!cpython::is_proven(raw.stop)) return;  // counted there
  if (raw.kind != RawSample::Kind::kTick) return take_allocation(raw, record.subspan(sizeof(RawSample)));
  const bool is_running = raw.activity == Activity::kRunning;
  // A thread may have ticked before the drain thread heard of it.
  tell_of_threads();
  if (!take_tick(raw, record.subspan(sizeof(RawSample)))) {
    sampler_->count_drop(DropReason::kUnknownCode, is_running ? raw.weight_ns : 0);
    return;
  }
  samples_.fetch_add(1, std::memory_order_relaxed);
  (is_running ? sampled_cpu_ns_ : waited_ns_).fetch_add(raw.weight_ns, std::memory_order_relaxed);
}

bool Session::take_tick(const RawSample& raw, std::span<const std::byte> rest) {
  if (raw.stack == RawSample::Stack::kOnLast) {
    std::span<const cpython::PyFrame> whole;
    return last_stacks_.complete(raw, frames_in(rest), whole) && resolver_.resolve(raw, whole);
  }
  if (raw.has_native == 0) return resolver_.resolve(raw, frames_in(rest));
  const NativeRecord record = read_native(raw, rest);
  bool is_matched = true;
  const bool is_known = resolver_.resolve_native(raw, record.native, record.frames, record.awaiting, is_matched);
  if (!is_matched) sampler_->count_drop(DropReason::kNativeUnmatched, 0);
  return is_known;
}

Session::NativeRecord Session::read_native(const RawSample& raw, std::span<const std::byte> rest) {
  NativeRecord record{native_stack_of(rest), {}, {}};
  std::size_t before = native_bytes(record.native);
  if (const std::size_t copied = copy_bytes(record.native, rest.subspan(before)); copied != 0) {
    record.native = unwind_copy(rest.subspan(before), *modules_->current(), settings_.tick.max_depth, unwound_again_);
    before += copied;
  }
  if (record.native.head.stop != native::UnwindStop::kComplete)
    sampler_->count_drop(reason_of(record.native.head.stop), 0);
  const std::span<const cpython::PyFrame> frames = frames_in(rest.subspan(before));
  record.frames = frames.first(raw.frame_count);
  record.awaiting = frames.subspan(raw.frame_count);
  return record;
}

void Session::look_at_modules(std::int64_t now_ns) {
  if (modules_ == nullptr) return;
  // The tables of the largest libraries take 50 ms: the ring would be full long before, and threads not be noticed.
  const auto meanwhile = [this] {
    if (held_.bytes() < kMostHeld * ring_.capacity())
      ring_.drain([this](std::span<const std::byte> record) { held_.add(record); });
    look_for_threads(monotonic_ns());
  };
  if (const Status done = modules_->refresh(now_ns, meanwhile); !done.ok()) return;  // what is known stays
  if (modules_->has_retired() && no_handler_runs()) modules_->free_retired();
}

void Session::take_allocation(const RawSample& raw, std::span<const std::byte> rest) {
  if (raw.kind == RawSample::Kind::kRelease)
    return take_release(raw.time_ns, *reinterpret_cast<const RawRelease*>(rest.data()));
  const auto& block = *reinterpret_cast<const RawAllocation*>(rest.data());
  tell_of_threads();
  rest = rest.subspan(sizeof(RawAllocation));
  bool is_known = true;
  if (raw.has_native == 0) {
    is_known = resolver_.resolve_allocation(raw, block, frames_in(rest), living_stacks_);
  } else {
    const NativeRecord record = read_native(raw, rest);
    bool is_matched = true;
    is_known = resolver_.resolve_native_allocation(raw, block, record.native, record.frames, record.awaiting,
                                                   living_stacks_, is_matched);
    if (!is_matched) sampler_->count_drop(DropReason::kNativeUnmatched, 0);
  }
  if (is_known) return;
  sampler_->count_drop(DropReason::kUnknownCode, 0);
  (void)resolver_.resolve_allocation(raw, block, {}, living_stacks_);  // it counts, without a stack
}

void Session::take_release(std::int64_t time_ns, const RawRelease& release) {
  if (release.is_freed != 0) living_stacks_.freed(release.number);
  sink_->release(time_ns, release);
}

std::unique_lock<std::timed_mutex> Session::catch_up() {
  // Longer than any drain takes; the drain thread may wait for a module that is being loaded, and its loader for us.
  constexpr std::chrono::milliseconds kLongestDrain{500};
  std::unique_lock lock(gate_.work, kLongestDrain);
  if (!lock.owns_lock()) return lock;
  if (is_complete_.load()) {
    lock.unlock();
    return lock;
  }
  inside([this] {
    attempt([this] {
      if (exact_ != nullptr) exact_->collect(resolver_);
      tell_of_threads();
      drain_ring();
    });
    return 0;
  });
  return lock;
}

void Session::housekeeping(std::int64_t now_ns) {
  if (exact_ != nullptr) exact_->keep_time(now_ns, start_ns_);
  if (now_ns >= next_poll_ns_) {
    sampler_->poll();
    const auto threads = static_cast<std::int64_t>(sampler_->thread_count());
    next_poll_ns_ = now_ns + std::max(kPollInterval, threads * kPollPerThread);
    look_for_listener();
    keep_to_budget();
  }
  look_for_threads(now_ns);
  if (now_ns >= next_rss_ns_) {
    sink_->counter("rss", "bytes", now_ns, os::resident_bytes());
    count_allocations(now_ns);
    next_rss_ns_ = now_ns + settings_.rss_interval_ns;
  }
  if (now_ns >= next_guard_ns_) {
    // Another SIGSEGV handler may have been installed over ours, faulthandler's for example.
    if (const Status guarded = memory::FaultGuard::ensure_installed(); !guarded.ok()) fail(guarded.error());
    next_guard_ns_ = now_ns + kGuardInterval;
  }
  if (now_ns >= next_flush_ns_ || sink_->wants_flush()) flush_sink(now_ns, SampleSink::Ending::kOpen);
  if (settings_.duration_ns > 0 && now_ns >= start_ns_ + settings_.duration_ns) complete();
}

void Session::look_for_threads(std::int64_t now_ns) {
  if (now_ns < next_thread_look_ns_) return;
  sampler_->look_for_threads();
  const auto threads = static_cast<std::int64_t>(sampler_->thread_count());
  next_thread_look_ns_ = now_ns + std::max(kThreadLookInterval, threads * kThreadLookPerThread);
}

void Session::look_for_listener() {
  const std::lock_guard guard(mutex_);
  pollfd listener{.fd = listener_.get(), .events = 0, .revents = 0};  // is told of errors in any case
  if (!listener_.is_open() || ::poll(&listener, 1, 0) <= 0) return;
  if (tell_unheard_()) listener_.reset();
}

void Session::flush_all(SampleSink::Ending ending) {
  const std::int64_t now_ns = monotonic_ns();
  count_allocations(now_ns);  // as there may be no time after this to do it in
  flush_sink(now_ns, ending);
}

void Session::count_allocations(std::int64_t now_ns) {
  const std::uint64_t bytes = allocations_->allocated_bytes();
  if (bytes != 0) sink_->counter("allocated", "bytes", now_ns, static_cast<std::int64_t>(bytes));
}

}  // namespace plimsoll::capture
