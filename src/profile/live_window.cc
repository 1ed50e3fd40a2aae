#include "profile/live_window.h"

#include <algorithm>

#include "base/clock.h"

namespace plimsoll::profile {
namespace {

// A session tells of the threads that are there once a second.
constexpr std::int64_t kThere = 1'500'000'000;

}  // namespace

class LiveWindow::Copy {
 public:
  Copy(const Profile& from, Profile& to) : from_(from), to_(to), known_(from.stacks.size()) {}

  StackId stack(StackId asked) {
    missing_.clear();
    StackId at = asked;
    for (; !at.is_none() && known_[at.index()].is_none(); at = from_.stacks[at].parent) missing_.push_back(at);
    StackId to = at.is_none() ? at : known_[at.index()];
    for (auto next = missing_.rbegin(); next != missing_.rend(); ++next) {
      to = to_.stacks.intern({to, frame(from_.frames[from_.stacks[*next].frame])});
      known_[next->index()] = to;
    }
    return to;
  }

 private:
  FrameId frame(Frame frame) {
    Function function = from_.functions[frame.function];
    function.name = to_.strings.intern(from_.strings[function.name]);
    function.file = to_.strings.intern(from_.strings[function.file]);
    frame.function = to_.functions.intern(function);
    return to_.frames.intern(frame);
  }

