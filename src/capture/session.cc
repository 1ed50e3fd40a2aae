#include "capture/session.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/clock.h"
#include "capture/loop_calls.h"
#include "capture/native_sample.h"
#include "memory/local.h"
#include "os/os.h"
#include "os/own_thread.h"
#include "os/termination.h"

namespace plimsoll::capture {
namespace {

// A thread that was joined is one of the process's for some microseconds more, until the kernel has put it away: so
// long whoever counts them, as Python does, would find it.
void await_being_alone() {
  constexpr std::int64_t kPatience = 100'000'000;
  const std::int64_t end_ns = monotonic_ns() + kPatience;
  while (os::count_threads() > 1 && monotonic_ns() < end_ns) ::sched_yield();
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

  PLIMSOLL_TRY(session->start_drain());
  const ReaderDuties duties{.waits = settings.tick.mode == Mode::kWall, .running = settings.tick.by_reader};
  if (duties.waits || duties.running) {
    Result<std::unique_ptr<ReaderThread>> reader = ReaderThread::start(
        duties, interpreter, *session->sampler_, session->ring_, session->registry_.seen(), settings.tick.max_depth);
    if (!reader.ok()) return reader.error();
    const std::lock_guard working(session->gate_.work);  // the drain thread asks for its CPU time
    session->reader_ = reader.take();
  }
  if (session->tags_ != nullptr) session->tags_->begin_recording();
  if (settings.watch_deaths != nullptr) settings.watch_deaths(&session->registry_);
  session->sampler_->start(session->own_threads());
  os::watch_termination(session->gate_.bell);
  return session;
}

Status Session::start_drain() {
  drain_tid_.store(0);
  const int failed = os::start_own_thread<&Session::run>(drain_thread_, "plimsoll", this);
  if (failed != 0) return system_error("cannot start the drain thread", failed);
  drain_tid_.wait(0);
  return Ok{};
}

std::array<Tid, 2> Session::own_threads() const {
  return {Tid{drain_tid_.load()}, reader_ != nullptr ? reader_->tid() : Tid{}};
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

void Session::begin_budget() {
  if (settings_.max_overhead <= 0) return;
  constexpr std::int64_t kTick = 2'000, kLook = 20'000;  // what one takes, without the interrupt
  const std::int64_t sample_ns = settings_.tick.by_reader ? kLook : sampler_->empty_tick_ns() + kTick;
  budget_.emplace(settings_.max_overhead, settings_.tick.rate_hz, sample_ns);
  (void)sampler_->set_rate(budget_->first_hz());  // within limits, so it cannot fail
}

void Session::keep_to_budget() {
  constexpr std::int64_t kLeast = 50'000'000;  // CPU time that says something
  if (!budget_) return;
  const std::int64_t cpu_ns = process_cpu_ns() - start_cpu_ns_ - sampler_->paused_cpu_ns();
  const std::int64_t reader_ns = reader_ != nullptr ? reader_->cpu_ns() : 0;
  const OverheadBudget::Costs costs{cpu_ns, sampler_->handler_ns() + reader_ns, drain_cpu_ns()};
  if (sampler_->is_paused()) return budget_->leave_out(costs);
  if (cpu_ns - budget_cpu_ns_ < kLeast) return;
  budget_cpu_ns_ = cpu_ns;
  const double before = sampler_->rate_hz();
  const double rate = budget_->next_hz(before, costs);
  const bool is_worth_it = rate < 0.9 * before || rate > 1.1 * before;
  if (is_worth_it) (void)sampler_->set_rate(rate);  // within limits, so it cannot fail
}

void Session::complete() {
  if (is_complete_.exchange(true)) return;
  if (reader_ != nullptr) reader_->stop();
  sampler_->stop();
  end_pause();
  allocations_->close();
  const std::int64_t end_cpu_ns = process_cpu_ns();
  // No handler runs any more: what is in the ring now is all there will be, but for frees that had no room there.
  // (Where there is no memory to empty it, there is an end all the same.)
  constexpr std::int64_t kLongestEnd = 1'000'000'000;
  const std::int64_t last_ns = monotonic_ns() + kLongestEnd;
  if (exact_ != nullptr) exact_->fetch();
  for (bool has_more = true; has_more;) {
    has_more = allocations_->put_rest() && monotonic_ns() < last_ns;
    attempt([this] { drain_once(); });
  }
  if (exact_ != nullptr) exact_->close();
  registry_.close();
  if (tags_ != nullptr) tags_->end_recording();
  end_ns_ = monotonic_ns();
  SampleSink::Totals last = totals(end_ns_);
  last.process_cpu_ns += end_cpu_ns - process_cpu_ns();
  final_process_cpu_ns_ = last.process_cpu_ns;
  attempt([&] {
    count_allocations(end_ns_);
    tell_of_totals();
    // From the process's beginning on, with our own threads: what its parent will be told of it, but for its end. (Only
    // here: a fact that changes with each flush would be a fifth of a file at 100 Hz.)
    sink_->fact("clock_cpu_ns", std::to_string(process_cpu_ns()));
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

SampleSink::Totals Session::totals(std::int64_t now_ns) const {
  // What our threads used in pauses is in the time of these.
  const std::int64_t own_ns = profiler_cpu_ns_.load(std::memory_order_relaxed);
  const std::int64_t since_ns = pause_began_own_ns_.load(std::memory_order_relaxed);
  const std::int64_t in_pauses_ns =
      own_in_pauses_ns_.load(std::memory_order_relaxed) + (since_ns != kNotPaused ? own_ns - since_ns : 0);
  const std::int64_t cpu_ns = process_cpu_ns() - start_cpu_ns_ - (own_ns - in_pauses_ns) - sampler_->paused_cpu_ns();
  return {now_ns, cpu_ns, sampler_->drops()};
}

std::int64_t Session::read_own_cpu_ns() {
  const bool has_drain = !rests_ && !stop_requested_;
  const std::int64_t own_ns = past_drain_cpu_ns_ + (has_drain ? os::thread_cpu_ns(Tid{drain_tid_.load()}) : 0) +
                              (reader_ != nullptr ? reader_->cpu_ns() : 0);
  profiler_cpu_ns_.store(own_ns, std::memory_order_relaxed);
  return own_ns;
}

void Session::begin_pause() {
  const std::lock_guard guard(mutex_);
  if (pause_began_own_ns_.load() == kNotPaused) pause_began_own_ns_.store(read_own_cpu_ns());
}

void Session::end_pause() {
  const std::lock_guard guard(mutex_);
  const std::int64_t since_ns = pause_began_own_ns_.exchange(kNotPaused);
  if (since_ns != kNotPaused) own_in_pauses_ns_ += read_own_cpu_ns() - since_ns;
}

void Session::add_marker(MarkerEvent marker) {
  const std::lock_guard guard(mutex_);
  if (is_complete_.load()) return;  // nobody would take it
  markers_.push_back(std::move(marker));
}

void Session::add_source(SourceText source) {
  const std::lock_guard guard(mutex_);
  if (!is_complete_.load()) sources_.push_back(std::move(source));
}

void Session::watch_listener(UniqueFd pipe, bool (*tell)()) {
  const std::lock_guard guard(mutex_);
  listener_ = std::move(pipe);
  tell_unheard_ = tell;
}

void Session::prepare_exec() {
  flush_as(SampleSink::Ending::kExec);
  sampler_->silence_caller();
}

void Session::flush_as(SampleSink::Ending ending) {
  std::unique_lock lock(mutex_);
  if (stop_requested_ || rests_ || is_complete_.load()) return;
  requested_ending_ = std::max(requested_ending_, ending);  // an exec's is not undone by who merely wants to read
  const std::uint64_t wanted = ++flushes_requested_;
  gate_.bell.ring();
  gate_.done.wait_for(lock, std::chrono::seconds(2), [&] { return flushes_done_ >= wanted || stop_requested_; });
}

void Session::learn_modules(std::uint64_t loads) {
  if (modules_ == nullptr || exact_ == nullptr) return;
  std::unique_lock lock(mutex_);
  if (stop_requested_ || rests_ || is_complete_.load() || std::exchange(loads_, loads) == loads) return;
  const std::uint64_t wanted = ++looks_requested_;
  gate_.bell.ring();
  gate_.done.wait_for(lock, std::chrono::seconds(2), [&] { return looks_done_ >= wanted || stop_requested_; });
}

void Session::pause() {
  if (reader_ != nullptr) reader_->look_at_waits();
  sampler_->pause();
  begin_pause();
  if (reader_ != nullptr) reader_->look_at_waits();
}

void Session::resume() {
  sampler_->resume();
  if (!sampler_->is_paused()) end_pause();
  if (reader_ == nullptr) return;
  reader_->look_at_waits();
  reader_->go_on();
}

SessionStats Session::stop() {
  const SignalsBlocked blocked = os::termination_blocked();  // the drain thread answers no more
  if (holder_ == os::current_tid()) release_after_fork();
  bool has_drain = true;
  {
    const std::lock_guard guard(mutex_);
    if (stop_requested_ || drain_thread_ == pthread_t{}) return stats_locked();
    stop_requested_ = true;
    has_drain = !rests_;
  }
  gate_.bell.ring();
  if (has_drain) ::pthread_join(drain_thread_, nullptr);
  {
    const std::lock_guard working(gate_.work);  // whoever caught up may still look at what it found
    complete();
  }
  return stats();
}

void Session::abandon() {
  os::forget_termination();
  if (tags_ != nullptr) tags_->end_recording();
  sampler_->abandon();
  // (Where the fork was not prepared, the reader may have been at work: its descriptors stay open.)
  if (reader_ != nullptr && gate_.is_kept_by_caller()) reader_->abandon();
}

void Session::hold_for_fork() {
  // Not mutex_: other threads take it with the GIL held, and whoever forks may have to wait for the GIL before it can
  // let go. The child never takes it.
  gate_.keep_out();
  hold_reader();
  holder_ = os::current_tid();
}

void Session::release_after_fork() {
  if (holder_.exchange({}) == Tid{}) return;
  release_reader();
  gate_.let_in();
}

bool Session::rest_if_alone() {
  const std::size_t with_caller = reader_ != nullptr ? 3 : 2;
  if (os::count_threads() != with_caller) return false;
  {
    const std::lock_guard guard(mutex_);
    if (stop_requested_ || rests_) return false;
    rests_ = true;
  }
  gate_.bell.ring();
  ::pthread_join(drain_thread_, nullptr);
  if (reader_ != nullptr) reader_->rest();
  await_being_alone();
  return true;
}

void Session::wake() {
  // Neither looks at any thread before it is known which are ours.
  const std::lock_guard working(gate_.work);
  {
    const std::lock_guard guard(mutex_);
    if (stop_requested_) return;
    rests_ = false;
  }
  Status woken = start_drain();
  if (!woken.ok()) {
    const std::lock_guard guard(mutex_);
    rests_ = true;
  } else if (reader_ != nullptr) {
    woken = reader_->wake();
  }
  sampler_->except(own_threads());
  if (woken.ok()) return;
  fail(woken.error());
  complete();
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
