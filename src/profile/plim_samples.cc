#include "profile/plim_samples.h"

#include <algorithm>
#include <utility>

#include "profile/plim_columns.h"

namespace plimsoll::profile {
namespace {

// What is said of a stack: these, or 3 and the slot that it is in.
enum StackSymbol : std::uint64_t { kSame = 0, kNew = 1, kOlder = 2, kInSlot = 3 };
// What a section's samples have, beside what all have.
enum Flag : std::uint64_t { kWaits = 1, kTags = 2 };

// Periods stay the same for some ticks: a larger step is followed by small ones.
std::size_t weight_context(const SampleState& state) {
  const std::uint64_t step = zigzag(state.weight_step);
  return step <= 2 ? 0 : step <= 8 ? 1 : 2;
}
std::size_t stack_context(const SampleState& state) { return std::min<std::uint64_t>(state.stack_symbol, kOlder); }
std::size_t time_context(const SampleState& state) { return state.lag == 0 ? 0 : 1; }

}  // namespace

// ---- written ----

SampleEncoder::ThreadState& SampleEncoder::state_of(ThreadId thread) {
  const auto [found, is_new] = threads_.try_emplace(static_cast<std::uint32_t>(thread.index()));
  if (is_new) {
    found->second.time = time_;
    found->second.weight = weight_;
  }
  return found->second;
}

void SampleEncoder::put_stack(std::uint64_t stack, SampleState& state, SymbolWriter& out) {
  const auto number = static_cast<std::uint32_t>(stack);
  ChainEnds& chains = tables_.chains();
  std::uint64_t symbol = kOlder;
  if (stack == std::exchange(state.stack, stack)) {
    symbol = kSame;
  } else if (stack == chains.next()) {
    symbol = kNew;
    chains.met(stack);
    slots_.add(number);
  } else if (const std::optional<unsigned> slot = slots_.meet(number)) {
    symbol = kInSlot + *slot;
  }
  out.put(models_.stacks[stack_context(state)], symbol);
  state.stack_symbol = symbol;
  if (symbol == kOlder) out.put(models_.older, chains.newest() - stack);
}

// The thread that a row and those after it are of.
void SampleEncoder::put_thread(const SampleTable& table, std::size_t row, std::size_t end, SymbolWriter& out) {
  const ThreadId thread = table.thread[row];
  std::size_t after = row + 1;
  while (after < end && table.thread[after] == thread) ++after;
  const std::uint64_t before = std::exchange(thread_, thread.index());
  out.put_signed(models_.threads, static_cast<std::int64_t>(thread_ - before));
  out.put(models_.runs, after - row - 1);
}

void SampleEncoder::put_row(const SampleTable& table, std::size_t row, std::uint64_t flags, ThreadState& state,
                            SymbolWriter& out) {
  if ((flags & kWaits) != 0) {
    const Activity before = std::exchange(state.activity, table.activity[row]);
    out.put(models_.activities[static_cast<std::size_t>(before)], static_cast<std::uint64_t>(table.activity[row]));
  }
  if ((flags & kTags) != 0) {
    const auto tags = static_cast<std::uint64_t>(tables_.tag_set(table.tags[row]));
    const bool is_same = tags == std::exchange(state.tags, tags);
    out.put(models_.tags, is_same ? 0 : tables_.tag_set_count() - tags + 1);
  }
  put_stack(static_cast<std::uint64_t>(tables_.stack(table.stack[row])), state, out);
  // Ticks are a period of CPU time apart, also where the thread waits or other programs have the CPU.
  const std::int64_t weight_ns = table.weight_ns[row] + state.remainder_ns;
  const std::int64_t weight = to_units(weight_ns, unit_ns_);
  state.remainder_ns = weight_ns - weight * unit_ns_;
  SymbolModel& weights = models_.weights[weight_context(state)];
  state.weight_step = weight - std::exchange(state.weight, weight);
  out.put_signed(weights, state.weight_step);
  // A thread that runs all the time uses as much CPU time as time passes: mostly the difference is 0.
  const std::int64_t time = to_units(table.time_ns[row], unit_ns_);
  SymbolModel& times = models_.times[time_context(state)];
  state.lag = time - std::exchange(state.time, time) - weight;
  out.put_signed(times, state.lag);
  time_ = time;
  weight_ = weight;
}

void SampleEncoder::put(const Profile& profile, std::size_t& next, std::size_t most, SymbolWriter& out) {
  const SampleTable& table = profile.samples;
  const std::size_t first = next;
  const std::size_t end = next = first + std::min(most, table.size() - first);
  out.put(models_.counts, end - first);
  if (first == end) return;
  std::uint64_t flags = 0;
  for (std::size_t row = first; row < end; ++row) {
    if (table.activity[row] != Activity::kRunning) flags |= kWaits;
    if (!table.tags[row].is_none()) flags |= kTags;
  }
  out.put(models_.flags, flags);
  ThreadState* of_thread = nullptr;
  for (std::size_t row = first; row < end; ++row) {
    if (row == first || table.thread[row] != table.thread[row - 1]) {
      put_thread(table, row, end, out);
      of_thread = &state_of(table.thread[row]);
    }
    put_row(table, row, flags, *of_thread, out);
  }
}

// ---- read ----

SampleState* SampleDecoder::state_of(std::uint64_t thread) {
  if (thread >= profile_.threads.size()) return nullptr;
  if (threads_.size() < profile_.threads.size()) threads_.resize(profile_.threads.size());
  ThreadState& state = threads_[thread];
  if (!std::exchange(state.is_known, true)) {
    state.time = time_;
    state.weight = weight_;
  }
  return &state;
}

bool SampleDecoder::read_stack(SymbolReader& rows, SampleState& state) {
  const std::uint64_t symbol = rows.get(models_.stacks[stack_context(state)]);
  state.stack_symbol = symbol;
  ChainEnds& chains = tables_.chains();
  if (symbol == kSame) return true;
  if (symbol >= kInSlot) {
    if (symbol - kInSlot >= RecentSlots::kCount) return false;
    const auto slot = static_cast<unsigned>(symbol - kInSlot);
    slots_.touch(slot);
    state.stack = slots_[slot];
    return true;
  }
  if (symbol == kNew) {
    state.stack = chains.next();
    chains.met(state.stack);
  } else {
    const std::uint64_t back = rows.get(models_.older);
    if (back > chains.newest()) return false;
    state.stack = chains.newest() - back;
  }
  slots_.add(static_cast<std::uint32_t>(state.stack));
  return true;
}

bool SampleDecoder::read_row(SymbolReader& rows, std::size_t row, std::uint64_t flags) {
  if (run_ == 0) {
    thread_ += static_cast<std::uint64_t>(rows.get_signed(models_.threads));
    run_ = rows.get(models_.runs) + 1;
  }
  --run_;
  SampleState* state = state_of(thread_);
  if (state == nullptr) return false;
  if ((flags & kWaits) != 0) {
    const std::uint64_t activity = rows.get(models_.activities[static_cast<std::size_t>(state->activity)]);
    if (activity >= kActivityCount) return false;
    state->activity = static_cast<Activity>(activity);
  }
  if ((flags & kTags) != 0) {
    const std::uint64_t back = rows.get(models_.tags);
    if (back > tables_.tag_set_count() + 1) return false;
    if (back != 0) state->tags = tables_.tag_set_count() + 1 - back;
  }
  if (!read_stack(rows, *state)) return false;
  Steps steps;
  steps.weight = rows.get_signed(models_.weights[weight_context(*state)]);
  steps.time = rows.get_signed(models_.times[time_context(*state)]);
  state->weight_step = steps.weight;
  state->lag = steps.time;
  // Their last ones are kept for the next section that has any.
  const Activity activity = (flags & kWaits) != 0 ? state->activity : Activity::kRunning;
  const std::uint64_t tags = (flags & kTags) != 0 ? state->tags : 0;
  if (rows.failed() || !put(row, thread_, *state, steps, activity, tags)) return false;
  time_ = state->time;
  weight_ = state->weight;
  return true;
}

bool SampleDecoder::read(SymbolReader& rows, double part) {
  const std::uint64_t count = rows.get(models_.counts);
  if (rows.failed() || count > kRowsInSection) return false;
  if (count == 0) return true;
  const std::uint64_t flags = rows.get(models_.flags);
  std::size_t row = profile_.samples.size();
  const std::size_t end = row + count;
  make_room(end, part);
  profile_.samples.resize(end);
  run_ = 0;
  SymbolReader local = rows;  // nobody else has its address: its state stays in registers
  while (row < end && read_row(local, row, flags)) ++row;
  rows = local;
  profile_.samples.resize(row);
  return row == end && run_ == 0;
}

bool SampleDecoder::put(std::size_t row, std::uint64_t thread, SampleState& state, const Steps& step, Activity activity,
                        std::uint64_t written_tags) {
  std::int64_t delta = 0;
  if (__builtin_add_overflow(state.weight, step.weight, &state.weight) ||
      __builtin_add_overflow(state.weight, step.time, &delta) || __builtin_add_overflow(state.time, delta, &state.time))
    return false;
  std::int64_t time_ns = 0;
  std::int64_t weight_ns = 0;
  StackId stack;
  TagSetId tags;
  if (!tables_.stack(static_cast<std::int64_t>(state.stack), stack) || !tables_.tag_set(written_tags, tags) ||
      !to_nanoseconds(state.time, unit_ns_, time_ns) || !to_nanoseconds(state.weight, unit_ns_, weight_ns))
    return false;
  // Whoever adds weights up must not leave 64 bits.
  if (weight_ns > weight_left_ || weight_ns < -weight_left_) return false;
  weight_left_ -= std::abs(weight_ns);
  if (delta < 0) is_disordered_ = true;
  profile_.samples.set(row, time_ns, ThreadId{static_cast<std::size_t>(thread)}, stack, weight_ns, activity, tags);
  return true;
}

// If the file goes on as it began, its columns need not grow again, which would copy them.
void SampleDecoder::make_room(std::size_t rows, double part) {
  constexpr double kSpare = 1.05;
  constexpr std::size_t kMostAhead = std::size_t{1} << 26U;
  if (rows <= profile_.samples.time_ns.capacity() || profile_.samples.size() == 0) return;
  const double expected = kSpare * static_cast<double>(rows) / std::max(part, 1e-9);
  const auto most = static_cast<double>(rows + kMostAhead);
  profile_.samples.reserve(std::max(2 * rows, static_cast<std::size_t>(std::min(expected, most))));
}

void SampleDecoder::finish() {
  if (is_disordered_) profile_.samples.order_by_time();
}

// ---- version 2 ----

bool SampleDecoder::read_columns(VarintCursor& cursor, double part) {
  const std::size_t count = cursor.count();
  VarintCursor threads(cursor.bytes());
  VarintCursor stacks(cursor.bytes());
  VarintCursor weights(cursor.bytes());
  VarintCursor times(cursor.bytes());
  if (cursor.failed()) return false;
  // Without this column, all threads were running.
  const bool has_activities = !cursor.at_end();
  VarintCursor activities(has_activities ? cursor.bytes() : std::string_view{});
  if (cursor.failed()) return false;
  // Without this one, no sample has tags.
  const bool has_tags = !cursor.at_end();
  VarintCursor tag_runs(has_tags ? cursor.bytes() : std::string_view{});
  if (cursor.failed()) return false;
  // A row takes a byte of each of these at least.
  if (count > std::min({stacks.remaining(), weights.remaining(), times.remaining()})) return false;
  ColumnRun same_thread;
  ColumnRun same_activity{.left = has_activities ? 0 : count};
  ColumnRun same_tags{.left = has_tags ? 0 : count};
  threads_.resize(profile_.threads.size());
  std::size_t row = profile_.samples.size();
  const std::size_t end = row + count;
  make_room(end, part);
  profile_.samples.resize(end);
  for (; row < end; ++row) {
    if (!same_activity.next(activities, kActivityCount - 1) || !same_thread.next(threads, UINT32_MAX) ||
        !same_tags.next(tag_runs, tables_.tag_set_count()) || same_thread.value >= threads_.size())
      break;
    SampleState& state = threads_[same_thread.value];
    state.stack += static_cast<std::uint64_t>(stacks.signed_varint());  // below 0 is above all
    const Steps steps{weights.signed_varint(), times.signed_varint()};
    const auto activity = static_cast<Activity>(same_activity.value);
    if (!put(row, same_thread.value, state, steps, activity, same_tags.value)) break;
    if (stacks.failed() || times.failed() || weights.failed()) break;
  }
  profile_.samples.resize(row);
  return row == end;
}

}  // namespace plimsoll::profile
