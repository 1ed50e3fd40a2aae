#include "alloc/exact_hooks.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <boost/unordered/unordered_flat_map.hpp>
#include <memory>
#include <mutex>
#include <new>
#include <type_traits>
#include <utility>

#include "alloc/block_map.h"
#include "alloc/patched_malloc.h"
#include "base/clock.h"
#include "base/inside.h"

namespace plimsoll::alloc {
namespace {

// What the raw allocator did without the GIL.
struct RawEvent {
  void* at = nullptr;
  std::size_t size = 0;
  std::uint32_t stack = 0;  // 0: the block was freed
};

// What the next call with the books has to see to. kEpoch is also set by whoever wants to be told of what there is.
constexpr std::uint32_t kEpoch = 1, kPending = 2, kProbe = 4;
// Not to be seen to, but every call has to look at what follows: there are no books, or not of sums, or there is a lock
// around them, or a pause.
constexpr std::uint32_t kCareful = 8;

// Everything the hooks share. Never destroyed: others' hooks may lie over ours to the end of the process.
struct Exact {
  std::array<Allocator, kAllDomains> original{};
  std::array<bool, kAllDomains> is_installed{};
  AllocatorTable* table = nullptr;
  std::atomic<ExactTaker*> taker{nullptr};  // null: nothing is recorded
  std::atomic<std::uint32_t> attention{kCareful};
  KeyFinder find_key;                  // the taker's
  bool is_active = false;              // between start and stop
  bool is_patched = false;             // malloc is
  bool was_patched = false;            // it has been: somebody may have copied a pointer to ours
  std::atomic<bool> is_locked{false};  // there is not one GIL, or the books are of malloc, too
  std::mutex mutex;                    // guards what follows if so; else the GIL does
  int pauses = 0;
  std::uint32_t recording = 0;  // which one this is
  BlockMap blocks;
  std::unique_ptr<Ledger> ledger;  // one of these two
  std::unique_ptr<EventLog> log;
  BlockBooks* books = nullptr;  // which is this
  boost::unordered_flat_map<std::uintptr_t, BlockBooks::Token> raw_blocks;
  std::mutex events_mutex;  // guards events; after `mutex`
  std::vector<RawEvent> events;
  std::atomic<int> raw_callers{0};             // threads that turn to the taker without the GIL
  std::atomic<std::int64_t> waiting_words{0};  // logged, and not dealt with
};

// As with sampling_hooks: in static memory, made at first use, never destroyed.
union ExactStorage {
  constexpr ExactStorage() : nothing(0) {}
  ~ExactStorage() {}  // NOLINT(modernize-use-equals-default): that would be deleted
  char nothing;
  Exact exact;
};
constinit ExactStorage exact_storage;
Exact* const exact = &exact_storage.exact;
bool exact_is_made = false;

// The thread has the books, as fork must not happen while another has them.
[[gnu::tls_model("initial-exec")]] thread_local constinit bool is_forking = false;
// The thread finds out whether hooks of ours are called.
enum class Probe : std::uint8_t { kNone, kSent, kArrived };
[[gnu::tls_model("initial-exec")]] thread_local constinit Probe probe = Probe::kNone;

// The books, held. Whoever has them waits for nobody who may need them, nor for anything of Python's: neither the GIL,
// nor that the collector of a free-threaded build lets threads go on.
class Books {
 public:
  Books() : is_locked_(exact->is_locked.load(std::memory_order_relaxed) && !is_forking) {
    if (is_locked_) [[unlikely]]
      exact->mutex.lock();
  }
  Books(const Books&) = delete;
  Books& operator=(const Books&) = delete;
  ~Books() {
    if (is_locked_) [[unlikely]]
      exact->mutex.unlock();
  }

