#include "alloc/exact_hooks.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include "alloc/exact_books.h"
#include "alloc/exact_malloc.h"
#include "alloc/exact_python.h"
#include "alloc/patched_malloc.h"
#include "alloc/sampling_hooks.h"
#include "base/clock.h"
#include "os/os.h"

namespace plimsoll::alloc {

using namespace exact_books;  // NOLINT(google-build-using-namespace): ours, of which this is the outside

namespace {

bool is_current(std::size_t domain) { return is_hook(domain, exact->table->get(static_cast<Domain>(domain))); }

// Whether our hooks are still called, as others' that lie over them may have been put back what was there before.
bool is_called(std::size_t domain) {
  if (is_current(domain)) return true;
  // What is allocated for this is nobody's.
  probe = static_cast<Domain>(domain) == Domain::kRaw ? Probe::kSentToRaw : Probe::kSent;
  exact->attention.fetch_or(kProbe, std::memory_order_relaxed);
  const Allocator top = exact->table->get(static_cast<Domain>(domain));
  void* block = top.malloc(top.context, 1);
  const bool is_reached = std::exchange(probe, Probe::kNone) == Probe::kArrived;
  top.free(top.context, block);
  const Books books;  // whoever is in attend() puts it back
  exact->attention.fetch_and(~kProbe, std::memory_order_relaxed);
  return is_reached || block == nullptr;
}

// Puts our hooks over what is in the table.
void put_over(std::size_t domain) {
  // Threads may be late to leave hooks of the last recording: what is as it was is not written.
  const Allocator below = exact->table->get(static_cast<Domain>(domain));
  if (exact->original[domain] != below) exact->original[domain] = below;
  exact->table->set(static_cast<Domain>(domain), hooks_of(domain));
  exact->is_installed[domain] = true;
}

void install() {
  for (std::size_t i = 0; i < kAllDomains; ++i) {
    // Hooks that others' lie over are called by those.
    if (!exact->is_installed[i] || !(is_current(i) || is_called(i))) put_over(i);
  }
}

void remove() {
  for (std::size_t i = 0; i < kAllDomains; ++i) {
    if (!is_current(i)) continue;
    exact->table->set(static_cast<Domain>(i), exact->original[i]);
    exact->is_installed[i] = false;
  }
}

// With the books held.
void forget_all() {
  exact->is_active = false;
  set_taker(nullptr);
  exact->books = nullptr;
  exact->ledger.reset();
  exact->log.reset();
  exact->blocks.clear();
  exact->raw_blocks = {};
  const Events guard;
  exact->events = {};
  exact->rooms = {};
}

// Ends the recording, of which nothing more is told.
void take_out() {
  if (std::exchange(exact->is_patched, false)) restore_malloc();
  {
    const Books books;
    set_taker(nullptr);
  }
  remove();
  stop_heap();
  while (exact->raw_callers.load() != 0) ::sched_yield();
  const Books books;
  forget_all();
}

bool is_recording() { return exact_is_made && exact->is_active; }

// The books, in the hands of somebody who holds the mutex, but has not the GIL. Who comes to have the GIL meanwhile
// finds that there is a lock: between that and the look at the GIL each thread passes a barrier, and whoever takes the
// GIL after it reads what to do after it. By the second barrier all that was written with the GIL is seen here.
class Visit {
 public:
  explicit Visit(const ExactTaker& taker) {
    has_books_ = exact->is_locked.load();
    if (has_books_ || !taker.is_gil_free()) return;
    exact->attention.fetch_or(kVisited);
    has_books_ = os::pass_barriers() && taker.is_gil_free() && os::pass_barriers();
  }
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;
  ~Visit() { exact->attention.fetch_and(~kVisited); }
  [[nodiscard]] bool has_books() const { return has_books_; }

