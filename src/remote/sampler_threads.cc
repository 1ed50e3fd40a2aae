// remote/sampler_threads.cc: which threads there are, and in which interpreter each is.
#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/clock.h"
#include "remote/program_names.h"
#include "remote/sampler.h"
#include "remote/waiting.h"

namespace plimsoll::remote {
namespace {

// A thread that is not in the list so often, although its neighbours are, has left Python.
constexpr int kMisses = 2;

// A thread that is as old has its name from the program, or gets none. Names are asked for no more often than that.
constexpr std::int64_t kNamedWithin = 50'000'000;

// How many of a thread's states are likely to be other threads' soon: it has one in each interpreter, and up to 3.11
// that of a thread which is being made is its maker's at first.
std::size_t count_of_unborn(const std::vector<ThreadState>& states) {
  if (states.size() < 2) return 0;
  std::set<Address> interpreters;
  for (const ThreadState& state : states) interpreters.insert(state.interpreter);
  return states.size() - interpreters.size();
}

}  // namespace

bool Sampler::has_new_threads() {
  const std::int64_t now_ns = monotonic_ns();
  // The first interpreter, which hardly ever changes, and its newest thread, in one call.
  const cpython::Layout& layout = target_.layout;
  Address found[2] = {};
  const memory::RemoteReader::Range ranges[] = {
      {offset_by(target_.runtime, layout.runtime.interpreters), sizeof found[0]},
      {offset_by(interpreter_, layout.runtime.threads), sizeof found[1]}};
  if (!memory_.read_all(ranges, reinterpret_cast<std::byte*>(found))) return false;
  if (found[0] != interpreter_ || found[1] != newest_) return true;
  listed_ns_ = now_ns;
  return false;
}

void Sampler::update_threads() {
  const bool is_first = threads_.empty();
  const std::int64_t now_ns = monotonic_ns();
  memory::PagedReader pages(memory_);
  std::vector<ThreadState> states = thread_states(pages, target_.layout, target_.runtime);
  newest_ = states.empty() ? Address{} : states.front().address;
  interpreter_ = states.empty() ? Address{} : states.front().interpreter;
  if (!states.empty()) main_interpreter_ = states.back().interpreter;  // the oldest, which ends last
  std::vector<ThreadState> unknown = sort_states(states);
  std::size_t strangers = unknown.size();
  if (!unknown.empty()) {
    const std::vector<os::Task> tasks = os::tasks_of(target_.pid);
    learn_ids(pages, tasks, unknown);
    // The oldest first: the lists begin with the newest.
    std::reverse(unknown.begin(), unknown.end());
    for (const ThreadState& state : unknown)
      if (const os::Task* task = task_of(tasks, state); task != nullptr) {
        add_state(state, *task);
        strangers_since_ns_ = 0;
        --strangers;
      }
  }
  for (const auto& thread : threads_) strangers += thread->has_ended ? 0 : count_of_unborn(thread->states);
  expect_strangers(strangers, now_ns);
  listed_ns_ = now_ns;
  // Those that are there at first have their names long since; and the process may end at any time.
  if (is_first) {
    name_threads();
    for (const auto& thread : threads_) sink_.thread(thread->info);
  }
  for (const auto& thread : threads_)
    if (thread->times_missed >= kMisses && !thread->has_ended) end_thread(*thread);
  std::erase_if(threads_, [](const auto& thread) { return thread->has_ended; });
}

void Sampler::expect_strangers(std::size_t count, std::int64_t now_ns) {
  // A thread's state is there before the thread runs and says that it is its own: on a busy machine long before. And
  // it may be where that of the last thread was, so that the list looks as if nobody had come.
  constexpr std::int64_t kPatience = 100'000'000;
  if (count == 0) strangers_since_ns_ = 0;
  if (count > 0 && strangers_since_ns_ == 0) strangers_since_ns_ = now_ns;
  if (count > 0 && now_ns - strangers_since_ns_ < kPatience) newest_ = Address{};
}

std::vector<ThreadState> Sampler::sort_states(const std::vector<ThreadState>& states) {
  std::vector<ThreadState> unknown;
  std::vector<std::vector<ThreadState>> found(threads_.size());
  for (const ThreadState& state : states) {
    const auto is_it = [&](const ThreadState& known) {
      return known.native_id == state.native_id && known.address == state.address && known.pthread == state.pthread;
    };
    const auto known = std::find_if(threads_.begin(), threads_.end(), [&](const auto& thread) {
      return !thread->has_ended && std::any_of(thread->states.begin(), thread->states.end(), is_it);
    });
    if (known == threads_.end())
      unknown.push_back(state);
    else
      found[static_cast<std::size_t>(known - threads_.begin())].push_back(state);
  }
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    Thread& thread = *threads_[i];
    thread.times_missed = found[i].empty() ? thread.times_missed + 1 : 0;
    if (!found[i].empty() && found[i].size() < thread.states.size()) thread.state = found[i].front();
    if (!found[i].empty()) thread.states = std::move(found[i]);
  }
  return unknown;
}