 private:
  const bool is_locked_;
};

Allocator& original(Domain domain) { return exact->original[static_cast<std::size_t>(domain)]; }

ExactTaker* taker_now() { return exact->taker.load(std::memory_order_relaxed); }

// After whatever it depends on has changed.
void find_quick_way() {
  const bool is_quick =
      taker_now() != nullptr && exact->ledger != nullptr && !exact->is_locked.load() && exact->pauses == 0;
  if (is_quick)
    exact->attention.fetch_and(~kCareful);
  else
    exact->attention.fetch_or(kCareful);
}

void set_taker(ExactTaker* taker) {
  exact->taker.store(taker);
  find_quick_way();
}

void set_locked(bool is_locked) {
  exact->is_locked.store(is_locked);
  find_quick_way();
}

void book_raw(std::uint32_t stack, void* at, std::size_t size) {
  const BlockBooks::Token token = exact->books->allocated(stack, Domain::kRaw, at, size);
  exact->raw_blocks[reinterpret_cast<std::uintptr_t>(at)] = token;
}

// The block's token, which is forgotten; 0 if it is not known.
BlockBooks::Token take_raw(void* at) {
  const auto found = exact->raw_blocks.find(reinterpret_cast<std::uintptr_t>(at));
  if (found == exact->raw_blocks.end()) return 0;
  const BlockBooks::Token token = found->second;
  exact->raw_blocks.erase(found);
  return token;
}

void book_events() {
  std::vector<RawEvent> events;
  {
    const std::lock_guard guard(exact->events_mutex);
    events.swap(exact->events);
  }
  for (const RawEvent& event : events) {
    if (event.stack != 0) {
      book_raw(event.stack, event.at, event.size);
    } else if (const BlockBooks::Token token = take_raw(event.at); token != 0) {
      exact->books->ended(token, event.at, Fate::kFreed);
    }
  }
}

enum class Epoch { kAnother, kLast };

void close_epoch(ExactTaker& taker, Epoch which) {
  if (exact->log != nullptr) {
    EventBatch batch = exact->log->take();
    exact->waiting_words.fetch_add(static_cast<std::int64_t>(batch.words.size()), std::memory_order_relaxed);
    return taker.logged(std::move(batch));
  }
  // The last number is for the last epoch, however long that becomes.
  if (exact->ledger->epoch() == Ledger::kLastEpoch && which != Epoch::kLast) return;
  const std::uint8_t epoch = exact->ledger->epoch();
  std::vector<LedgerRow> rows = exact->ledger->close_epoch();
  taker.closed(epoch, std::move(rows), exact->ledger->peak_ns());
}

// Something is to be seen to. False if what brought the thread here is a probe of its own. With the books held.
[[gnu::noinline]] bool attend(ExactTaker& taker) {
  const std::uint32_t what = exact->attention.fetch_and(kCareful, std::memory_order_acquire);
  if ((what & kPending) != 0) book_events();
  if ((what & kEpoch) != 0) close_epoch(taker, Epoch::kAnother);
  if ((what & kProbe) == 0) return true;
  const bool is_own = probe != Probe::kNone;
  if (is_own) probe = Probe::kArrived;
  exact->attention.fetch_or(kProbe, std::memory_order_relaxed);  // to its end: see is_called
  return !is_own;
}

// A call that changes the books. False if nothing is to be booked. With the books held.
bool begin(ExactTaker* taker) {
  if (taker == nullptr) return false;
  if ((exact->attention.load(std::memory_order_relaxed) & ~kCareful) != 0) [[unlikely]]
    return attend(*taker);
  return true;
}

// ---- objects and memory ----

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

// The token of a block is noted where it is not known where to.
[[gnu::noinline]] void note_slowly(BlockBooks::Token token, void* at) {
  if (exact->blocks.set(at, token)) return;
  exact->books->ended(token, at, Fate::kMoved);
  taker_now()->lost();
}

void note(BlockBooks::Token token, void* at) {
  BlockMap::Word* const place = exact->blocks.place_of(at);
  if (place == nullptr) [[unlikely]]
    return note_slowly(token, at);
  *place = token;
}

// The books, by their own type, which spares what a virtual call costs.
template <typename AnyBooks>
AnyBooks& books_as() {
  if constexpr (std::is_same_v<AnyBooks, Ledger>)
    return *exact->ledger;
  else
    return *exact->log;
}

template <typename AnyBooks>
[[gnu::noinline]] void book_unknown(StackKey key, Domain domain, void* at, std::size_t size) {
  const std::uint32_t stack = taker_now()->stack_of(key);
  note(books_as<AnyBooks>().allocated(key, stack, domain, at, size), at);
}

// A block that the calling thread has been given.
template <typename AnyBooks>
[[gnu::always_inline]] inline void book_in(Domain domain, void* at, std::size_t size) {
  const StackKey key = exact->find_key();
  BlockBooks::Token token = 0;
  if (!books_as<AnyBooks>().allocated_again(key, domain, at, size, token)) [[unlikely]]
    return book_unknown<AnyBooks>(key, domain, at, size);
  note(token, at);
}

[[gnu::noinline]] void book_carefully(Domain domain, void* at, std::size_t size) noexcept {
  {
    const Books books;
    ExactTaker* taker = taker_now();
    try {
      if (!begin(taker) || exact->pauses > 0) return;
      exact->ledger != nullptr ? book_in<Ledger>(domain, at, size) : book_in<EventLog>(domain, at, size);
    } catch (const std::bad_alloc&) {
      taker->lost();
    }
  }
  if (exact->waiting_words.load(std::memory_order_relaxed) > kMostWaiting) [[unlikely]]
    wait_for_room();
}

// Called with every block, and so written out where it is: what is not as usual, is.
[[gnu::always_inline]] inline void book(Domain domain, void* at, std::size_t size) noexcept {
  if (exact->attention.load(std::memory_order_relaxed) != 0) [[unlikely]]
    return book_carefully(domain, at, size);
  try {
    book_in<Ledger>(domain, at, size);
  } catch (const std::bad_alloc&) {
    taker_now()->lost();
  }
}

void end(BlockBooks::Token token, void* at) noexcept {
  try {
    if (exact->log != nullptr) return exact->log->ended(token, at, Fate::kFreed);
    if (!exact->ledger->ended_quickly(token, at)) exact->ledger->ended(token, at, Fate::kFreed);
  } catch (const std::bad_alloc&) {
    taker_now()->lost();
  }
}

[[gnu::noinline]] void book_end_carefully(void* at) noexcept {
  const Books books;
  if (taker_now() == nullptr) return;
  if (const BlockMap::Word token = exact->blocks.take(at); token != 0) end(token, at);
}

// The block is about to be freed. Written out as book() is. False if that is not as usual, and then nothing has
// changed.
[[gnu::always_inline]] inline bool book_end(void* at) noexcept {
  if ((exact->attention.load(std::memory_order_relaxed) & kCareful) != 0) [[unlikely]]
    return false;
  BlockMap::Word* const place = exact->blocks.place_of(at);
  if (place == nullptr || *place == 0 || !exact->ledger->ended_quickly(*place, at)) [[unlikely]]
    return false;
  *place = 0;
  return true;
}

// A block that may be moved: what the books know of it, while its address may be somebody else's already.
struct Lifted {
  std::uint32_t recording = 0;
  BlockBooks::Token token = 0;  // 0: nothing
  std::size_t size = 0;
};

Lifted lift(void* at) noexcept {
  const Books books;
  if (taker_now() == nullptr) return {};
  const BlockMap::Word token = exact->blocks.take(at);
  return {exact->recording, token, token != 0 ? exact->books->lift(token, at) : 0};
}

// It has been moved; or it stays where it was, if `stays_at` is not null.
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

template <Domain domain>
void* exact_malloc(void*, std::size_t size) {
  Allocator& from = original(domain);
  void* at = inside([&] { return from.malloc(from.context, size); });
  if (at != nullptr) book(domain, at, size);
  return at;
}

template <Domain domain>
void* exact_calloc(void*, std::size_t count, std::size_t item) {
  Allocator& from = original(domain);
  void* at = inside([&] { return from.calloc(from.context, count, item); });
  if (at != nullptr) book_carefully(domain, at, count * item);
  return at;
}

[[gnu::noinline]] void free_carefully(const Allocator& from, void* at) {
  if (at != nullptr) book_end_carefully(at);
  inside([&] {
    from.free(from.context, at);
    return 0;
  });
}

// (For a small block, pymalloc turns to nobody whom we would have to know to be inside of it.)
template <Domain domain>
void exact_free(void*, void* at) {
  const Allocator& from = original(domain);
  if (book_end(at)) [[likely]]
    return from.free(from.context, at);
  free_carefully(from, at);
}

template <Domain domain>
void* exact_realloc(void*, void* at, std::size_t size) {
  if (at == nullptr) return exact_malloc<domain>(nullptr, size);
  Allocator& from = original(domain);
  const Lifted lifted = lift(at);
  void* moved = inside([&] { return from.realloc(from.context, at, size); });
  if (lifted.token != 0) settle(lifted, moved == nullptr ? at : nullptr);
  if (moved != nullptr) book_carefully(domain, moved, size);
  return moved;
}

// ---- the raw allocator ----

// Whether the caller may change the books.
bool has_books(const ExactTaker& taker) {
  return exact->is_locked.load(std::memory_order_relaxed) || taker.is_attached();
}

void put_down(const RawEvent& event) {
  const std::lock_guard guard(exact->events_mutex);
  exact->events.push_back(event);
  exact->attention.fetch_or(kPending, std::memory_order_release);
}

void raw_allocated(ExactTaker& taker, void* at, std::size_t size) noexcept {
  try {
    if (!has_books(taker)) return put_down({at, size, taker.stack()});
    const Books books;
    if (begin(&taker) && exact->pauses == 0) book_raw(taker.stack(), at, size);
  } catch (const std::bad_alloc&) {
    taker.lost();
  }
}

void raw_ended(ExactTaker& taker, void* at, Fate fate) noexcept {
  try {
    if (!has_books(taker)) return put_down({at, 0, 0});
    const Books books;
    begin(&taker);
    if (const BlockBooks::Token token = take_raw(at); token != 0) exact->books->ended(token, at, fate);
  } catch (const std::bad_alloc&) {
    taker.lost();
  }
}

// Who is told of a call of the raw allocator; nobody, if it is part of another's. Stays as long as this lives.
class RawTaker {
 public:
  RawTaker() {
    if (is_inside || exact->taker.load() == nullptr) return;
    exact->raw_callers.fetch_add(1);
    is_counted_ = true;
    taker_ = exact->taker.load();
  }
  RawTaker(const RawTaker&) = delete;
  RawTaker& operator=(const RawTaker&) = delete;
  ~RawTaker() {
    if (is_counted_) exact->raw_callers.fetch_sub(1);
  }
  [[nodiscard]] ExactTaker* get() const { return taker_; }

