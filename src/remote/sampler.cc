#include "remote/sampler.h"

#include <unistd.h>

#include <algorithm>
#include <bit>

#include "base/clock.h"
#include "base/random.h"
#include "remote/asyncio_callbacks.h"
#include "remote/waiting.h"

namespace plimsoll::remote {
namespace {

using capture::DropReason;
using capture::Mode;
using capture::RawSample;

// A thread that we stand beside may be sent to another CPU: it is followed so often.
constexpr int kTries = 3;
// The code of a stack that has been paid for is known for at least so long.
constexpr std::int64_t kLastStackIsKept = 1'000'000'000;

}  // namespace

Sampler::Sampler(const Target& target, const SamplerSettings& settings, const Holds& holds, ProcessCpu& cpu,
                 capture::SampleSink& sink)
    : target_(target),
      settings_(settings),
      sink_(sink),
      memory_(target.memory()),
      reader_(target_, settings.max_depth, settings.native == NativeFrames::kYes ? Marks::kYes : Marks::kNo),
      probes_(holds.probes),
      cpu_(cpu),
      shared_cpu_(holds.shared_cpu),
      registry_(target.layout, capture::CodeRegistry::Source::kTaught),
      resolver_(target.layout, registry_, sink, capture::Trust::kValidated),
      random_(os::random_seed()) {
  find_tasks();
  if (holds.stopper == nullptr) return;
  stopping_.emplace(target_, *holds.stopper, settings.max_depth, NativeReader::kMostStack, settings.native);
  (void)stopping_->refresh();
  if (has_native()) resolver_.use_modules(stopping_->modules());
}

void Sampler::find_tasks() {
  if (settings_.awaiting_tasks == AwaitingTasks::kNo || reader_.shows_awaiting() || is_null(target_.code_type)) return;
  if (!std::has_single_bit(++times_asked_)) return;
  const auto tasks = locate_tasks(memory_, target_.layout, target_.code_type, target_.runtime,
                                  [this] { return find_asyncio_debug(target_.pid); });
  if (tasks.ok() && tasks.value()) reader_.show_awaiting(*tasks.value());
}

void Sampler::look_at_gil() {
  if (is_null(main_interpreter_)) return;
  const std::optional<Address> holder = gil_holder(memory_, target_.layout, target_.runtime, main_interpreter_);
  if (!holder) return;
  capture::GilLook look{monotonic_ns(), !is_null(*holder), {}};
  if (look.is_held)
    for (const auto& thread : threads_)
      for (const ThreadState& state : thread->states)
        if (state.address == *holder) look.holder = thread->info.serial;
  sink_.gil(look);
}

void Sampler::look() {
  if (stopping_) (void)stopping_->refresh();  // what is known stays if it cannot be read
  // First, as nobody has been moved from his CPU yet.
  if (settings_.gil_looks == GilLooks::kYes) look_at_gil();
  look_at_those_from(0);
  name_new_threads();
  // Last, as it is asked then what the others have used.
  if (!end_those_gone()) return;
  // Who has come in their place is to be met at any time of his life as likely as at any other.
  const std::size_t first_new = next_serial_;
  update_threads();
  look_at_those_from(first_new);
}

void Sampler::look_at_those_from(std::size_t serial) {
  for (const auto& thread : threads_)
    if (!thread->has_ended && thread->info.serial.index() >= serial) look_at(*thread);
}

void Sampler::look_at(Thread& thread) {
  const std::int64_t now_ns = monotonic_ns();
  const std::optional<os::Schedule> schedule = thread.probe.schedule();
  if (!schedule) {
    thread.is_gone = thread.probe.has_ended();
    if (!thread.is_gone) drop(DropReason::kNotTold);
    return;
  }
  thread.info.end_ns = now_ns;
  if (!thread.paid) thread.paid = thread.looked = thread.settled = thread.known = *schedule;
  if (thread.is_waiting && *schedule == thread.looked) {
    thread.looked_ns = now_ns;
    if (now_ns > thread.settled_ns) thread.open_ns += now_ns - std::exchange(thread.settled_ns, now_ns);
    if (is_overdue(thread, now_ns)) pay(thread, *schedule);
    if (settings_.mode == Mode::kWall && thread.open_ns >= tell_after_ns()) put_same(thread, RawSample::Stack::kSame);
    return;
  }
  using Kind = os::KernelWait::Kind;
  os::KernelWait wait{Kind::kRunnable, {}};
  std::optional<os::Place> place;
  // What it waits in costs a third of where it is: one that has waited is asked for the former first.
  if (thread.is_waiting) wait = thread.probe.wait();
  if (wait.kind == Kind::kRunnable || wait.kind == Kind::kUnknown) {
    place = thread.probe.place();
    if (!place || !place->is_ready) wait = thread.probe.wait();
  }
  const bool is_running = wait.kind == Kind::kRunnable || wait.kind == Kind::kUnknown;
  if (thread.is_waiting && settings_.mode == Mode::kWall) put_same(thread, RawSample::Stack::kSame);
  thread.is_waiting = false;
  thread.open_ready_ns += schedule->ready_ns - thread.looked.ready_ns;
  const os::Schedule before = std::exchange(thread.looked, *schedule);
  account(thread, schedule->cpu_ns - before.cpu_ns, is_running);
  if (is_due(thread, now_ns)) pay(thread, *schedule);
  if (!is_running)
    found_waiting(thread, wait, *schedule, now_ns);
  else if (!stopping_ || wait.kind != Kind::kRunnable || !stop_running(thread, before, *schedule, place))
    found_running(thread, before, *schedule, place);
  thread.looked_ns = now_ns;
}

void Sampler::found_waiting(Thread& thread, const os::KernelWait& wait, const os::Schedule& schedule,
                            std::int64_t now_ns) {
  if (settings_.mode != Mode::kWall) {
    thread.is_waiting = true;
    return;
  }
  const Standing standing{&thread.probe, schedule};
  thread.state = current_state(thread);
  const cpython::Snapshot snapshot =
      has_native() ? stopping_->read_waiting(standing, wait, thread.state.address, reader_).snapshot
                   : read(thread, standing);
  if (!snapshot.is_proven || !was_its_own(thread)) return;
  if (has_native()) learn_codes(snapshot.time_ns);
  const std::int64_t wall_ns = now_ns - thread.settled_ns;
  const std::int64_t used_ns =
      (schedule.cpu_ns - thread.settled.cpu_ns) + (schedule.ready_ns - thread.settled.ready_ns) + thread.held_ns;
  Pending stack;
  fill(stack, snapshot, true, has_native());
  thread.activity = activity_of(memory_, target_.layout, target_.runtime, thread.state, wait);
  put(thread, stack, thread.activity, std::max<std::int64_t>(wall_ns - used_ns, 0));
  thread.settled = schedule;
  // The schedule was read after the time of day: a thread may have run in between (capture/thread_clocks.h).
  thread.settled_ns += std::max(wall_ns, used_ns);
  thread.held_ns = 0;
  thread.is_waiting = true;
}

bool Sampler::stop_running(Thread& thread, const os::Schedule& before, const os::Schedule& schedule,
                           const std::optional<os::Place>& place) {
  using Outcome = NativeReader::Outcome;
  const bool wants_gil = settings_.mode == Mode::kGil;
  const auto has_gil = [&] { return holds_gil(memory_, target_.layout, target_.runtime, thread.state); };
  NativeReader::Look look;
  bool holds_now = false;
  // It is to stop where it computes; from another CPU it would be met at the end of a system call too often.
  std::optional<Standing> standing;
  if (shared_cpu_) standing = shared_cpu_->stand_beside(thread.probe, schedule, place);
  const std::int64_t used_ns = (standing ? standing->schedule : schedule).cpu_ns - before.cpu_ns;
  // (Where we have its CPU, it stands in the queue for our sake.)
  const bool is_beside = standing || (place && place->cpu == os::current_cpu());
  std::int64_t looked_ns = thread.info.end_ns;
  bool has_run = is_beside ? ran_until_now(thread, used_ns) : used_ns > 0 && computes_on(thread, used_ns);
  for (int tried = 0; tried < kTries && look.outcome == Outcome::kMoved; ++tried) {
    StackReader::let_pass(look.snapshot);
    thread.state = current_state(thread);
    const bool held_before = wants_gil && has_gil();
    look = stopping_->read_stopped(thread.info.tid, thread.probe, thread.state.address, reader_);
    holds_now = held_before && has_gil();
    if (look.outcome == Outcome::kRefused || look.outcome == Outcome::kLate) return false;
    if (look.outcome == Outcome::kEnded) return true;
    look.snapshot.is_proven = look.snapshot.is_proven && was_its_own(thread);
    note_held(thread, std::exchange(looked_ns, monotonic_ns()), look.schedule);
    // It has come to no CPU since before it was stopped: it was there already, and not in a queue.
    has_run = has_run || look.schedule.turns == schedule.turns;
    // What it does to be stopped is no work of its own.
    thread.open_ready_ns += look.schedule.ready_ns - thread.looked.ready_ns;
    thread.looked = look.schedule;
  }
  if (!look.snapshot.is_proven) {
    const cpython::WalkStop stop = look.snapshot.walk.stop;
    if (has_run) drop(cpython::is_proven(stop) ? DropReason::kMoved : capture::reason_of(stop));
    return true;
  }
  learn_codes(look.snapshot.time_ns);
  if (has_run)
    keep(thread, look.snapshot, !wants_gil || holds_now, has_native());
  else
    found_queued(thread, look.snapshot, has_native());
  return true;
}

void Sampler::note_held(Thread& thread, std::int64_t looked_ns, const os::Schedule& at_stop) const {
  // Until it stood still it ran, or had to wait for a CPU to stop on, and the kernel tells of that.
  const std::int64_t told_ns = (at_stop.cpu_ns - thread.looked.cpu_ns) + (at_stop.ready_ns - thread.looked.ready_ns);
  const std::int64_t passed_ns = stopping_->asked_ns() + stopping_->held_ns() - looked_ns;
  thread.held_ns += std::clamp<std::int64_t>(passed_ns - told_ns, 0, stopping_->held_ns());
}

void Sampler::found_running(Thread& thread, const os::Schedule& before, const os::Schedule& schedule,
                            const std::optional<os::Place>& place) {
  const bool wants_gil = settings_.mode == Mode::kGil;
  const auto has_gil = [&] { return holds_gil(memory_, target_.layout, target_.runtime, thread.state); };
  std::optional<Standing> standing;
  if (shared_cpu_) standing = shared_cpu_->stand_beside(thread.probe, schedule, place);
  cpython::Snapshot snapshot;
  bool holds_now = false, is_late = false;
  for (int tried = 0; tried < kTries && !snapshot.is_proven; ++tried) {
    StackReader::let_pass(snapshot);
    if (tried > 0) {
      standing = shared_cpu_->stand_beside(thread.probe);
      is_late = !standing;
      if (is_late) standing = standing_still(thread.probe);  // it may have begun to wait since
    }
    if (!standing && !can_prove_running(target_.layout)) return drop(DropReason::kMoved);
    const bool held_before = wants_gil && has_gil();
    snapshot = read(thread, standing);
    snapshot.is_proven = snapshot.is_proven && was_its_own(thread);
    holds_now = held_before && has_gil();
    if (!shared_cpu_) break;
  }
  is_late = is_late && standing;
  const bool is_queued = is_late ? schedule.cpu_ns <= before.cpu_ns : !has_run(thread, before, schedule, standing);
  if (is_queued) {
    if (snapshot.is_proven) found_queued(thread, snapshot, false);
    return;
  }
  // Where it waits now is not where it computed, but near; told of only if nothing better is known.
  if (snapshot.is_proven && is_late && thread.pending_count > 0) return;
  if (snapshot.is_proven) {
    keep(thread, snapshot, !wants_gil || holds_now, false);
    if (is_late) {
      thread.pending[0].stands_for_ns = 1;
      thread.was_met = false;
    }
    return;
  }
  // A thread that ends may still run for a while when the memory of its process is gone already.
  thread.is_gone = snapshot.walk.stop == cpython::WalkStop::kUnreadable && !has_memory();
  if (thread.is_gone) return was_gone_since(thread, before, schedule);
  drop(cpython::is_proven(snapshot.walk.stop) ? DropReason::kMoved : capture::reason_of(snapshot.walk.stop));
}

void Sampler::was_gone_since(Thread& thread, const os::Schedule& before, const os::Schedule& schedule) {
  const std::int64_t spent_ns = (schedule.cpu_ns - before.cpu_ns) + (schedule.ready_ns - before.ready_ns);
  thread.info.end_ns = std::min(thread.info.end_ns, thread.looked_ns + spent_ns);
}

bool Sampler::has_memory() const {
  std::uint64_t word = 0;
  return memory_.load(target_.runtime, word);
}

bool Sampler::computes_on(const Thread& thread, std::int64_t used_ns) {
  return used_ns >= (monotonic_ns() - thread.looked_ns) / 8 * 7;
}

bool Sampler::ran_until_now(Thread& thread, std::int64_t used_ns) {
  if (used_ns <= 0) return false;
  if (computes_on(thread, used_ns)) return true;
  constexpr std::int64_t kMoment = 50'000;
  const std::optional<std::int64_t> its = thread.probe.counted_ns();
  const std::optional<std::int64_t> ours = own_probe().counted_ns();
  return its && ours ? *ours - *its < kMoment : !was_woken(thread);
}

const os::ThreadProbe& Sampler::own_probe() {
  const Tid tid = os::current_tid();
  if (tid != own_tid_) {
    own_tid_ = tid;
    if (!own_place_.is_there()) own_place_ = ProbeRoom::Place(probes_);
    own_probe_ = os::ThreadProbe(tid, own_place_.keep(), ::getpid());
  }
  return own_probe_;
}

bool Sampler::was_woken(Thread& thread) {
  const std::optional<os::Departures> left = thread.probe.departures();
  if (!left) return false;
  // Who computed until a moment ago has been put aside since it was asked last: for us, who are on its CPU, or another.
  return std::exchange(thread.left, *left).involuntary == left->involuntary;
}

bool Sampler::has_run(Thread& thread, const os::Schedule& looked, const os::Schedule& schedule,
                      const std::optional<Standing>& standing) {
  if (standing) return ran_until_now(thread, standing->schedule.cpu_ns - looked.cpu_ns);
  const std::optional<os::Departures> left = thread.probe.departures();
  if (!left) return true;
  const os::Departures before = std::exchange(thread.left, *left);
  const std::uint64_t times_left = left->voluntary + left->involuntary;
  // On its CPU since its schedule was read: it has left one as often as it had come to one then, but for the last time.
  if (times_left + 1 == schedule.turns) return true;
  // In the queue since it was put there, after it had run: it stands where it ran last, if that was a moment ago. It
  // may be for our sake that it does.
  const bool ran_lately = schedule.cpu_ns > looked.cpu_ns;
  if (ran_lately && left->voluntary == before.voluntary) return true;
  return times_left > schedule.turns;  // the kernel does not count all turns: nothing can be told
}

void Sampler::found_queued(Thread& thread, const cpython::Snapshot& snapshot, bool has_native) {
  // Not where it computes, but near; any of them, for a thread that is never met while it computes, or has not been for
  // so long that what it ran then is forgotten soon.
  const bool is_last_old = thread.pending_count == 0 && !thread.pending.empty() &&
                           snapshot.time_ns - thread.pending[0].time_ns > kLastStackIsKept / 2;
  if (is_last_old) thread.times_queued = 0;
  if ((is_last_old || thread.times_met == 0) && next_random(random_) % ++thread.times_queued == 0) {
    if (thread.pending.empty()) thread.pending.emplace_back();
    fill(thread.pending[0], snapshot, settings_.mode != Mode::kGil, has_native);
    thread.pending[0].stands_for_ns = 1;
  }
  if (settings_.mode != Mode::kWall || thread.open_ready_ns <= 0) return;
  Pending stack;
  fill(stack, snapshot, true, has_native);
  put(thread, stack, Activity::kReady, std::exchange(thread.open_ready_ns, 0));
}

cpython::Snapshot Sampler::read(Thread& thread, const std::optional<Standing>& standing) {
  thread.state = current_state(thread);
  const cpython::Snapshot snapshot = reader_.read(thread.state.address, standing);
  learn_codes(snapshot.time_ns);
  return snapshot;
}

void Sampler::learn_codes(std::int64_t time_ns) {
  for (const Address code : reader_.new_codes()) registry_.learn(code, reader_.info_of(code), time_ns);
}

void Sampler::finish() {
  name_threads();
  for (const auto& thread : threads_)
    if (!thread->has_ended) end_thread(*thread);
}

void Sampler::report() {
  find_tasks();
  name_threads();
  // (What a thread that ends was met with last is told of once more: end_thread.)
  std::int64_t oldest_ns = monotonic_ns() - kLastStackIsKept;
  for (const auto& thread : threads_) {
    if (thread->has_ended) continue;
    sink_.thread(thread->info);
    if (thread->pending_count > 0) oldest_ns = std::min(oldest_ns, thread->pending[0].time_ns);
  }
  resolver_.forget_deaths_before(oldest_ns);
  forgotten_before_ns_ = oldest_ns;
}

}  // namespace plimsoll::remote