  const Profile& from_;
  Profile& to_;
  std::vector<StackId> known_;    // by StackId of from_
  std::vector<StackId> missing_;  // of the stack at hand, kept to save allocations
};

LiveWindow::LiveWindow(LiveWindowSettings settings) : settings_(std::move(settings)), begin_ns_(monotonic_ns()) {}

LiveView LiveWindow::view(std::int64_t now_ns, std::int64_t length_ns) const {
  const std::lock_guard lock(mutex_);
  const std::int64_t from_ns = std::max(now_ns - length_ns, begin_ns_);
  LiveView view;
  Profile& profile = view.profile;
  profile.start_monotonic_ns = from_ns;
  profile.end_ns = std::max<std::int64_t>(now_ns - from_ns, 0);
  profile.processes.push_back(settings_.process);
  Copy copy(tables_, profile);
  std::map<std::uint32_t, ThreadId> number;
  const auto thread_of = [&](std::uint32_t serial) {
    const auto [known, is_new] = number.try_emplace(serial, ThreadId{profile.threads.size()});
    if (!is_new) return known->second;
    const KnownThread& thread = threads_.at(serial);
    profile.threads.push_back({ProcessId{0}, static_cast<std::int64_t>(thread.info.tid), thread.info.name,
                               thread.info.tid == settings_.main_thread, thread.info.start_ns - from_ns,
                               thread.info.end_ns - from_ns, thread.info.cpu_ns});
    view.threads.push_back({thread.info.end_ns + kThere >= now_ns, thread.now, copy.stack(thread.stack), 0});
    return known->second;
  };
  for (const auto& [serial, thread] : threads_)
    if (thread.info.end_ns + kThere >= now_ns) (void)thread_of(serial);
  for (const Row& row : rows_)
    if (row.time_ns > from_ns && row.time_ns <= now_ns && threads_.contains(row.thread))
      profile.samples.push_back(row.time_ns - from_ns, thread_of(row.thread), copy.stack(row.stack),
                                std::min(row.weight_ns, row.time_ns - from_ns), row.activity);
  for (const capture::GilLook& look : gil_looks_) {
    if (look.time_ns <= from_ns || look.time_ns > now_ns) continue;
    ++view.gil_looks;
    if (look.is_held) ++view.gil_held;
    if (const auto holder = number.find(look.holder.index()); !look.holder.is_none() && holder != number.end())
      ++view.threads[holder->second.index()].gil_looks;
  }
  profile.process_cpu_ns = profile.sampled_cpu_ns();
  view.samples = samples_;
  view.lost = lost_;
  return view;
}

void LiveWindow::begin_anew(std::int64_t time_ns) {
  const std::lock_guard lock(mutex_);
  begin_ns_ = time_ns;
  rows_.clear();
  gil_looks_.clear();
}

void LiveWindow::code(capture::CodeId id, const cpython::CodeInfo& info) {
  const std::lock_guard lock(mutex_);
  stacks_.code(id, info);
}

void LiveWindow::forget_code(capture::CodeId id) {
  const std::lock_guard lock(mutex_);
  stacks_.forget_code(id);
}

void LiveWindow::thread(const capture::ThreadInfo& info) {
  const std::lock_guard lock(mutex_);
  threads_[info.serial.index()].info = info;
}

void LiveWindow::sample(const capture::Sample& sample) {
  const std::lock_guard lock(mutex_);
  ++samples_;
  const Row row{sample.time_ns, sample.weight_ns, sample.thread.index(), stacks_.of(sample), sample.activity};
  KnownThread& thread = threads_[row.thread];
  thread.info.end_ns = std::max(thread.info.end_ns, row.time_ns);
  thread.now = row.activity;
  thread.stack = row.stack;
  if (row.time_ns - row.weight_ns < begin_ns_) return;
  rows_.push_back(row);
  if (rows_.size() * sizeof(Row) > settings_.memory_bytes / 2) rows_.pop_front();
}

void LiveWindow::gil(const capture::GilLook& look) {
  const std::lock_guard lock(mutex_);
  if (look.time_ns < begin_ns_) return;
  gil_looks_.push_back(look);
  if (gil_looks_.size() * sizeof look > settings_.memory_bytes / 4) gil_looks_.pop_front();
}

std::size_t LiveWindow::table_memory() const {
  return tables_.strings.memory() + tables_.functions.memory() + tables_.frames.memory() + tables_.stacks.memory();
}

bool LiveWindow::wants_flush() const {
  const std::lock_guard lock(mutex_);
  return table_memory() > settings_.memory_bytes / 2;
}

std::uint32_t LiveWindow::code_epoch() const {
  const std::lock_guard lock(mutex_);
  return code_epoch_;
}

void LiveWindow::forget_before(std::int64_t time_ns) {
  while (!rows_.empty() && rows_.front().time_ns < time_ns) rows_.pop_front();
  while (!gil_looks_.empty() && gil_looks_.front().time_ns < time_ns) gil_looks_.pop_front();
}

void LiveWindow::rebuild_tables() {
  Profile fresh;
  Copy copy(tables_, fresh);
  for (Row& row : rows_) row.stack = copy.stack(row.stack);
  for (auto& [serial, thread] : threads_) thread.stack = copy.stack(thread.stack);
  tables_ = std::move(fresh);
  stacks_.forget();
  ++code_epoch_;
}

Status LiveWindow::flush(const Totals& totals, Ending) {
  const std::lock_guard lock(mutex_);
  lost_ = 0;
  for (const capture::DropTotal& drop : totals.drops) lost_ += drop.count;
  forget_before(totals.time_ns - settings_.longest_ns);
  for (auto at = threads_.begin(); at != threads_.end();) {
    // Its samples may be a little younger than its end, and the oldest of all need not be the first.
    const bool is_past = at->second.info.end_ns < totals.time_ns - settings_.longest_ns - 2 * kThere;
    if (is_past) stacks_.forget_thread(capture::ThreadSerial{at->first});
    at = is_past ? threads_.erase(at) : std::next(at);
  }
  if (table_memory() <= settings_.memory_bytes / 2) return Ok{};
  rebuild_tables();
  if (table_memory() <= settings_.memory_bytes / 2) return Ok{};
  // The stacks of so long a time take too much.
  if (!rows_.empty()) forget_before((rows_.front().time_ns + totals.time_ns) / 2);
  rebuild_tables();
  return Ok{};
}

}  // namespace plimsoll::profile
