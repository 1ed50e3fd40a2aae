// memory/local.h: reads our own process's memory through loads that cannot crash it.
//
// Each guarded load is one machine instruction with a row in the section plimsoll_fault_table: its address, and where
// to go on if it faults. The SIGSEGV/SIGBUS handler that FaultGuard installs looks the faulting instruction up there;
// any other fault is passed on to whoever handled it before us. The idea is the Linux kernel's exception table for
// user-space accesses: no cost on the good path, no setjmp, no system call, safe in a signal handler.
#pragma once

#include <csignal>
#include <cstring>

#include "base/ids.h"
#include "base/result.h"

// One row of the fault table for the instruction at local label 1. The "?" puts the row into the section group of the
// function it belongs to, so that a discarded duplicate of an inline function takes its rows along.
#define PLIMSOLL_FAULT_ROW                                  \
  ".pushsection plimsoll_fault_table,\"a?\",%%progbits\n\t" \
  ".balign 4\n\t"                                           \
  ".long 1b - .\n\t"                                        \
  ".long %l[fault] - .\n\t"                                 \
  ".popsection"

// volatile, as GCC 12 otherwise treats an asm goto with an output as a pure computation and drops its fault edge; the
// empty asm keeps it from moving the output's copy in front of the jump (GCC bug 113921, mended in 12.4 and 13.3).
#if defined(__x86_64__)
#define PLIMSOLL_GUARDED_LOAD(mnemonic, constraint, from, to)         \
  asm volatile goto("1: " mnemonic " (%1), %0\n\t" PLIMSOLL_FAULT_ROW \
                    : constraint(to)                                  \
                    : "r"(from)                                       \
                    : "memory"                                        \
                    : fault);                                         \
  asm volatile("")
#define PLIMSOLL_GUARDED_LOAD_AT(mnemonic, from, offset, to)             \
  asm volatile goto("1: " mnemonic " (%1,%2), %0\n\t" PLIMSOLL_FAULT_ROW \
                    : "=r"(to)                                           \
                    : "r"(from), "r"(offset)                             \
                    : "memory"                                           \
                    : fault);                                            \
  asm volatile("")
#define PLIMSOLL_GUARDED_COMPARE(mnemonic, at, word)                                 \
  asm volatile goto("1: " mnemonic " %1, %0\n\tjne %l[other]\n\t" PLIMSOLL_FAULT_ROW \
                    :                                                                \
                    : "m"(at), "r"(word)                                             \
                    : "cc"                                                           \
                    : other, fault)
#define PLIMSOLL_COMPARE_32(at, word) PLIMSOLL_GUARDED_COMPARE("cmpl", at, word)
#define PLIMSOLL_COMPARE_64(at, word) PLIMSOLL_GUARDED_COMPARE("cmpq", at, word)
#define PLIMSOLL_LOAD_8(from, to) PLIMSOLL_GUARDED_LOAD("movb", "=q", from, to)
#define PLIMSOLL_LOAD_32(from, to) PLIMSOLL_GUARDED_LOAD("movl", "=r", from, to)
#define PLIMSOLL_LOAD_64(from, to) PLIMSOLL_GUARDED_LOAD("movq", "=r", from, to)
#define PLIMSOLL_LOAD_AT_32(from, offset, to) PLIMSOLL_GUARDED_LOAD_AT("movl", from, offset, to)
#define PLIMSOLL_LOAD_AT_64(from, offset, to) PLIMSOLL_GUARDED_LOAD_AT("movq", from, offset, to)
#elif defined(__aarch64__)
#define PLIMSOLL_GUARDED_LOAD(mnemonic, from, to)                                                              \
  asm volatile goto("1: " mnemonic ", [%1]\n\t" PLIMSOLL_FAULT_ROW : "=r"(to) : "r"(from) : "memory" : fault); \
  asm volatile("")
#define PLIMSOLL_LOAD_8(from, to) PLIMSOLL_GUARDED_LOAD("ldrb %w0", from, to)
#define PLIMSOLL_LOAD_32(from, to) PLIMSOLL_GUARDED_LOAD("ldr %w0", from, to)
#define PLIMSOLL_LOAD_64(from, to) PLIMSOLL_GUARDED_LOAD("ldr %x0", from, to)
#define PLIMSOLL_GUARDED_COMPARE(load, compare, at, word)                                     \
  asm volatile goto("1: " load ", %0\n\t" compare "\n\tb.ne %l[other]\n\t" PLIMSOLL_FAULT_ROW \
                    :                                                                         \
                    : "m"(at), "r"(word)                                                      \
                    : "cc", "x16"                                                             \
                    : other, fault)