 private:
  ExactTaker* taker_ = nullptr;
  bool is_counted_ = false;
};

void* raw_malloc(void*, std::size_t size) {
  Allocator& from = original(Domain::kRaw);
  void* at = inside([&] { return from.malloc(from.context, size); });
  const RawTaker taker;
  if (taker.get() != nullptr && at != nullptr) raw_allocated(*taker.get(), at, size);
  return at;
}

void* raw_calloc(void*, std::size_t count, std::size_t item) {
  Allocator& from = original(Domain::kRaw);
  void* at = inside([&] { return from.calloc(from.context, count, item); });
  const RawTaker taker;
  if (taker.get() != nullptr && at != nullptr) raw_allocated(*taker.get(), at, count * item);
  return at;
}

void raw_free(void*, void* at) {
  {
    const RawTaker taker;
    if (taker.get() != nullptr && at != nullptr) raw_ended(*taker.get(), at, Fate::kFreed);
  }
  Allocator& from = original(Domain::kRaw);
  from.free(from.context, at);
}

void* raw_realloc(void*, void* at, std::size_t size) {
  Allocator& from = original(Domain::kRaw);
  if (at == nullptr) return raw_malloc(nullptr, size);
  {
    // Before it may be given to somebody else. If it stays after all, it is counted as allocated here.
    const RawTaker taker;
    if (taker.get() != nullptr) raw_ended(*taker.get(), at, Fate::kMoved);
  }
  // Nobody is kept from stopping meanwhile: tracemalloc, if it lies below, waits for the GIL.
  void* moved = inside([&] { return from.realloc(from.context, at, size); });
  const RawTaker taker;
  if (taker.get() != nullptr) raw_allocated(*taker.get(), moved != nullptr ? moved : at, size);
  return moved;
}

// ---- malloc ----

// The books as malloc and its kin see them: always locked.
struct ExactBooks {
  using Kept = Lifted;

