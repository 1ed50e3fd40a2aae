#include "alloc/exact_malloc.h"

#include "alloc/exact_books.h"
#include "alloc/patched_malloc.h"
#include "base/inside.h"

namespace plimsoll::alloc::exact_books {
namespace {

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

}  // namespace

Status patch_exact_malloc() { return patch_malloc<ExactBooks>(); }

}  // namespace plimsoll::alloc::exact_books
