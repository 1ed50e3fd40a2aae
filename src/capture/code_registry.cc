#include "capture/code_registry.h"

#include <algorithm>
#include <new>

#include "base/clock.h"
#include "memory/local.h"

namespace plimsoll::capture {

void CodeRegistry::on_destroy(Address code) noexcept {
  if (is_closed_.load(std::memory_order_relaxed) || !seen_.may_contain(code)) return;
  // Before it is noted: who sees the number of deaths takes later times.
  const std::int64_t now_ns = monotonic_ns();
  seen_.note_death(code);
  std::shared_ptr<const cpython::CodeInfo> copy;
  try {
    cpython::CodeInfo info;
    if (!cpython::read_code(memory::LocalReader{}, layout_, code, info)) return;
    copy = std::make_shared<const cpython::CodeInfo>(std::move(info));
  } catch (const std::bad_alloc&) {
    // That it died is to be known all the same: the address may be another's soon.
  }
  const std::lock_guard guard(mutex_);
  try {
    reported_.push_back(Death{now_ns, code, std::move(copy)});
  } catch (const std::bad_alloc&) {
    missed_ns_ = std::max(missed_ns_, now_ns);
  }
  has_reported_.store(true, std::memory_order_release);
}

void CodeRegistry::close() {
  is_closed_.store(true, std::memory_order_relaxed);
  const std::lock_guard guard(mutex_);
  reported_ = {};
}

void CodeRegistry::take_deaths() {
  std::int64_t missed_ns = 0;
  {
    const std::lock_guard guard(mutex_);
    taken_.swap(reported_);
    missed_ns = missed_ns_;
    has_reported_.store(false, std::memory_order_relaxed);
  }
  // Where nobody knows what has died, all is to be read again.
  if (std::exchange(unknown_until_ns_, missed_ns) != missed_ns) living_.clear();
  for (Death& death : taken_) {
    DeadEntry dead{death.time_ns, {CodeId{}, std::move(death.info), death.time_ns}};
    const auto living = living_.find(raw(death.code));
    // The living entry is this object unless the filter let a successor's death pass for it: names must agree.
    if (living != living_.end()) {
      if (dead.entry.info != nullptr && *living->second.info == *dead.entry.info)
        dead.entry = std::move(living->second);
      living_.erase(living);
    }
    dead_[raw(death.code)].push_back(std::move(dead));
  }
  taken_.clear();
}

bool CodeRegistry::is_dead(Address code, std::int64_t time_ns, const Entry*& entry) {
  entry = nullptr;
  if (time_ns <= unknown_until_ns_) return true;
  const auto found = dead_.find(raw(code));
  if (found == dead_.end()) return false;
  for (DeadEntry& dead : found->second) {
    if (dead.death_ns < time_ns) continue;
    if (dead.entry.info == nullptr) return true;
    if (dead.entry.id.is_none()) dead.entry.id = new_id();
    entry = &dead.entry;
    return true;
  }
  return false;
}

const CodeRegistry::Entry* CodeRegistry::find(Address code, std::int64_t time_ns) {
  if (has_reported_.load(std::memory_order_acquire)) take_deaths();
  const Entry* dead = nullptr;
  if (is_dead(code, time_ns, dead)) return dead;
  if (const auto living = living_.find(raw(code)); living != living_.end()) return &living->second;
  if (source_ == Source::kTaught) return nullptr;
  cpython::CodeInfo info;
  const bool was_read = cpython::read_code(memory::LocalReader{}, layout_, code, info);
  // If the object died while it was read, its death has been reported with a copy by now, as the report comes before
  // the memory is freed; if no death is there, what was read is good: a report that comes later waits for the lock that
  // was held after the reads. (So the lock is taken whatever has_reported_ says, as nothing keeps that from being
  // looked at before the reads; ThreadSanitizer knows locks, but not the fence that would.)
  take_deaths();
  if (is_dead(code, time_ns, dead)) return dead;
  if (!was_read) return nullptr;
  Entry& entry = living_[raw(code)];
  entry = Entry{new_id(), std::make_shared<const cpython::CodeInfo>(std::move(info)), monotonic_ns()};
  return &entry;
}

void CodeRegistry::learn(Address code, std::shared_ptr<const cpython::CodeInfo> info, std::int64_t time_ns) {
  Entry& living = living_[raw(code)];
  if (!living.id.is_none()) dead_[raw(code)].push_back(DeadEntry{time_ns - 1, std::move(living)});
  living = Entry{new_id(), std::move(info), time_ns};
}

std::vector<CodeId> CodeRegistry::forget_deaths_before(std::int64_t time_ns) {
  // (Without samples, as in a pause, find() takes none.)
  if (has_reported_.load(std::memory_order_acquire)) take_deaths();
  std::vector<CodeId> forgotten;
  for (auto at = dead_.begin(); at != dead_.end();) {
    auto& deaths = at->second;
    const auto keep =
        std::find_if(deaths.begin(), deaths.end(), [&](const DeadEntry& dead) { return dead.death_ns >= time_ns; });
    for (auto dead = deaths.begin(); dead != keep; ++dead)
      if (!dead->entry.id.is_none()) forgotten.push_back(dead->entry.id);
    deaths.erase(deaths.begin(), keep);
    const auto here = at++;
    if (deaths.empty()) dead_.erase(here);
  }
  return forgotten;
}

}  // namespace plimsoll::capture
