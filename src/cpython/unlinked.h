// cpython/unlinked.h: who called a frame that has lost its caller, or has none yet.
//
// A generator's frame enters the chain in two steps, and leaves it in two: it has a caller, and it is the innermost
// frame. Which comes first is the compiler's choice, and where GCC has compiled CPython 3.12 it is the innermost frame
// for some instructions while it has no caller. A tick that falls there, one of 150 in a program that does little but
// resume generators, sees a chain of one frame (WalkStop::kUnlinked). But the caller is then in a register, as it is to
// be written to one of these places next. So it is for a function's frame that has not begun (calls_it in walk.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "cpython/walk.h"

namespace plimsoll::cpython {

// Memory in which the word at `place` is `value`. Async-signal-safe if `base` is.
template <memory::Reader M>
class WithWord {
 public:
  WithWord(const M& base, Address place, Address value) : base_(base), place_(place), value_(raw(value)) {}

  [[nodiscard]] bool load(Address at, std::uint8_t& out) const { return base_.load(at, out); }
  [[nodiscard]] bool load(Address at, std::uint32_t& out) const { return base_.load(at, out); }
  [[nodiscard]] bool load(Address at, std::uint64_t& out) const {
    out = value_;
    return at == place_ || base_.load(at, out);
  }
  [[nodiscard]] bool read(Address at, void* out, std::size_t size) const { return base_.read(at, out, size); }

 private:
  const M& base_;
  Address place_;
  std::uint64_t value_;
};

namespace internal {

// Whether one of a frame's variables, or of the values on its stack, is `object`.
template <memory::Reader M>
bool holds(const M& memory, const Layout& layout, Address frame, Address code, Address object) {
  constexpr std::uint32_t kMostWords = 1U << 12U;
  std::uint32_t words = 0;
  if (!memory.load(offset_by(code, layout.generator.words), words)) return false;
  const Address end = offset_by(frame, std::uint64_t{std::min(words, kMostWords)} * sizeof(Address));
  for (Address at = offset_by(frame, layout.generator.values); at < end; at = offset_by(at, sizeof(Address))) {
    Address value{};
    if (!memory::load_address(memory, at, value)) return false;
    if (value == object) return true;
  }
  return false;
}

}  // namespace internal

// Which of `registers`, of a thread that was interrupted, is the frame that called the generator, or else the function,
// of the frame `callee`: the only one that has it among its values. (It is on top of its stack, but how high that is
// may not be written yet; a function was there before it was called.) Null if none is. Async-signal-safe if `memory`
// is.
template <memory::Reader M>
Address find_caller(const M& memory, const Layout& layout, Address code_type, Address callee,
                    std::span<const std::uint64_t> registers) {
  if (layout.generator.words == kNoField) return {};
  constexpr std::uint8_t kGenerator = 1;
  std::uint8_t owner = 0;
  Address called{raw(callee) - layout.generator.frame};
  if (!memory.load(offset_by(callee, layout.frame.owner), owner) ||
      (owner != kGenerator && !memory::load_address(memory, offset_by(callee, layout.frame.function), called)))
    return {};
  Address caller{};
  for (const std::uint64_t value : registers) {
    const Address frame{value};
    PyFrame found;
    if (is_null(frame) || frame == callee || frame == caller ||
        !internal::look_at_frame(memory, layout, code_type, frame, found).found ||
        !internal::holds(memory, layout, frame, found.code, called))
      continue;
    if (!is_null(caller)) return {};
    caller = frame;
  }
  return caller;
}

// As walk_thread, of a thread that was interrupted with `registers` and whose innermost frame has no caller.
template <memory::Reader M, typename Entries = NoEntries>
Walk walk_unlinked(const M& memory, const Layout& layout, Address code_type, Address tstate,
                   std::span<const std::uint64_t> registers, std::span<PyFrame> out, Entries entries = {}) {
  Walk walk;
  walk.stop = WalkStop::kUnlinked;
  Address callee{};
  if (!current_frame(memory, layout, tstate, callee)) return walk;
  const Address caller = find_caller(memory, layout, code_type, callee, registers);
  if (is_null(caller)) return walk;
  const WithWord linked(memory, offset_by(callee, layout.frame.previous), caller);
  walk = walk_thread(linked, layout, code_type, tstate, out, entries);
  if (walk.leaf_skipped) walk.stop = WalkStop::kUnlinked;  // the caller was called elsewhere
  return walk;
}

}  // namespace plimsoll::cpython
