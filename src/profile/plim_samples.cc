#include "profile/plim_samples.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "profile/plim_columns.h"

namespace plimsoll::profile {

// ---- written ----

std::int64_t SampleEncoder::units(std::int64_t ns) const {
  return ns >= 0 ? (ns + unit_ns_ / 2) / unit_ns_ : -((-ns + unit_ns_ / 2) / unit_ns_);
}

std::string SampleEncoder::next(const Profile& profile, std::size_t& next) {
  // Columns, one after the other, as equal things compress better together.
  const SampleTable& table = profile.samples;
  if (next == table.size()) return {};
  const std::size_t first = next;
  const std::size_t end = next = std::min(first + kRowsInSection, table.size());
  std::string stacks, times, weights;
  RunEncoder threads, activities, tags;
  bool any_waits = false;
  bool any_tags = false;
  ThreadState* of_thread = nullptr;
  for (std::size_t row = first; row < end; ++row) {
    if (row == first || table.thread[row] != table.thread[row - 1])
      of_thread = &threads_[static_cast<std::uint32_t>(table.thread[row].index())];
    ThreadState& state = *of_thread;
    threads.add(table.thread[row].index());
    activities.add(static_cast<std::uint64_t>(table.activity[row]));
    any_waits = any_waits || table.activity[row] != Activity::kRunning;
    tags.add(static_cast<std::uint64_t>(tables_.tag_set(table.tags[row])));
    any_tags = any_tags || !table.tags[row].is_none();
    const std::int64_t stack = tables_.stack(table.stack[row]);
    put_signed(stacks, stack - std::exchange(state.stack, stack));
    // Ticks are a period of CPU time apart, also where the thread waits or other programs have the CPU.
    const std::int64_t weight_ns = table.weight_ns[row] + state.remainder_ns;
    const std::int64_t weight = units(weight_ns);
    state.remainder_ns = weight_ns - weight * unit_ns_;
    put_signed(weights, weight - std::exchange(state.weight, weight));
    // A thread that runs all the time uses as much CPU time as time passes: mostly the difference is 0.
    const std::int64_t time = units(table.time_ns[row]);
    put_signed(times, time - std::exchange(state.time, time) - weight);
  }
  std::string out;
  put_varint(out, end - first);
  put_bytes(out, threads.take());
  for (const std::string* column : {&stacks, &weights, &times}) put_bytes(out, *column);
  if (any_waits || any_tags) put_bytes(out, activities.take());
  if (any_tags) put_bytes(out, tags.take());
  return out;
}

// ---- read ----

bool SampleDecoder::read(VarintCursor& cursor, std::int64_t unit_ns, double part) {
  unit_ns_ = unit_ns;
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
    ThreadId thread;
    TagSetId tags;
    if (!same_activity.next(activities, kActivityCount - 1) || !same_thread.next(threads, UINT32_MAX) ||
        !same_tags.next(tag_runs, tables_.tag_set_count()) || !tables_.thread(same_thread.value, thread) ||
        !tables_.tag_set(same_tags.value, tags))
      break;
    const Steps steps{stacks.signed_varint(), weights.signed_varint(), times.signed_varint()};
    if (!put(row, thread, steps, static_cast<Activity>(same_activity.value), tags)) break;
    if (stacks.failed() || times.failed() || weights.failed()) break;
  }
  profile_.samples.resize(row);
  return row == end;
}

bool SampleDecoder::put(std::size_t row, ThreadId thread, const Steps& step, Activity activity, TagSetId tags) {
  ThreadState& state = threads_[thread.index()];
  std::int64_t delta = 0;
  if (__builtin_add_overflow(state.stack, step.stack, &state.stack) ||
      __builtin_add_overflow(state.weight, step.weight, &state.weight) ||
      __builtin_add_overflow(state.weight, step.time, &delta) || __builtin_add_overflow(state.time, delta, &state.time))
    return false;
  std::int64_t time_ns = 0;
  std::int64_t weight_ns = 0;
  StackId stack;
  if (!tables_.stack(state.stack, stack) || !to_nanoseconds(state.time, unit_ns_, time_ns) ||
      !to_nanoseconds(state.weight, unit_ns_, weight_ns))
    return false;
  if (delta < 0) is_disordered_ = true;
  profile_.samples.set(row, time_ns, thread, stack, weight_ns, activity, tags);
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
  if (!is_disordered_) return;
  const SampleTable& all = profile_.samples;
  std::vector<std::uint32_t> order(all.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return all.time_ns[a] < all.time_ns[b]; });
  SampleTable sorted;
  for (const std::uint32_t row : order) sorted.push_row(all, row);
  profile_.samples = std::move(sorted);
}

}  // namespace plimsoll::profile
