#include "capture/session.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <new>

#include "base/clock.h"
#include "base/inside.h"
#include "capture/loop_calls.h"
#include "capture/native_sample.h"
#include "memory/local.h"
#include "os/own_thread.h"
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

Session::Session(const SessionSettings& settings, const Interpreter& interpreter, SampleRing ring,
                 std::unique_ptr<SampleSink> sink)
    : settings_(settings),
      ring_(std::move(ring)),
      registry_(interpreter.layout),
      sink_(std::move(sink)),
      tags_(interpreter.tags.registry),
      tells_tasks_(interpreter.tasks.has_value()),
      resolver_(interpreter.layout, registry_, *sink_, settings.trust, tags_) {}

Result<std::unique_ptr<Session>> Session::start(const SessionSettings& settings, const Interpreter& interpreter,
                                                std::unique_ptr<SampleSink> sink) {
  // Room for several samples of the greatest depth at once.
  const std::size_t deepest =
      settings.has_native
          ? most_native_bytes(interpreter, settings.tick.max_depth)
          : sizeof(RawSample) + (settings.tick.max_depth + awaiting_slots(interpreter)) * sizeof(cpython::PyFrame);
  Result<SampleRing> ring = SampleRing::create(std::max(settings.ring_bytes, deepest * 8));
  if (!ring.ok()) return ring.error();
  std::unique_ptr<Session> session(new Session(settings, interpreter, ring.take(), std::move(sink)));
  TickSettings tick = settings.tick;
  if (settings.has_native) PLIMSOLL_TRY(session->begin_native(interpreter, tick));
  Result<std::unique_ptr<CpuSampler>> sampler =
      CpuSampler::create(tick, interpreter, session->ring_, session->registry_.seen());
  if (!sampler.ok()) return sampler.error();
  session->sampler_ = sampler.take();
  session->allocations_ =
      std::make_unique<AllocationRecorder>(interpreter, *session->sampler_, session->ring_, session->registry_.seen(),
                                           settings.tick.max_depth, session->modules_.get(), session->gate_);
  if (settings.exact_allocations)
    session->exact_ = std::make_unique<ExactRecorder>(interpreter, *session->sampler_, session->registry_.seen(),
                                                      settings.tick.max_depth, session->modules_.get());
  session->begin_budget();
  session->start_ns_ = monotonic_ns();
  session->start_cpu_ns_ = process_cpu_ns();
  session->start_child_cpu_ns_ = os::ended_children_cpu_ns();
  session->next_flush_ns_ = session->start_ns_ + settings.flush_interval_ns;
  session->sink_->fact("engine", session->sampler_->engine());
  session->sink_->fact("mode", text(settings.tick.mode));
  if (const double most = session->sampler_->most_ticks_hz(); most > 0)
    session->sink_->fact("most_ticks_hz", std::to_string(std::llround(most)));
  session->sink_->fact("trust", settings.trust == Trust::kKnown ? "known" : "validated");
  if (interpreter.tags.registry == nullptr) session->sink_->fact("tags", "cannot be read in this build of Python");
  // The first flush writes the facts of the session: the file is readable from now on.
  const Status written = session->sink_->flush(session->totals(session->start_ns_), SampleSink::Ending::kOpen);
  if (!written.ok()) return written.error();

  const auto drain = [](void* self) -> void* {
    static_cast<Session*>(self)->run();
    return nullptr;
  };
  const int failed = os::start_own_thread(session->drain_thread_, "plimsoll", drain, session.get());
  if (failed != 0) return system_error("cannot start the drain thread", failed);
  session->drain_tid_.wait(0);
  std::array<Tid, 2> ours{Tid{session->drain_tid_.load()}};
  const ReaderDuties duties{.waits = settings.tick.mode == Mode::kWall, .running = settings.tick.by_reader};
  if (duties.waits || duties.running) {
    Result<std::unique_ptr<ReaderThread>> reader = ReaderThread::start(
        duties, interpreter, *session->sampler_, session->ring_, session->registry_.seen(), settings.tick.max_depth);
    if (!reader.ok()) return reader.error();
    session->reader_ = reader.take();
    ours[1] = session->reader_->tid();
  }
  if (session->tags_ != nullptr) session->tags_->begin_recording();
  session->sampler_->start(ours);
  os::watch_termination(session->gate_.bell);
  return session;
}

