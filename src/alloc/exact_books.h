// alloc/exact_books.h: what the hooks of an exact recording share, and how a block is booked.
//
// For the hooks over Python's allocators (exact_python.cc), those over malloc (exact_malloc.cc), and for who puts them
// there (exact_hooks.cc). What is done with every block is written out here; what is not as usual is in exact_books.cc.
#pragma once

#include <array>
#include <atomic>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <type_traits>
#include <vector>

#include "alloc/allocator_table.h"
#include "alloc/block_map.h"
#include "alloc/event_log.h"
#include "alloc/exact_hooks.h"
#include "alloc/ledger.h"
#include "base/static_storage.h"

namespace plimsoll::alloc::exact_books {

// What the raw allocator did without the GIL.
struct RawEvent {
  void* at = nullptr;
  std::size_t size = 0;
  std::uint32_t stack = 0;  // 0: the block was freed
};

// What the next call with the books has to see to. kEpoch is also set by whoever wants to be told of what there is;
// kClock by who has seen time go by: it may be long since the last event.
inline constexpr std::uint32_t kEpoch = 1, kPending = 2, kProbe = 4, kClock = 8;
// Not to be seen to, but every call has to look at what follows: there are no books, or a lock around them, or a pause;
// or they are not of sums, or not of events, which only those mind who are quick at these.
// kVisited: somebody without the GIL is about to look into the books, and a lock is around them meanwhile.
// kSilent: nothing that is allocated is booked any more, up to the end of the recording.
inline constexpr std::uint32_t kCareful = 16, kNoSums = 32, kNoEvents = 64, kVisited = 128, kSilent = 256;
inline constexpr std::uint32_t kStanding = kCareful | kNoSums | kNoEvents;
inline constexpr std::uint32_t kLasting = kStanding | kVisited | kSilent;  // whoever sees to the others leaves these

// Everything the hooks share. Never destroyed: others' hooks may lie over ours to the end of the process.
struct Exact {
  // What every event needs, in one cache line; `mutex` guards the last three, too.
  alignas(64) std::atomic<std::uint32_t> attention{kStanding};
  KeyFinder find_key;              // the taker's
  std::unique_ptr<Ledger> ledger;  // one of these two
  std::unique_ptr<EventLog> log;
  BlockMap blocks;

