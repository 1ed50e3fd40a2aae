#include "alloc/exact_books.h"

#include <time.h>

#include <utility>

#include "base/clock.h"

namespace plimsoll::alloc::exact_books {

constinit StaticStorage<Exact> exact_storage;
constinit bool exact_is_made = false;
thread_local constinit bool is_forking = false;
thread_local constinit Probe probe = Probe::kNone;

namespace {

// After whatever it depends on has changed.
void find_quick_way() {
  const bool is_quick = taker_now() != nullptr && !exact->is_locked.load() && !is_paused();
  const std::uint32_t standing =
      (is_quick ? 0 : kCareful) | (exact->ledger != nullptr ? 0 : kNoSums) | (exact->log != nullptr ? 0 : kNoEvents);
  exact->attention.fetch_or(standing);
  exact->attention.fetch_and(~kStanding | standing);
}

void book_events() {
  std::vector<RawEvent> events;
  {
    const Events guard;
    events.swap(exact->events);
  }
  for (const RawEvent& event : events) {
    try {
      if (event.stack != 0) {
        book_raw(event.stack, event.at, event.size);
      } else if (const BlockBooks::Token token = take_raw(event.at); token != 0) {
        exact->books->ended(token, event.at, Fate::kFreed);
      }
    } catch (const std::bad_alloc&) {
      taker_now()->lost();
    }
  }
}

// For the log: room that has been written to before, if there is some.
std::vector<std::uint32_t> take_room() {
  const Events guard;
  if (exact->rooms.empty()) return {};
  std::vector<std::uint32_t> room = std::move(exact->rooms.back());
  exact->rooms.pop_back();
  return room;
}

void tell_epoch(ExactTaker& taker, Epoch which, std::int64_t at_ns) {
  if (which != Epoch::kLast && !exact->books->has_changed()) return;
  if (exact->log != nullptr) {
    EventBatch batch = exact->log->take(take_room());
    exact->waiting_words.fetch_add(static_cast<std::int64_t>(batch.words.size()), std::memory_order_relaxed);
    return taker.logged(std::move(batch));
  }
  // The last number is for the last epoch, however long that becomes.
  if (exact->ledger->epoch() == Ledger::kLastEpoch && which != Epoch::kLast) return;
  const std::uint8_t epoch = exact->ledger->epoch();
  ExactRows rows = exact->ledger->close_epoch(at_ns);
  taker.closed(epoch, at_ns, std::move(rows), exact->ledger->peak_ns());
}

// What was logged is dealt with more slowly than the program allocates. Without the books, which whoever deals with it
// may need.
constexpr std::int64_t kMostWaiting = std::int64_t{1} << 24U;  // words: 64 MB
[[gnu::noinline]] void wait_for_room() {
  constexpr std::int64_t kLongest = 1'000'000'000;
  constexpr timespec kMoment = timespec_of(500'000);
  const std::int64_t began_ns = monotonic_ns();
  while (exact->waiting_words.load(std::memory_order_relaxed) > kMostWaiting) {
    if (monotonic_ns() - began_ns > kLongest) return exact->waiting_words.store(0);
    ::nanosleep(&kMoment, nullptr);
  }
}

// A block comes to its end, or may.
void begin_end(ExactTaker& taker) {
  // (What is freed for a probe is not what it probes for.)
  if ((exact->attention.load(std::memory_order_relaxed) & (kEpoch | kClock)) != 0 && probe == Probe::kNone) [[unlikely]]
    attend(taker);
}

void end(BlockBooks::Token token, void* at) noexcept {
  try {
    if (exact->log != nullptr) return exact->log->ended(token, at, Fate::kFreed);
    if (!exact->ledger->ended_quickly(token, at)) exact->ledger->ended(token, at, Fate::kFreed);
  } catch (const std::bad_alloc&) {
    taker_now()->lost();
  }
}

}  // namespace

void set_taker(ExactTaker* taker) {
  exact->taker.store(taker);
  find_quick_way();
}

void set_locked(bool is_locked) {
  exact->is_locked.store(is_locked);
  find_quick_way();
}

void set_pauses(int pauses) {
  exact->pauses.store(pauses);
  find_quick_way();
}

void close_epoch(ExactTaker& taker, Epoch which, std::int64_t at_ns) noexcept {
  try {
    tell_epoch(taker, which, at_ns);
  } catch (const std::bad_alloc&) {
    taker.failed();
  }
}

bool attend(ExactTaker& taker) noexcept {
  const std::uint32_t what = exact->attention.fetch_and(kLasting, std::memory_order_acquire);
  if ((what & kClock) != 0 && exact->log != nullptr) exact->log->expect_pause();
  if ((what & kPending) != 0) book_events();
  // (Nothing has happened since it was asked for: what happens next comes here first.)
  if ((what & kEpoch) != 0) close_epoch(taker, Epoch::kAnother, exact->asked_ns.load(std::memory_order_relaxed));
  if ((what & kProbe) == 0) return true;
  const bool is_own = probe != Probe::kNone;
  if (probe == Probe::kSent) probe = Probe::kArrived;
  exact->attention.fetch_or(kProbe, std::memory_order_relaxed);  // to its end: see is_called
  return !is_own;
}

void note_slowly(BlockBooks::Token token, void* at) {
  if (exact->blocks.set(at, token)) return;
  exact->books->ended(token, at, Fate::kMoved);
  taker_now()->lost();
}

void book_carefully(Domain domain, void* at, std::size_t size) noexcept {
  {
    const Books books;
    ExactTaker* taker = taker_now();
    try {
      if (!begin(taker) || is_paused()) return;
      exact->ledger != nullptr ? book_in<Ledger>(domain, at, size) : book_in<EventLog>(domain, at, size);
    } catch (const std::bad_alloc&) {
      taker->lost();
    }
  }
  if (exact->waiting_words.load(std::memory_order_relaxed) > kMostWaiting) [[unlikely]]
    wait_for_room();
}

void book_end_carefully(void* at) noexcept {
  const Books books;
  if (taker_now() == nullptr) return;
  begin_end(*taker_now());
  if (const BlockMap::Word token = exact->blocks.take(at); token != 0) end(token, at);
}

Lifted lift(void* at) noexcept {
  const Books books;
  if (taker_now() == nullptr) return {};
  begin_end(*taker_now());
  const BlockMap::Word token = exact->blocks.take(at);
  return {exact->recording, token, token != 0 ? exact->books->lift(token, at) : 0};
}

void settle(const Lifted& lifted, void* stays_at) noexcept {
  const Books books;
  if (taker_now() == nullptr || exact->recording != lifted.recording) return;
  try {
    if (stays_at == nullptr) return exact->books->moved(lifted.token, lifted.size);
    exact->books->put_back(lifted.token, stays_at, lifted.size);
    exact->blocks.set(stays_at, lifted.token);
  } catch (const std::bad_alloc&) {
    taker_now()->lost();
  }
}

void book_raw(std::uint32_t stack, void* at, std::size_t size) {
  const BlockBooks::Token token = exact->books->allocated(stack, Domain::kRaw, at, size);
  exact->raw_blocks[reinterpret_cast<std::uintptr_t>(at)] = token;
}

Lifted lift_raw(void* at) {
  const BlockBooks::Token token = take_raw(at);
  return {exact->recording, token, token != 0 ? exact->books->lift(token, at) : 0};
}

void settle_raw(const Lifted& lifted, void* stays_at) {
  if (lifted.token == 0 || exact->recording != lifted.recording) return;
  if (stays_at == nullptr) return exact->books->moved(lifted.token, lifted.size);
  exact->books->put_back(lifted.token, stays_at, lifted.size);
  exact->raw_blocks[reinterpret_cast<std::uintptr_t>(stays_at)] = lifted.token;
}

BlockBooks::Token take_raw(void* at) {
  const auto found = exact->raw_blocks.find(reinterpret_cast<std::uintptr_t>(at));
  if (found == exact->raw_blocks.end()) return 0;
  const BlockBooks::Token token = found->second;
  exact->raw_blocks.erase(found);
  return token;
}

}  // namespace plimsoll::alloc::exact_books
