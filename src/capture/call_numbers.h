// capture/call_numbers.h: which system call it was that a thread has come back from. The kernel puts its result into
// the register that had its number, and shows the number to nobody but tracers.
#pragma once

#include <ucontext.h>

#include <cstdint>

namespace plimsoll::capture {

// Finds where glibc since 2.41, whose calls that a thread can be cancelled in all go through one function, has the
// number: on its stack, as an argument of that function's caller, as far away as the compiler has put it. Makes two
// calls of different numbers on a thread of its own, lets `signal` end them, and looks where on the stack each number
// is. With any other C library that is for nothing; it costs some 0.2 ms. What cannot be found stays unknown. Meanwhile
// `signal` has a handler of its own, so no tick may be armed. Does nothing when called again.
void learn_call_numbers(int signal) noexcept;

// The number of the call that ends at `context`; -1 if it is not known. Known are those that the instruction before
// gives a number, or loads it from the stack, as older versions do and newer ones for a process of one thread, and
// those that learn_call_numbers has learned of. Nothing is known on aarch64. Async-signal-safe.
std::int64_t number_of_ended_call(const ucontext_t& context) noexcept;

}  // namespace plimsoll::capture