#define PLIMSOLL_COMPARE_32(at, word) PLIMSOLL_GUARDED_COMPARE("ldr w16", "cmp w16, %w1", at, word)
#define PLIMSOLL_COMPARE_64(at, word) PLIMSOLL_GUARDED_COMPARE("ldr x16", "cmp x16, %1", at, word)
#define PLIMSOLL_LOAD_AT_32(from, offset, to) PLIMSOLL_LOAD_32((from) + (offset), to)
#define PLIMSOLL_LOAD_AT_64(from, offset, to) PLIMSOLL_LOAD_64((from) + (offset), to)
#else
#error "write the guarded loads for this architecture"
#endif

namespace plimsoll::memory {

// Reads our own memory. Async-signal-safe. Needs an installed FaultGuard: without one an unreadable address crashes
// as usual. Bytes that another thread is writing may be read torn; callers validate what they read.
class LocalReader {
 public:
  // For whoever will read there soon; of any address, there or not.
  void prefetch(Address at) const { __builtin_prefetch(pointer_to<const void>(at)); }

  [[nodiscard]] bool load(Address at, std::uint8_t& out) const {
    std::uint8_t value;
    PLIMSOLL_LOAD_8(raw(at), value);
    out = value;
    return true;
  fault:
    return false;
  }
  [[nodiscard]] bool load(Address at, std::uint32_t& out) const {
    std::uint32_t value;
    PLIMSOLL_LOAD_32(raw(at), value);
    out = value;
    return true;
  fault:
    return false;
  }
  [[nodiscard]] bool load(Address at, std::uint64_t& out) const {
    std::uint64_t value;
    PLIMSOLL_LOAD_64(raw(at), value);
    out = value;
    return true;
  fault:
    return false;
  }
  // Where a register more spares an addition, which counts in a loop.
  [[nodiscard]] bool load_at(Address base, std::uint64_t offset, std::uint32_t& out) const {
    std::uint32_t value;
    PLIMSOLL_LOAD_AT_32(raw(base), offset, value);
    out = value;
    return true;
  fault:
    return false;
  }
  [[nodiscard]] bool load_at(Address base, std::uint64_t offset, std::uint64_t& out) const {
    std::uint64_t value;
    PLIMSOLL_LOAD_AT_64(raw(base), offset, value);
    out = value;
    return true;
  fault:
    return false;
  }
  // Whether it can be read, and is this word: one instruction, and a jump.
  [[nodiscard]] bool is_at(Address base, std::uint64_t offset, std::uint32_t word) const {
    PLIMSOLL_COMPARE_32(word_at<std::uint32_t>(base, offset), word);
    return true;
  other:
  fault:
    return false;
  }
  [[nodiscard]] bool is_at(Address base, std::uint64_t offset, std::uint64_t word) const {
    PLIMSOLL_COMPARE_64(word_at<std::uint64_t>(base, offset), word);
    return true;
  other:
  fault:
    return false;
  }
  [[nodiscard]] bool read(Address at, void* out, std::size_t size) const {
    auto* bytes = static_cast<unsigned char*>(out);
    std::size_t done = 0;
    for (; done + sizeof(std::uint64_t) <= size; done += sizeof(std::uint64_t)) {
      std::uint64_t word = 0;
      if (!load(offset_by(at, done), word)) return false;
      std::memcpy(bytes + done, &word, sizeof word);
    }
    for (; done < size; ++done)
      if (!load(offset_by(at, done), bytes[done])) return false;
    return true;
  }

 private:
  // For an instruction's operand, which may be anywhere.
  template <typename Word>
  static const Word& word_at(Address base, std::uint64_t offset) {
    return *reinterpret_cast<const Word*>(raw(base) + offset);  // NOLINT(performance-no-int-to-ptr)
  }
};

// The process-wide fault handler behind LocalReader.
class FaultGuard {
 public:
  // Puts our handler in front of the current SIGSEGV and SIGBUS handlers unless it is there already; a program that
  // installs a handler of its own later displaces it, and calling ensure_installed again puts it back in front.
  // Thread-safe; not for signal handlers. Costs two system calls when there is nothing to do.
  static Status ensure_installed();
  // Says which function handles traps that the kernel makes of perf events: one may come between a guarded load's fault
  // and the fault's handler.
  static void expect_traps(void (*handler)(int, siginfo_t*, void*));
};

}  // namespace plimsoll::memory