void Sampler::add_state(const ThreadState& state, const os::Task& task) {
  const auto known = std::find_if(threads_.begin(), threads_.end(), [&](const auto& thread) {
    return !thread->has_ended && thread->info.tid == task.tid;
  });
  if (known == threads_.end()) return add_thread(state, task);
  // It has come into another interpreter. One that is in none any more waits for its end, as before.
  Thread& thread = **known;
  if (thread.times_missed > 0) thread.states.clear();
  thread.times_missed = 0;
  thread.states.insert(thread.states.begin(), state);
  if (thread.states.size() == 1) thread.state = state;
}

void Sampler::add_thread(const ThreadState& state, const os::Task& task) {
  auto thread = std::make_unique<Thread>();
  thread->place = ProbeRoom::Place(probes_);
  thread->state = state;
  thread->states = {state};
  thread->probe = os::ThreadProbe(task.tid, thread->place.keep(), static_cast<std::int32_t>(target_.pid));
  thread->info.serial = capture::ThreadSerial{next_serial_++};
  thread->info.tid = task.tid;
  thread->info.name = task.name;
  thread->info.start_ns = thread->info.end_ns = thread->looked_ns = thread->settled_ns = monotonic_ns();
  thread->paid = thread->probe.schedule();
  thread->looked = thread->settled = thread->known = thread->paid.value_or(os::Schedule{});
  if (listed_ns_ > 0) know_from_birth(*thread, thread->looked_ns);
  if (nameless_since_ns_ == 0) nameless_since_ns_ = thread->looked_ns;
  sink_.thread(thread->info);
  threads_.push_back(std::move(thread));
}

void Sampler::know_from_birth(Thread& thread, std::int64_t now_ns) const {
  // One that has run for longer has been there before it came to Python. One that has waited for longer may have, or
  // has waited for its first CPU.
  const std::int64_t within_ns = now_ns - listed_ns_;
  os::Schedule& known = thread.known;
  if (!thread.paid || known.cpu_ns > within_ns) return;
  thread.born_within_ns = within_ns;
  if (known.cpu_ns + known.ready_ns <= within_ns) thread.settled_ns -= std::exchange(known.ready_ns, 0);
  thread.settled_ns -= std::exchange(known.cpu_ns, 0);
  thread.info.start_ns = thread.settled_ns;
  thread.paid = thread.looked = thread.settled = known;
  // A look finds it with the same chance at any time of its life, so the first one stands for as long as the others.
  thread.looked_ns = listed_ns_;
}

bool Sampler::end_those_gone() {
  bool is_any = false;
  for (const auto& thread : threads_)
    if (thread->is_gone && !thread->has_ended) {
      end_thread(*thread);
      is_any = true;
    }
  return is_any;
}

void Sampler::end_thread(Thread& thread) {
  const std::int64_t seen_ns = thread.info.end_ns;
  const std::optional<os::Schedule> left = thread.probe.schedule();
  os::Schedule last = left.value_or(thread.looked);
  if (const std::int64_t unseen_ns = left ? 0 : unseen_end(thread); unseen_ns > 0) {
    last.cpu_ns += unseen_ns;
    thread.info.end_ns += unseen_ns;
  }
  const std::int64_t used_ns = last.cpu_ns - thread.known.cpu_ns;
  ended_cpu_ns_ += used_ns;
  // (If it stood in the queue when it was found, it is not known since when.)
  thread.info.start_ns =
      std::min(thread.info.start_ns, thread.info.end_ns - used_ns - (last.ready_ns - thread.known.ready_ns));
  const bool owes = thread.paid && last.cpu_ns > thread.paid->cpu_ns;
  // What nothing else stands for it has used where it was last, if what it ran there is known still.
  const bool has_last = !thread.pending.empty() && thread.pending[0].time_ns >= forgotten_before_ns_;
  if (owes && thread.pending_count == 0 && has_last) thread.pending_count = 1;
  if (owes) pay(thread, last);
  if (settings_.mode == capture::Mode::kWall) put_open_ready(thread, has_last);
  for (std::size_t i = 0; i < thread.pending_count; ++i) drop(capture::DropReason::kThreadEnded);
  thread.pending_count = 0;
  if (owes && settings_.mode != capture::Mode::kGil) drop_unpaid(last.cpu_ns - thread.paid->cpu_ns);
  if (thread.is_waiting && settings_.mode == capture::Mode::kWall)
    put_same(thread, capture::RawSample::Stack::kSameLast);
  thread.has_ended = thread.info.has_ended = true;
  sink_.thread(thread.info);
  // The next one may be in its place since then.
  newest_ = Address{};
  listed_ns_ = std::min(listed_ns_, seen_ns);
}

