#include "cli/cpu_clock.h"

#include <time.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/clock.h"
#include "os/os.h"
#include "remote/descendants.h"

namespace plimsoll::cli {
namespace {

constexpr std::int64_t kInterval = 5'000'000;
constexpr std::int64_t kBirthsInterval = 50'000'000;
constexpr std::size_t kMostNotes = 200'000;

// False if the process has gone.
bool note_clock(CpuClocks& clocks, os::Pid pid) {
  clockid_t clock{};
  if (::clock_getcpuclockid(static_cast<pid_t>(pid), &clock) != 0) return false;
  const std::int64_t cpu_ns = clock_ns(clock);
  // (On a busy machine, a process may have been made and not have run.)
  if (cpu_ns == 0) return os::is_alive(pid);
  const std::int64_t now_ns = realtime_ns();
  const auto [known, is_new] = clocks.of.try_emplace(pid, cpu_ns, now_ns);
  if (!is_new) known->second.note(cpu_ns, now_ns);
  return true;
}

}  // namespace

void CpuClock::note(std::int64_t cpu_ns, std::int64_t realtime_ns) {
  const Note last = notes_.back();
  if (cpu_ns < last.cpu_ns || realtime_ns <= last.realtime_ns) return;
  if (notes_.size() == kMostNotes) thin_out();
  add({cpu_ns, realtime_ns});
}

// Whether the last moment can do without: it lies near a line from the one before it to the next.
bool CpuClock::replaces_last(const Note& next) const {
  if (notes_.size() < 2) return false;
  const Note& from = notes_[notes_.size() - 2];
  const Note& last = notes_.back();
  if (next.cpu_ns == from.cpu_ns) return true;  // the same wait
  const bool ends_wait = last.cpu_ns == from.cpu_ns;
  if (ends_wait && static_cast<double>(last.realtime_ns - from.realtime_ns) > tolerance_ns_) return false;
  const double slope =
      static_cast<double>(next.realtime_ns - from.realtime_ns) / static_cast<double>(next.cpu_ns - from.cpu_ns);
  return slope >= slopes_.flattest && slope <= slopes_.steepest;
}

void CpuClock::add(const Note& next) {
  if (replaces_last(next)) {
    notes_.back() = next;
  } else {
    notes_.push_back(next);
    slopes_ = {0, std::numeric_limits<double>::infinity()};
  }
  const Note& from = notes_[notes_.size() - 2];
  if (next.cpu_ns == from.cpu_ns) return;
  const auto cpu = static_cast<double>(next.cpu_ns - from.cpu_ns);
  const auto time = static_cast<double>(next.realtime_ns - from.realtime_ns);
  slopes_.flattest = std::max(slopes_.flattest, (time - tolerance_ns_) / cpu);
  slopes_.steepest = std::min(slopes_.steepest, (time + tolerance_ns_) / cpu);
}

// Keeps fewer moments, by telling the time less exactly.
void CpuClock::thin_out() {
  const std::vector<Note> all = std::move(notes_);
  while (true) {
    tolerance_ns_ *= 2;
    notes_ = {all[0]};
    for (std::size_t i = 1; i < all.size(); ++i) add(all[i]);
    if (notes_.size() <= all.size() / 2) return;
  }
}

std::int64_t CpuClock::convert(std::int64_t at, Axis from, Axis to) const {
  const auto after = std::lower_bound(notes_.begin(), notes_.end(), at,
                                      [&](const Note& note, std::int64_t value) { return note.*from < value; });
  if (after == notes_.begin()) return *after.*to - (*after.*from - at);
  const Note& before = *std::prev(after);
  if (after == notes_.end()) return before.*to + (at - before.*from);
  const double share = static_cast<double>(at - before.*from) / static_cast<double>(*after.*from - before.*from);
  return before.*to + static_cast<std::int64_t>(share * static_cast<double>(*after.*to - before.*to));
}

std::int64_t CpuClock::time_of(std::int64_t cpu_ns) const { return convert(cpu_ns, &Note::cpu_ns, &Note::realtime_ns); }

std::int64_t CpuClock::cpu_at(std::int64_t realtime_ns) const {
  return convert(realtime_ns, &Note::realtime_ns, &Note::cpu_ns);
}

CpuClocks watch_cpu_clocks(os::Pid program, Watched watched) {
  CpuClocks clocks{program, {}};
  remote::Descendants descendants(program);
  std::vector<os::Pid> pids{program};
  std::int64_t next_births_ns = 0;
  for (bool is_last = false;; is_last = !os::is_alive(program)) {
    std::erase_if(pids, [&](os::Pid pid) { return !note_clock(clocks, pid); });
    if (is_last) return clocks;
    const std::int64_t now_ns = monotonic_ns();
    if (watched == Watched::kDescendants && now_ns >= next_births_ns) {
      for (const os::Pid pid : descendants.candidates(now_ns)) {
        descendants.is_recorded(pid);
        pids.push_back(pid);
      }
      next_births_ns = now_ns + kBirthsInterval;
    }
    os::sleep_until(now_ns + kInterval);
  }
}

}  // namespace plimsoll::cli
