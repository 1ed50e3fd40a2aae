// remote/sampler_weights.cc: how much time each stack stands for that a look has found.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "base/clock.h"
#include "base/random.h"
#include "remote/sampler.h"

namespace plimsoll::remote {
namespace {

using capture::DropReason;
using capture::Mode;
using capture::RawSample;

// Stacks that wait for their weights. Of more than these, each has the same chance to be kept.
constexpr std::size_t kMostPending = 256;
// So many share what the thread has used, or fewer after this time.
constexpr std::size_t kEnoughPending = 16;
constexpr std::int64_t kLongestPending = 500'000'000;

}  // namespace

void Sampler::fill(Pending& stack, const cpython::Snapshot& snapshot, bool is_wanted, bool has_native) {
  stack.time_ns = snapshot.time_ns;
  stack.is_wanted = is_wanted;
  stack.stop = snapshot.walk.stop;
  stack.frames.assign(reader_.frames().begin(), reader_.frames().end());
  stack.has_native = has_native;
  if (!has_native) return;
  const capture::NativeStack native = stopping_->unwind();
  stack.native = native.head;
  stack.native_frames.assign(native.frames.begin(), native.frames.end());
}

void Sampler::keep(Thread& thread, const cpython::Snapshot& snapshot, bool is_wanted, bool has_native) {
  ++thread.pending_seen;
  std::size_t place = thread.pending_count;
  if (place == kMostPending) {
    place = next_random(random_) % thread.pending_seen;
    if (place >= kMostPending) return;
    // In the order of their times, so that they can be told of as they were.
    std::rotate(thread.pending.begin() + static_cast<std::ptrdiff_t>(place),
                thread.pending.begin() + static_cast<std::ptrdiff_t>(place) + 1, thread.pending.end());
    place = kMostPending - 1;
  } else {
    ++thread.pending_count;
  }
  if (place == thread.pending.size()) thread.pending.emplace_back();
  fill(thread.pending[place], snapshot, is_wanted, has_native);  // keeps its room
  thread.pending[place].stands_for_ns =
      thread.looked_ns != 0 ? std::max<std::int64_t>(snapshot.time_ns - thread.looked_ns, 1) : 1;
  thread.was_met = true;
  ++thread.times_met;
}

// Looks that come at any time find a burst of computing with a chance that is its length, so each stack found stands
// for the time between looks. What the clock adds to that, or takes away, is shared by many: were it given to the next
// stack that is found, functions that are done between two looks would be told as those that last.
void Sampler::account(Thread& thread, std::int64_t cpu_ns, bool is_running) {
  if (settings_.mode == Mode::kWall && thread.open_ready_ns > 0 && thread.pending_count > 0)
    put(thread, thread.pending[thread.pending_count - 1], Activity::kReady, std::exchange(thread.open_ready_ns, 0));
  const bool goes_on = std::exchange(thread.was_met, false) && is_running;
  if (!goes_on) thread.unmet_ns += cpu_ns;
  // One that computes on and on, as it seems, has nothing to share.
  thread.is_alone = goes_on && thread.pending_count == 1 && thread.unmet_ns <= cpu_ns / 16;
}

bool Sampler::is_overdue(const Thread& thread, std::int64_t now_ns) {
  return thread.pending_count > 0 && now_ns - thread.pending[0].time_ns >= kLongestPending;
}

bool Sampler::is_due(const Thread& thread, std::int64_t now_ns) {
  return thread.is_alone || thread.pending_count >= kEnoughPending || is_overdue(thread, now_ns);
}

void Sampler::pay(Thread& thread, const os::Schedule& schedule) {
  std::int64_t cpu_ns = schedule.cpu_ns - thread.paid->cpu_ns;
  if (cpu_ns <= 0 || thread.pending_count == 0) return;
  const std::span<const Pending> stacks = std::span(thread.pending).first(thread.pending_count);
  double open = 0;
  for (const Pending& stack : stacks) open += static_cast<double>(stack.stands_for_ns);
  for (const Pending& stack : stacks) {
    const auto stands_for = static_cast<double>(stack.stands_for_ns);
    const bool is_last = &stack == &stacks.back();
    const std::int64_t share_ns = is_last ? cpu_ns : std::llround(static_cast<double>(cpu_ns) * stands_for / open);
    open -= stands_for;
    cpu_ns -= share_ns;
    thread.info.cpu_ns += share_ns;
    if (stack.is_wanted) put(thread, stack, Activity::kRunning, share_ns);
  }
  std::swap(thread.pending[0], thread.pending[thread.pending_count - 1]);  // where it was last (end_thread)
  thread.pending_count = thread.pending_seen = 0;
  thread.unmet_ns = 0;
  thread.paid = schedule;
}

void Sampler::put(const Thread& thread, const Pending& stack, Activity activity, std::int64_t weight_ns) {
  RawSample raw;
  raw.time_ns = stack.time_ns;
  raw.weight_ns = weight_ns;
  raw.thread = thread.info.serial;
  raw.frame_count = static_cast<std::uint32_t>(stack.frames.size());
  raw.stop = stack.stop;
  raw.activity = activity;
  if (!has_native()) {
    if (!resolver_.resolve(raw, stack.frames)) drop(DropReason::kUnknownCode);
    return;
  }
  raw.has_native = stack.has_native ? 1 : 0;
  const capture::NativeStack native{stack.native, stack.native_frames};
  bool is_matched = false;
  if (!resolver_.resolve_native(raw, native, stack.frames, {}, is_matched)) return drop(DropReason::kUnknownCode);
  if (!stack.has_native) return drop(DropReason::kNativeUnreadable);
  if (!is_matched) drop(DropReason::kNativeUnmatched);
  if (stack.native.stop != native::UnwindStop::kComplete) drop(capture::reason_of(stack.native.stop));
}

std::int64_t Sampler::tell_after_ns() const {
  constexpr std::int64_t kLongest = 500'000'000;
  constexpr std::size_t kFew = 64;  // threads: of more each is told of more seldom
  const auto scale = static_cast<std::int64_t>(1 + threads_.size() / kFew);
  return std::min(kLongest, scale * settings_.tell_after_ns);
}

void Sampler::put_same(Thread& thread, RawSample::Stack stack) {
  if (thread.open_ns <= 0 && stack == RawSample::Stack::kSame) return;
  put_same(thread, stack, thread.activity, std::exchange(thread.open_ns, 0));
}

void Sampler::put_same(const Thread& thread, RawSample::Stack stack, Activity activity, std::int64_t weight_ns) {
  RawSample raw;
  raw.time_ns = monotonic_ns();
  raw.weight_ns = weight_ns;
  raw.thread = thread.info.serial;
  raw.activity = activity;
  raw.stack = stack;
  if (!resolver_.resolve(raw, {})) drop(DropReason::kUnknownCode);
}

// A thread that lives for less than the time between two looks is found with a chance that is its life's part of that
// time, so it stands for all of that (Horvitz and Thompson); one that lives for longer ends, on average, in the middle
// between two looks. What the process has used, and no thread is known to have, is the most that there can be.
std::int64_t Sampler::unseen_end(const Thread& thread) {
  if (!thread.was_met) return 0;
  const std::int64_t most_ns = std::max<std::int64_t>(cpu_.used_ns() - known_cpu_ns(), 0);
  const bool is_short = thread.times_met == 1 && thread.born_within_ns > 0;
  const std::int64_t expected_ns =
      is_short ? thread.born_within_ns - thread.looked.cpu_ns : (monotonic_ns() - thread.looked_ns) / 2;
  return std::clamp<std::int64_t>(expected_ns, 0, most_ns);
}

std::int64_t Sampler::known_cpu_ns() const {
  std::int64_t known_ns = ended_cpu_ns_;
  for (const auto& thread : threads_)
    if (!thread->has_ended) known_ns += thread->looked.cpu_ns - thread->known.cpu_ns;
  return known_ns;
}

}  // namespace plimsoll::remote
