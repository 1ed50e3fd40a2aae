// native/registers.h: a thread's registers where a signal interrupted it.
#pragma once

#include <array>
#include <cstdint>

#include <ucontext.h>

#include "native/rule.h"

namespace plimsoll::native {

// By the numbers of DWARF.
struct Registers {
  std::uint64_t pc = 0;
  std::array<std::uint64_t, kRegisters> value{};
};

#if defined(__linux__) && defined(__x86_64__)
inline constexpr bool kCanUnwind = true;

// Where the kernel puts registers into a signal's frame, from the ucontext_t on; by the numbers of DWARF.
constexpr std::uint64_t place_in_context(std::uint8_t number) {
  constexpr std::array<std::uint8_t, kRegisters + 1> kIndex{REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
                                                            REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                                            REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
  return offsetof(ucontext_t, uc_mcontext.gregs) + std::uint64_t{kIndex[number]} * sizeof(greg_t);
}

// The interrupted registers, of a handler's third argument. Async-signal-safe.
inline Registers registers_of(const ucontext_t& context) {
  Registers registers;
  const auto at = [&](std::uint8_t number) {
    return *reinterpret_cast<const std::uint64_t*>(reinterpret_cast<const char*>(&context) + place_in_context(number));
  };
  for (std::uint8_t number = 0; number < kRegisters; ++number) registers.value[number] = at(number);
  registers.pc = at(kReturnAddress);
  return registers;
}

// Those of the function that this is called in, where it is called: what a function keeps for its caller, and the rest
// 0.
[[gnu::always_inline]] inline Registers registers_here() {
  Registers registers;
  auto& value = registers.value;
  asm volatile(
      "leaq (%%rip), %0\n\t"
      "movq %%rsp, %1\n\t"
      "movq %%rbp, %2\n\t"
      "movq %%rbx, %3\n\t"
      "movq %%r12, %4\n\t"
      "movq %%r13, %5\n\t"
      "movq %%r14, %6\n\t"
      "movq %%r15, %7"
      : "=&r"(registers.pc), "=m"(value[kStackPointer]), "=m"(value[kFramePointer]), "=m"(value[3]), "=m"(value[12]),
        "=m"(value[13]), "=m"(value[14]), "=m"(value[15]));
  return registers;
}
#else
// Machine code is unwound on x86-64 only: nothing calls these elsewhere.
inline constexpr bool kCanUnwind = false;
constexpr std::uint64_t place_in_context(std::uint8_t) { return 0; }
inline Registers registers_of(const ucontext_t&) { return {}; }
inline Registers registers_here() { return {}; }
#endif

}  // namespace plimsoll::native