Status Session::check_native() {
  if (!native::kCanUnwind)
    return Error{ErrorKind::kUnsupported, "native frames can be recorded on x86-64 and aarch64 only, so far"};
  return Ok{};
}

Status Session::begin_native(const Interpreter& interpreter, TickSettings& tick) {
  PLIMSOLL_TRY(check_native());
  PLIMSOLL_TRY(memory::FaultGuard::ensure_installed());
  modules_ = std::make_unique<native::Modules>();
  PLIMSOLL_TRY(modules_->refresh(monotonic_ns()));
  if (counts_calls(interpreter.layout) && !modules_->follow(interpreter.code_type, kLoopFunction))
    return Error{ErrorKind::kUnsupported, "native frames of Python " + interpreter.layout.version.text() +
                                              " are told apart by the calls of " + std::string(kLoopFunction) +
                                              ", and this build does not say where that is"};
  resolver_.use_modules(*modules_);
  tick.modules = modules_.get();
  tick.bell = &gate_.bell;
  // What of the machine code is Python itself.
  const std::shared_ptr<const native::Module> python = modules_->module_around(interpreter.code_type);
  sink_->fact("native", python != nullptr ? python->first.path : "");
  return Ok{};
}

Session::~Session() {
  const bool was_started = drain_thread_ != pthread_t{};
  if (was_started) stop();
}