  static bool is_due(std::size_t) { return !is_inside && exact->taker.load(std::memory_order_relaxed) != nullptr; }
  static bool may_know(const void* at) { return at != nullptr && is_due(0); }
  static void note(Domain domain, void* at, std::size_t size) noexcept { book_carefully(domain, at, size); }
  static void not_given(std::size_t) {}
  static Kept take(void* at, NativeEnd what) noexcept {
    if (what == NativeEnd::kMoved) return lift(at);
    book_end_carefully(at);
    return {};
  }
  static void put_back(void* at, const Kept& kept) noexcept {
    if (kept.token != 0) settle(kept, at);
  }
  static void ended(const Kept& kept) noexcept {
    if (kept.token != 0) settle(kept, nullptr);
  }
};

// ---- in and out of the table ----

// (With the context of the allocator below: a thread that allocates while the table is changed may take the function
// from one, and the context from the other.)
Allocator hooks_of(std::size_t domain) {
  void* const context = exact->original[domain].context;
  switch (static_cast<Domain>(domain)) {
    case Domain::kObject:
      return {context, exact_malloc<Domain::kObject>, exact_calloc<Domain::kObject>, exact_realloc<Domain::kObject>,
              exact_free<Domain::kObject>};
    case Domain::kMemory:
      return {context, exact_malloc<Domain::kMemory>, exact_calloc<Domain::kMemory>, exact_realloc<Domain::kMemory>,
              exact_free<Domain::kMemory>};
    default: return {context, raw_malloc, raw_calloc, raw_realloc, raw_free};
  }
}

bool is_current(std::size_t domain) {
  return exact->table->get(static_cast<Domain>(domain)).free == hooks_of(domain).free;
}

// Whether our hooks are still called, as others' that lie over them may have been put back what was there before.
bool is_called(std::size_t domain) {
  if (is_current(domain)) return true;
  probe = Probe::kSent;  // what is allocated for this is nobody's
  exact->attention.fetch_or(kProbe, std::memory_order_relaxed);
  const Allocator top = exact->table->get(static_cast<Domain>(domain));
  void* block = top.malloc(top.context, 1);
  const bool is_reached = std::exchange(probe, Probe::kNone) == Probe::kArrived;
  top.free(top.context, block);
  const Books books;  // whoever is in attend() puts it back
  exact->attention.fetch_and(~kProbe, std::memory_order_relaxed);
  return is_reached || block == nullptr;
}

void install() {
  for (std::size_t i = 0; i < kAllDomains; ++i) {
    // Hooks that others' lie over are called by those.
    if (exact->is_installed[i] && (is_current(i) || is_called(i))) continue;
    // Threads may be late to leave hooks of the last recording: what is as it was is not written.
    const Allocator below = exact->table->get(static_cast<Domain>(i));
    if (exact->original[i] != below) exact->original[i] = below;
    exact->table->set(static_cast<Domain>(i), hooks_of(i));
    exact->is_installed[i] = true;
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
  exact->events = {};
}

// Ends the recording, of which nothing more is told.
void take_out() {
  if (std::exchange(exact->is_patched, false)) restore_malloc();
  {
    const Books books;
    set_taker(nullptr);
  }
  remove();
  while (exact->raw_callers.load() != 0) ::sched_yield();
  const Books books;
  forget_all();
}

bool is_recording() { return exact_is_made && exact->is_active; }

void make_exact() {
  new (&exact_storage.exact) Exact;
  const auto let_go = [] {
    exact->mutex.unlock();
    is_forking = false;
  };
  ::pthread_atfork(
      [] {
        exact->mutex.lock();
        is_forking = true;
      },
      let_go,
      [] {
        exact->mutex.unlock();
        is_forking = false;
        set_taker(nullptr);  // whose locks others may have held who do not exist here
      });
}

}  // namespace

Status start_exact(ExactTaker& taker, AllocatorTable& table, Interpreters interpreters, ExactScope scope,
                   ExactDetail detail) {
  if (!std::exchange(exact_is_made, true)) make_exact();
  PLIMSOLL_TRY(exact->blocks.prepare());
  exact->table = &table;
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
    exact->attention.store(kCareful);  // somebody may have asked who was not told of the end
    exact->waiting_words.store(0);
    exact->pauses = 0;
    exact->is_active = true;
    exact->find_key = taker.find_key;
    set_taker(&taker);
  }
  install();
  if (scope == ExactScope::kPython) return Ok{};
  Status patched = patch_malloc<ExactBooks>();
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
    close_epoch(taker, Epoch::kLast);
    const BlockBooks& known = *exact->books;
    if (is_whole)
      exact->blocks.for_each(
          [&](const void* at, BlockMap::Word token) { taker.alive(at, token, known.facts_of(token, at)); });
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

void ask_for_exact_epoch() {
  if (exact_is_made) exact->attention.fetch_or(kEpoch, std::memory_order_relaxed);
}

void note_words_done(std::size_t words) {
  if (exact_is_made) exact->waiting_words.fetch_sub(static_cast<std::int64_t>(words), std::memory_order_relaxed);
}

void close_exact_epoch() {
  if (!exact_is_made) return;
  const Books books;
  if (taker_now() == nullptr) return;
  exact->attention.fetch_or(kEpoch, std::memory_order_relaxed);
  attend(*taker_now());
}

void lock_exact() {
  if (exact_is_made) set_locked(true);
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
  ++exact->pauses;
  find_quick_way();
}

void resume_exact() {
  if (!exact_is_made) return;
  const Books books;
  exact->pauses = std::max(0, exact->pauses - 1);
  find_quick_way();
}

}  // namespace plimsoll::alloc