 private:
  bool has_books_ = false;
};

void make_exact() {
  new (&exact_storage.value) Exact;
  exact_is_made = true;
  static constexpr auto let_go = [] {
    exact->events_mutex.unlock();
    exact->mutex.unlock();
    is_forking = false;
  };
  ::pthread_atfork(
      [] {
        exact->mutex.lock();
        exact->events_mutex.lock();
        is_forking = true;
      },
      let_go,
      [] {
        let_go();
        set_taker(nullptr);  // whose locks others may have held who do not exist here
      });
}

}  // namespace

Status start_exact(ExactTaker& taker, AllocatorTable& table, Interpreters interpreters, ExactScope scope,
                   ExactDetail detail) {
  if (!exact_is_made) make_exact();
  PLIMSOLL_TRY(exact->blocks.prepare());
  exact->table = &table;
  // (If others' hooks are over it, the heap cannot be locked; it gives nothing, and its blocks are of one interpreter.)
  if (interpreters == Interpreters::kAtOnce) (void)lock_exact();
  exact->was_patched = exact->was_patched || scope == ExactScope::kNative;
  set_locked(interpreters == Interpreters::kAtOnce || exact->was_patched);
  {
    // Threads that were late to leave the hooks of the last recording may be in these books already.
    const Books books;
    ++exact->recording;
    if (detail == ExactDetail::kSums) {
      exact->ledger = std::make_unique<Ledger>(*taker.clock_ns);
      exact->books = exact->ledger.get();
    } else {
      exact->log = std::make_unique<EventLog>(exact->attention, kEpoch);
      exact->books = exact->log.get();
    }
    exact->attention.store(kStanding);  // somebody may have asked who was not told of the end
    exact->waiting_words.store(0);
    exact->pauses.store(0);
    exact->is_active = true;
    exact->find_key = taker.find_key;
    set_taker(&taker);
  }
  // Hooks that have come back since the last recording, when others' were gone that lay over them, may be for other
  // books, or another allocator below.
  remove();
  start_heap(table, interpreters);
  install();
  if (scope == ExactScope::kPython) return Ok{};
  Status patched = patch_exact_malloc();
  exact->is_patched = patched.ok();
  if (!patched.ok()) take_out();
  return patched;
}

Stopped stop_exact() {
  if (!is_recording()) return Stopped::kWhole;
  if (taker_now() == nullptr) {  // in the child of a fork that Python does not know of
    abandon_exact();
    return Stopped::kWhole;
  }
  ExactTaker& taker = *taker_now();
  if (std::exchange(exact->is_patched, false)) restore_malloc();
  bool is_whole = true;
  for (std::size_t i = 0; i < kAllDomains; ++i) is_whole = is_called(i) && is_whole;
  {
    // While this is held, and the hooks are there, none of the blocks is freed.
    const Books books;
    attend(taker);
    close_epoch(taker, Epoch::kLast, monotonic_ns());
    try {
      const BlockBooks& known = *exact->books;
      if (is_whole)
        exact->blocks.for_each(
            [&](const void* at, BlockMap::Word token) { taker.alive(at, token, known.facts_of(token, at)); });
    } catch (const std::bad_alloc&) {
      taker.lost();
    }
    set_taker(nullptr);
  }
  take_out();
  return is_whole ? Stopped::kWhole : Stopped::kCutShort;
}

void abandon_exact() {
  if (!is_recording()) return;
  // Whoever held these does not exist here.
  new (&exact->mutex) std::mutex;
  new (&exact->events_mutex) std::mutex;
  exact->raw_callers.store(0);
  take_out();
}

bool ask_for_exact_epoch() {
  // (If it is asked for still, nothing has happened since.)
  if (!exact_is_made || (exact->attention.load(std::memory_order_relaxed) & kEpoch) != 0) return false;
  exact->asked_ns.store(monotonic_ns(), std::memory_order_relaxed);
  exact->attention.fetch_or(kEpoch, std::memory_order_release);
  return true;
}

void hand_over_exact_epoch() {
  if (!exact_is_made || (exact->attention.load(std::memory_order_relaxed) & kEpoch) == 0) return;
  const std::unique_lock guard(exact->mutex, std::try_to_lock);
  if (!guard.owns_lock() || taker_now() == nullptr) return;
  ExactTaker& taker = *taker_now();
  if (const Visit visit(taker); visit.has_books() && taker_now() != nullptr) attend(taker);
}

void silence_exact() {
  if (exact_is_made) exact->attention.fetch_or(kSilent, std::memory_order_relaxed);
}

void note_time_has_passed() {
  if (exact_is_made) exact->attention.fetch_or(kClock, std::memory_order_relaxed);
}

void take_words_back(std::vector<std::uint32_t> words) {
  constexpr std::size_t kMostRooms = 4;
  if (!exact_is_made) return;
  exact->waiting_words.fetch_sub(static_cast<std::int64_t>(words.size()), std::memory_order_relaxed);
  const Events guard;
  if (taker_now() != nullptr && exact->rooms.size() < kMostRooms) exact->rooms.push_back(std::move(words));
}

void close_exact_epoch() {
  if (!exact_is_made) return;
  const Books books;
  if (taker_now() == nullptr) return;
  attend(*taker_now());
  close_epoch(*taker_now(), Epoch::kAnother, monotonic_ns());
}

Status lock_exact() {
  if (!exact_is_made) return lock_heap();
  set_locked(true);
  // The heap's hooks are changed where they lie, which is below ours, if these are in place.
  std::array<bool, kDomains> are_ours{};
  for (std::size_t i = 0; i < kDomains; ++i) {
    are_ours[i] = exact->is_installed[i] && is_current(i);
    if (are_ours[i]) exact->table->set(static_cast<Domain>(i), exact->original[i]);
  }
  Status locked = lock_heap();
  for (std::size_t i = 0; i < kDomains; ++i)
    if (are_ours[i]) put_over(i);
  return locked;
}

std::uint32_t stack_at(const void* block) {
  if (!exact_is_made) return 0;
  const Books books;
  if (!exact->is_active) return 0;
  const BlockMap::Word token = exact->blocks.get(block);
  return token != 0 ? exact->books->stack_of(token) : 0;
}

void pause_exact() {
  if (!exact_is_made) return;
  const Books books;
  set_pauses(exact->pauses.load() + 1);
}

void resume_exact() {
  if (!exact_is_made) return;
  const Books books;
  set_pauses(std::max(0, exact->pauses.load() - 1));
}

}  // namespace plimsoll::alloc