void Sampler::put_open_ready(Thread& thread, bool has_last) {
  const std::int64_t ready_ns = std::exchange(thread.open_ready_ns, 0);
  if (ready_ns <= 0) return;
  if (has_last) return put(thread, thread.pending[0], Activity::kReady, ready_ns);
  // It was met in waits only: it stood in the queue when what it waited for had come.
  put_same(thread, capture::RawSample::Stack::kSame, Activity::kReady, ready_ns);
}

void Sampler::drop_unpaid(std::int64_t cpu_ns) {
  // Less is the clock's own step, and what a thread uses to end.
  constexpr std::int64_t kLeast = 10'000'000;
  unpaid_ns_ += std::max<std::int64_t>(cpu_ns, 0);
  if (unpaid_ns_ < kLeast) return;
  capture::DropTotal& lost = drops_[static_cast<std::size_t>(capture::DropReason::kThreadEnded)];
  ++lost.count;
  lost.cpu_ns += std::exchange(unpaid_ns_, 0);
}

void Sampler::name_new_threads() {
  if (nameless_since_ns_ > 0 && monotonic_ns() - nameless_since_ns_ >= kNamedWithin) name_threads();
}

void Sampler::name_threads() {
  // A thread gets its name after it has begun, or never, if it is not one of Python's.
  constexpr int kTimes = 3;
  const std::int64_t now_ns = monotonic_ns();
  nameless_since_ns_ = 0;
  std::map<std::uint64_t, std::map<std::uint64_t, std::string>> names;  // by interpreter
  for (const auto& thread : threads_) {
    if (thread->has_ended || thread->times_named >= kTimes) continue;
    const ThreadState& state = thread->states.back();  // of the interpreter that it was in first
    const auto [known, is_first] = names.try_emplace(raw(state.interpreter));
    if (is_first) known->second = program_names(target_, state.interpreter);
    const auto name = known->second.find(state.pthread);
    if (name != known->second.end()) {
      thread->info.name = name->second;
      thread->times_named = kTimes;
    } else if (now_ns - thread->info.start_ns >= kNamedWithin) {
      ++thread->times_named;
    }
  }
}

bool Sampler::was_its_own(const Thread& thread) const {
  return thread.states.size() == 1 || is_still_its(memory_, target_.layout, thread.state);
}

ThreadState Sampler::current_state(const Thread& thread) const {
  if (thread.states.size() == 1) return thread.state;
  // The state of a thread that is being made is its maker's for a moment: until it runs, before it has a frame or the
  // lock. So whose it is is asked again when that has been seen.
  const auto is_its_own = [&](const ThreadState& state) { return is_still_its(memory_, target_.layout, state); };
  std::vector<ThreadState> states;
  std::copy_if(thread.states.begin(), thread.states.end(), std::back_inserter(states), is_its_own);
  if (states.empty()) return thread.state;
  // Up to 3.11 a thread takes the lock along from one interpreter into the other, and it stays the first one's.
  const bool locks_tell = target_.layout.gil.in_runtime == cpython::kNoField;
  if (locks_tell)
    for (const ThreadState& state : states)
      if (holds_gil(memory_, target_.layout, target_.runtime, state) && is_its_own(state)) return state;
  // Else it has given the lock up, to wait or to work without it. Interpreters are entered from older ones, as a rule.
  for (const ThreadState& state : states) {
    Address frame{};
    if ((!locks_tell || was_last_in_gil(memory_, target_.layout, target_.runtime, state)) &&
        cpython::current_frame(memory_, target_.layout, state.address, frame) && !is_null(frame) && is_its_own(state))
      return state;
  }
  const auto is_before = [&](const ThreadState& state) { return state.address == thread.state.address; };
  const auto before = std::find_if(states.begin(), states.end(), is_before);
  return before != states.end() ? *before : states.back();
}

}  // namespace plimsoll::remote
