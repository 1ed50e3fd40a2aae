#include "alloc/exact_python.h"

#include <new>
#include <type_traits>

#include "alloc/exact_books.h"
#include "alloc/object_heap.h"
#include "alloc/sampling_state.h"
#include "base/inside.h"

namespace plimsoll::alloc::exact_books {
namespace {

// ---- objects and memory ----

// What lies below. The short ways of the heap are written out here: a call of its hooks takes as long as they do.
enum class Below { kAnything, kHeap };

ObjectHeap& heap() { return sampling::hooks->heap; }

// The allocator below, called. Where these are left from a recording that is over, hooks that sample may lie below, and
// this is for them to account for.
template <typename Call>
auto call_below(Call call) {
  return taker_now() != nullptr ? inside(call) : call();
}

template <Domain domain, Below below>
void* malloc_below(std::size_t size) {
  if (below == Below::kHeap && size - 1 < ObjectHeap::kLargest) [[likely]]
    if (void* at = heap().allocate(ObjectHeap::class_of(size))) return at;
  Allocator& from = original(domain);
  return call_below([&] { return from.malloc(from.context, size); });
}

// (For a small block, pymalloc turns to nobody whom we would have to know to be inside of it.)
template <Domain domain, Below below>
void free_small_below(void* at) {
  if (below == Below::kHeap && heap().owns(at)) [[likely]]
    return heap().free(at);
  const Allocator& from = original(domain);
  from.free(from.context, at);
}

template <typename AnyBooks, Domain domain, Below below>
void* exact_malloc(void*, std::size_t size) {
  void* at = malloc_below<domain, below>(size);
  if (at != nullptr) book<AnyBooks>(domain, at, size);
  return at;
}

template <Domain domain>
void* exact_calloc(void*, std::size_t count, std::size_t item) {
  Allocator& from = original(domain);
  void* at = call_below([&] { return from.calloc(from.context, count, item); });
  if (at != nullptr) book_carefully(domain, at, count * item);
  return at;
}

template <typename AnyBooks, Domain domain, Below below>
[[gnu::noinline]] void free_unusual(void* at) {
  if constexpr (std::is_same_v<AnyBooks, Ledger>)
    if (book_earlier_end(at)) return free_small_below<domain, below>(at);
  if (at != nullptr) book_end_carefully(at);
  const Allocator& from = original(domain);
  call_below([&] {
    from.free(from.context, at);
    return 0;
  });
}

template <typename AnyBooks, Domain domain, Below below>
void exact_free(void*, void* at) {
  if (book_end<AnyBooks>(at)) [[likely]]
    return free_small_below<domain, below>(at);
  free_unusual<AnyBooks, domain, below>(at);
}

template <typename AnyBooks, Domain domain>
void* exact_realloc(void*, void* at, std::size_t size) {
  if (at == nullptr) return exact_malloc<AnyBooks, domain, Below::kAnything>(nullptr, size);
  Allocator& from = original(domain);
  const Lifted lifted = lift(at);
  void* moved = call_below([&] { return from.realloc(from.context, at, size); });
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
  const Events guard;
  exact->events.push_back(event);
  exact->attention.fetch_or(kPending, std::memory_order_release);
}

void raw_allocated(ExactTaker& taker, void* at, std::size_t size) noexcept {
  try {
    if (!has_books(taker)) return is_paused() ? void() : put_down({at, size, taker.stack()});
    const Books books;
    if (begin(&taker) && !is_paused()) book_raw(taker.stack(), at, size);
  } catch (const std::bad_alloc&) {
    taker.lost();
  }
}

void raw_freed(ExactTaker& taker, void* at) noexcept {
  try {
    if (!has_books(taker)) return put_down({at, 0, 0});
    const Books books;
    begin(&taker);
    if (const BlockBooks::Token token = take_raw(at); token != 0) exact->books->ended(token, at, Fate::kFreed);
  } catch (const std::bad_alloc&) {
    taker.lost();
  }
}

// The block may be moved. Of what is only put down its end is, and nothing is known later.
Lifted raw_lifted(ExactTaker& taker, void* at) noexcept {
  try {
    if (!has_books(taker)) return put_down({at, 0, 0}), Lifted{};
    const Books books;
    begin(&taker);
    return lift_raw(at);
  } catch (const std::bad_alloc&) {
    taker.lost();
    return {};
  }
}

// It has been; or it stays, if `stays_at` is not null.
void raw_settled(ExactTaker& taker, const Lifted& lifted, void* stays_at) noexcept {
  try {
    // (How long one is that was only put down is not known. It is alive, and told without bytes.)
    if (!has_books(taker)) return stays_at == nullptr ? void() : raw_allocated(taker, stays_at, 0);
    const Books books;
    if (begin(&taker)) settle_raw(lifted, stays_at);
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
  void* at = call_below([&] { return from.malloc(from.context, size); });
  // (Whoever lies over these may be hooks of ours, with the thread inside of them.)
  if (probe == Probe::kSentToRaw) [[unlikely]]
    return probe = Probe::kArrived, at;
  const RawTaker taker;
  if (taker.get() != nullptr && at != nullptr) raw_allocated(*taker.get(), at, size);
  return at;
}

void* raw_calloc(void*, std::size_t count, std::size_t item) {
  Allocator& from = original(Domain::kRaw);
  void* at = call_below([&] { return from.calloc(from.context, count, item); });
  const RawTaker taker;
  if (taker.get() != nullptr && at != nullptr) raw_allocated(*taker.get(), at, count * item);
  return at;
}

void raw_free(void*, void* at) {
  {
    const RawTaker taker;
    if (taker.get() != nullptr && at != nullptr) raw_freed(*taker.get(), at);
  }
  Allocator& from = original(Domain::kRaw);
  from.free(from.context, at);
}

void* raw_realloc(void*, void* at, std::size_t size) {
  Allocator& from = original(Domain::kRaw);
  if (at == nullptr) return raw_malloc(nullptr, size);
  Lifted lifted;
  {
    // Before it may be given to somebody else.
    const RawTaker taker;
    if (taker.get() != nullptr) lifted = raw_lifted(*taker.get(), at);
  }
  // Nobody is kept from stopping meanwhile: tracemalloc, if it lies below, waits for the GIL.
  void* moved = call_below([&] { return from.realloc(from.context, at, size); });
  const RawTaker taker;
  if (taker.get() == nullptr) return moved;
  raw_settled(*taker.get(), lifted, moved == nullptr ? at : nullptr);
  if (moved != nullptr) raw_allocated(*taker.get(), moved, size);
  return moved;
}

// Those that are quick at such books.
template <typename AnyBooks, Domain domain, Below below>
Allocator hooks_with(void* context) {
  return {context, exact_malloc<AnyBooks, domain, below>, exact_calloc<domain>, exact_realloc<AnyBooks, domain>,
          exact_free<AnyBooks, domain, below>};
}
template <Domain domain, Below below>
Allocator hooks_over(void* context) {
  return exact->log != nullptr ? hooks_with<EventLog, domain, below>(context)
                               : hooks_with<Ledger, domain, below>(context);
}
template <Domain domain>
Allocator hooks_over(void* context) {
  return is_heap(domain, original(domain)) ? hooks_over<domain, Below::kHeap>(context)
                                           : hooks_over<domain, Below::kAnything>(context);
}

template <Domain domain>
bool is_hook_of(const Allocator& allocator) {
  const auto is_that = [&](const Allocator& hooks) { return allocator.free == hooks.free; };
  return is_that(hooks_with<Ledger, domain, Below::kHeap>(nullptr)) ||
         is_that(hooks_with<Ledger, domain, Below::kAnything>(nullptr)) ||
         is_that(hooks_with<EventLog, domain, Below::kHeap>(nullptr)) ||
         is_that(hooks_with<EventLog, domain, Below::kAnything>(nullptr));
}

}  // namespace

bool is_hook(std::size_t domain, const Allocator& allocator) {
  switch (static_cast<Domain>(domain)) {
    case Domain::kObject: return is_hook_of<Domain::kObject>(allocator);
    case Domain::kMemory: return is_hook_of<Domain::kMemory>(allocator);
    default: return allocator.free == raw_free;
  }
}

Allocator hooks_of(std::size_t domain) {
  // With the context of the allocator below: a thread that allocates while the table is changed may take the function
  // from one, and the context from the other.
  void* const context = exact->original[domain].context;
  switch (static_cast<Domain>(domain)) {
    case Domain::kObject: return hooks_over<Domain::kObject>(context);
    case Domain::kMemory: return hooks_over<Domain::kMemory>(context);
    default: return {context, raw_malloc, raw_calloc, raw_realloc, raw_free};
  }
}

}  // namespace plimsoll::alloc::exact_books