void Session::run() {
  os::become_own_thread();
  drain_tid_.store(static_cast<std::int32_t>(os::current_tid()));
  drain_tid_.notify_all();
  std::int64_t interval = kShortestDrainInterval;
  std::unique_lock lock(mutex_);
  while (!stop_requested_) {
    interval = next_drain_interval(interval);
    const std::uint64_t flushes = flushes_requested_;
    const std::uint64_t looks = looks_requested_;
    const bool is_ending = os::is_ending();
    const bool flush_now = flushes != flushes_done_;
    SampleSink::Ending ending = std::exchange(requested_ending_, SampleSink::Ending::kOpen);
    lock.unlock();
    if (!is_complete_.load()) {
      const std::lock_guard working(gate_.work);
      attempt([this] { drain_once(); });
      if (has_failed_.load(std::memory_order_relaxed)) complete();
      // (What exact recordings keep in their books is told at their end only.)
      if (is_ending && exact_ == nullptr) ending = SampleSink::Ending::kComplete;
      if (flush_now || is_ending) attempt([&] { flush_sink(monotonic_ns(), ending); });
      profiler_cpu_ns_.store(thread_cpu_ns() + (reader_ != nullptr ? reader_->cpu_ns() : 0), std::memory_order_relaxed);
    }
    if (is_ending) os::end_now();
    lock.lock();
    flushes_done_ = flushes;
    looks_done_ = looks;
    gate_.done.notify_all();
    const bool is_crowded = ring_.backlog() > ring_.capacity() / 4;
    if (is_crowded || stop_requested_) continue;
    lock.unlock();
    gate_.bell.wait_for(interval);
    lock.lock();
  }
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
  {
    const std::lock_guard guard(mutex_);
    markers.swap(markers_);
  }
  for (const MarkerEvent& marker : markers) sink_->marker(marker);
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
  if (!is_known) sampler_->count_drop(DropReason::kUnknownCode, 0);
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

void Session::count_allocations(std::int64_t now_ns) {
  const std::uint64_t bytes = allocations_->allocated_bytes();
  if (bytes != 0) sink_->counter("allocated", "bytes", now_ns, static_cast<std::int64_t>(bytes));
}

void Session::begin_budget() {
  if (settings_.max_overhead <= 0) return;
  constexpr std::int64_t kTick = 2'000, kLook = 20'000;  // what one takes, without the interrupt
  const std::int64_t sample_ns = settings_.tick.by_reader ? kLook : sampler_->empty_tick_ns() + kTick;
  budget_.emplace(settings_.max_overhead, settings_.tick.rate_hz, sample_ns);
  (void)sampler_->set_rate(budget_->first_hz());  // within limits, so it cannot fail
}

void Session::keep_to_budget() {
  constexpr std::int64_t kLeast = 50'000'000;  // CPU time that says something
  const std::int64_t cpu_ns = process_cpu_ns() - start_cpu_ns_;
  if (!budget_ || sampler_->is_paused() || cpu_ns - budget_cpu_ns_ < kLeast) return;
  budget_cpu_ns_ = cpu_ns;
  const std::int64_t reader_ns = reader_ != nullptr ? reader_->cpu_ns() : 0;
  const double before = sampler_->rate_hz();
  const double rate = budget_->next_hz(before, {cpu_ns, sampler_->handler_ns() + reader_ns, thread_cpu_ns()});
  const bool is_worth_it = rate < 0.9 * before || rate > 1.1 * before;
  if (is_worth_it) (void)sampler_->set_rate(rate);  // within limits, so it cannot fail
}

void Session::complete() {
  if (is_complete_.exchange(true)) return;
  if (reader_ != nullptr) reader_->stop();
  sampler_->stop();
  allocations_->close();
  const std::int64_t end_cpu_ns = process_cpu_ns();
  // No handler runs any more: what is in the ring now is all there will be, but for frees that had no room there.
  // (Where there is no memory to empty it, there is an end all the same.)
  constexpr std::int64_t kLongestEnd = 1'000'000'000;
  const std::int64_t last_ns = monotonic_ns() + kLongestEnd;
  for (bool has_more = true; has_more;) {
    has_more = allocations_->put_rest() && monotonic_ns() < last_ns;
    attempt([this] { drain_once(); });
  }
  if (exact_ != nullptr) exact_->close();
  if (tags_ != nullptr) tags_->end_recording();
  end_ns_ = monotonic_ns();
  SampleSink::Totals last = totals(end_ns_);
  last.process_cpu_ns += end_cpu_ns - process_cpu_ns();
  final_process_cpu_ns_ = last.process_cpu_ns;
  attempt([&] {
    count_allocations(end_ns_);
    tell_of_totals();
    if (const Status done = sink_->flush(last, SampleSink::Ending::kComplete); !done.ok()) fail(done.error());
  });
  os::stop_watching_termination();
}

void Session::flush_sink(std::int64_t now_ns, SampleSink::Ending ending) {
  tell_of_totals();
  if (!has_failed_.load(std::memory_order_relaxed))
    if (const Status flushed = sink_->flush(totals(now_ns), ending); !flushed.ok()) fail(flushed.error());
  next_flush_ns_ = now_ns + settings_.flush_interval_ns;
}

void Session::tell_of_totals() {
  if (tells_tasks_) sink_->task_counts(sampler_->task_counts());
  if (const std::int64_t cpu_ns = os::ended_children_cpu_ns() - start_child_cpu_ns_; cpu_ns > 0)
    sink_->child_cpu_ns(cpu_ns);
}

void Session::fail(const Error& error) {
  const std::lock_guard guard(mutex_);
  if (error_.empty()) error_ = error.message;
  has_failed_.store(true, std::memory_order_relaxed);
}

template <typename Work>
void Session::attempt(Work work) noexcept {
  if (has_failed_.load()) return;
  try {
    work();
  } catch (const std::bad_alloc&) {
    is_out_of_memory_.store(true);
    has_failed_.store(true);
  }
}

SampleSink::Totals Session::totals(std::int64_t now_ns) const {
  const std::int64_t cpu_ns =
      process_cpu_ns() - start_cpu_ns_ - profiler_cpu_ns_.load(std::memory_order_relaxed) - sampler_->paused_cpu_ns();
  return {now_ns, cpu_ns, sampler_->drops()};
}

void Session::add_marker(MarkerEvent marker) {
  const std::lock_guard guard(mutex_);
  markers_.push_back(std::move(marker));
}

void Session::prepare_exec() {
  flush_as(SampleSink::Ending::kComplete);
  sampler_->silence_caller();
}

void Session::flush_as(SampleSink::Ending ending) {
  std::unique_lock lock(mutex_);
  if (stop_requested_ || is_complete_.load()) return;
  requested_ending_ = ending;
  const std::uint64_t wanted = ++flushes_requested_;
  gate_.bell.ring();
  gate_.done.wait_for(lock, std::chrono::seconds(2), [&] { return flushes_done_ >= wanted || stop_requested_; });
}

void Session::learn_modules(std::uint64_t loads) {
  if (modules_ == nullptr || exact_ == nullptr) return;
  std::unique_lock lock(mutex_);
  if (stop_requested_ || is_complete_.load() || std::exchange(loads_, loads) == loads) return;
  const std::uint64_t wanted = ++looks_requested_;
  gate_.bell.ring();
  gate_.done.wait_for(lock, std::chrono::seconds(2), [&] { return looks_done_ >= wanted || stop_requested_; });
}

SessionStats Session::stop() {
  const os::TerminationBlocked blocked;  // the drain thread answers no more
  {
    const std::lock_guard guard(mutex_);
    if (stop_requested_ || drain_thread_ == pthread_t{}) return stats_locked();
    stop_requested_ = true;
  }
  gate_.bell.ring();
  ::pthread_join(drain_thread_, nullptr);
  complete();
  return stats();
}

void Session::abandon() {
  os::forget_termination();
  if (tags_ != nullptr) tags_->end_recording();
  sampler_->abandon();
  if (reader_ != nullptr) reader_->abandon();
}

void Session::hold_for_fork() {
  if (reader_ != nullptr) reader_->hold();
  // Not mutex_: other threads take it with the GIL held, and whoever forks may have to wait for the GIL before it can
  // let go. The child never takes it.
  gate_.keep_out();
}

void Session::release_after_fork() {
  gate_.let_in();
  if (reader_ != nullptr) reader_->release();
}

SessionStats Session::stats() const {
  const std::lock_guard guard(mutex_);
  return stats_locked();
}

SessionStats Session::stats_locked() const {
  SessionStats stats;
  stats.samples = samples_.load(std::memory_order_relaxed);
  stats.sampled_cpu_ns = sampled_cpu_ns_.load(std::memory_order_relaxed);
  stats.waited_ns = waited_ns_.load(std::memory_order_relaxed);
  stats.profiler_cpu_ns = profiler_cpu_ns_.load(std::memory_order_relaxed);
  const bool has_ended = is_complete_.load() && final_process_cpu_ns_ >= 0;
  stats.process_cpu_ns = has_ended ? final_process_cpu_ns_.load() : totals(monotonic_ns()).process_cpu_ns;
  stats.duration_ns = (has_ended ? end_ns_.load() : monotonic_ns()) - start_ns_;
  stats.rate_hz = sampler_->rate_hz();
  stats.engine = sampler_->engine();
  stats.is_paused = sampler_->is_paused();
  stats.tick_median_ns = sampler_->tick_costs().quantile(0.5);
  stats.tick_p99_ns = sampler_->tick_costs().quantile(0.99);
  stats.drops = sampler_->drops();
  stats.error = is_out_of_memory_.load() ? "no memory was left for the recording, which ended there" : error_;
  return stats;
}

}  // namespace plimsoll::capture