  std::array<Allocator, kAllDomains> original{};
  std::array<bool, kAllDomains> is_installed{};
  AllocatorTable* table = nullptr;
  std::atomic<ExactTaker*> taker{nullptr};  // null: nothing is recorded
  bool is_active = false;                   // between start and stop
  bool is_patched = false;                  // malloc is
  bool was_patched = false;                 // it has been: somebody may have copied a pointer to ours
  std::atomic<bool> is_locked{false};       // there is not one GIL, or the books are of malloc, too
  std::atomic<int> pauses{0};               // changed with the books held, and looked at without as well
  std::mutex mutex;                         // guards what follows if so, or in a visit; else the GIL does
  std::atomic<std::int64_t> asked_ns{0};    // when kEpoch was set by who asked for one
  std::uint32_t recording = 0;              // which one this is
  BlockBooks* books = nullptr;              // the ledger or the log
  boost::unordered_flat_map<std::uintptr_t, BlockBooks::Token> raw_blocks;
  std::mutex events_mutex;  // guards events and rooms; after `mutex`
  std::vector<RawEvent> events;
  std::vector<std::vector<std::uint32_t>> rooms;  // for the log
  std::atomic<int> raw_callers{0};                // threads that turn to the taker without the GIL
  std::atomic<std::int64_t> waiting_words{0};     // logged, and not dealt with
};

extern constinit StaticStorage<Exact> exact_storage;
inline constinit Exact* const exact = &exact_storage.value;
extern constinit bool exact_is_made;

// The thread has the books, as fork must not happen while another has them.
[[gnu::tls_model("initial-exec")]] extern thread_local constinit bool is_forking;
// The thread finds out whether hooks of ours are called; those of the raw allocator answer for themselves.
enum class Probe : std::uint8_t { kNone, kSent, kSentToRaw, kArrived };
[[gnu::tls_model("initial-exec")]] extern thread_local constinit Probe probe;

// The books, held. Whoever has them waits for nobody who may need them, nor for anything of Python's: neither the GIL,
// nor that the collector of a free-threaded build lets threads go on.
class Books {
 public:
  Books() : is_locked_(has_lock() && !is_forking) {
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
  static bool has_lock() {
    return exact->is_locked.load(std::memory_order_relaxed) ||
           (exact->attention.load(std::memory_order_acquire) & kVisited) != 0;
  }

  const bool is_locked_;
};

// What was put down without the GIL, and the rooms, held.
class Events {
 public:
  Events() {
    if (!is_forking) exact->events_mutex.lock();
  }
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;
  ~Events() {
    if (!is_forking) exact->events_mutex.unlock();
  }
};

inline Allocator& original(Domain domain) { return exact->original[static_cast<std::size_t>(domain)]; }
inline ExactTaker* taker_now() { return exact->taker.load(std::memory_order_relaxed); }

// Each is seen to by those who book, from now on.
void set_taker(ExactTaker* taker);
void set_locked(bool is_locked);
void set_pauses(int pauses);
inline bool is_paused() {
  return exact->pauses.load(std::memory_order_relaxed) > 0 ||
         (exact->attention.load(std::memory_order_relaxed) & kSilent) != 0;
}

// Whether another epoch follows.
enum class Epoch : std::uint8_t { kAnother, kLast };
// It ends at `at_ns`.
void close_epoch(ExactTaker& taker, Epoch which, std::int64_t at_ns) noexcept;
// Something is to be seen to. False if what brought the thread here is a probe of its own. With the books held.
bool attend(ExactTaker& taker) noexcept;
// A call that changes the books. False if nothing is to be booked. With the books held.
inline bool begin(ExactTaker* taker) {
  if (taker == nullptr) return false;
  if ((exact->attention.load(std::memory_order_relaxed) & ~kLasting) != 0) [[unlikely]]
    return attend(*taker);
  return true;
}

// ---- a block is given out ----

// The token of a block is noted where it is not known where to.
void note_slowly(BlockBooks::Token token, void* at);

inline void note(BlockBooks::Token token, void* at) {
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
// What those do not mind who are quick at such books.
template <typename AnyBooks>
inline constexpr std::uint32_t kOthers = std::is_same_v<AnyBooks, Ledger> ? kNoEvents : kNoSums;

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

// Likewise, whatever is not as usual.
void book_carefully(Domain domain, void* at, std::size_t size) noexcept;

// Called with every block, and so written out where it is: what is not as usual, is.
template <typename AnyBooks>
[[gnu::always_inline]] inline void book(Domain domain, void* at, std::size_t size) noexcept {
  if ((exact->attention.load(std::memory_order_acquire) & ~kOthers<AnyBooks>) != 0 || books_as<AnyBooks>().is_due())
      [[unlikely]]
    return book_carefully(domain, at, size);
  try {
    book_in<AnyBooks>(domain, at, size);
  } catch (const std::bad_alloc&) {
    taker_now()->lost();
  }
}

// ---- a block comes to its end ----

void book_end_carefully(void* at) noexcept;

// The block is about to be freed. `ended(token)` books it, or is false if that is not as usual, and so is this; then
// nothing has changed. Written out as book() is.
template <typename AnyBooks, typename Ended>
[[gnu::always_inline]] inline bool book_end_by(void* at, Ended ended) noexcept {
  constexpr std::uint32_t kUnusual = (kEpoch | kClock | kVisited | kStanding) & ~kOthers<AnyBooks>;
  if ((exact->attention.load(std::memory_order_acquire) & kUnusual) != 0) [[unlikely]]
    return false;
  BlockMap::Word* const place = exact->blocks.place_of(at);
  if (place == nullptr || *place == 0 || !ended(*place)) [[unlikely]]
    return false;
  *place = 0;
  return true;
}
template <typename AnyBooks>
[[gnu::always_inline]] inline bool book_end(void* at) noexcept {
  return book_end_by<AnyBooks>(at,
                               [at](BlockBooks::Token token) { return books_as<AnyBooks>().ended_quickly(token, at); });
}
// Of a block that is not as usual because it is from an earlier epoch.
[[gnu::always_inline]] inline bool book_earlier_end(void* at) noexcept {
  return book_end_by<Ledger>(at,
                             [at](BlockBooks::Token token) { return exact->ledger->earlier_ended_quickly(token, at); });
}

// A block that may be moved: what the books know of it, while its address may be somebody else's already.
struct Lifted {
  std::uint32_t recording = 0;
  BlockBooks::Token token = 0;  // 0: nothing
  std::size_t size = 0;
};
Lifted lift(void* at) noexcept;
// It has been moved; or it stays where it was, if `stays_at` is not null.
void settle(const Lifted& lifted, void* stays_at) noexcept;

// ---- of the raw allocator, whose blocks are in a table of their own ----

void book_raw(std::uint32_t stack, void* at, std::size_t size);
// The block's token, which is forgotten; 0 if it is not known.
BlockBooks::Token take_raw(void* at);
// As lift() and settle(), with the books held.
Lifted lift_raw(void* at);
void settle_raw(const Lifted& lifted, void* stays_at);

}  // namespace plimsoll::alloc::exact_books
