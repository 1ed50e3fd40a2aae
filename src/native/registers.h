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

// Where the kernel puts a register into a signal's frame, from the ucontext_t on, by its number of DWARF; and the next
// instruction.
constexpr std::uint64_t place_in_context(std::uint8_t number);
constexpr std::uint64_t place_of_pc_in_context();

// Those of the function that this is called in, where it is called: what a function keeps for its caller, and the rest
// 0.
inline Registers registers_here();

#if defined(__linux__) && defined(__x86_64__)
inline constexpr bool kCanUnwind = true;

constexpr std::uint64_t place_of_general(int index) {
  return offsetof(ucontext_t, uc_mcontext.gregs) + static_cast<std::uint64_t>(index) * sizeof(greg_t);
}
constexpr std::uint64_t place_in_context(std::uint8_t number) {
  constexpr std::array<std::uint8_t, kRegisters> kIndex{REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
                                                        REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                                        REG_R12, REG_R13, REG_R14, REG_R15};
  return place_of_general(kIndex[number]);
}
constexpr std::uint64_t place_of_pc_in_context() { return place_of_general(REG_RIP); }

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
#elif defined(__linux__) && defined(__aarch64__)
inline constexpr bool kCanUnwind = true;

constexpr std::uint64_t place_in_context(std::uint8_t number) {
  if (number == kStackPointer) return offsetof(ucontext_t, uc_mcontext.sp);
  return offsetof(ucontext_t, uc_mcontext.regs) + std::uint64_t{number} * sizeof(std::uint64_t);
}
constexpr std::uint64_t place_of_pc_in_context() { return offsetof(ucontext_t, uc_mcontext.pc); }

[[gnu::always_inline]] inline Registers registers_here() {
  Registers registers;
  asm volatile(
      "adr %0, .\n\t"
      "mov %1, sp\n\t"
      "stp x19, x20, [%2, #152]\n\t"  // registers.value[19] and so on
      "stp x21, x22, [%2, #168]\n\t"
      "stp x23, x24, [%2, #184]\n\t"
      "stp x25, x26, [%2, #200]\n\t"
      "stp x27, x28, [%2, #216]\n\t"
      "stp x29, x30, [%2, #232]"
      : "=&r"(registers.pc), "=&r"(registers.value[kStackPointer])
      : "r"(registers.value.data())
      : "memory");
  return registers;
}
#else
// Elsewhere machine code is not unwound: nothing calls these.
inline constexpr bool kCanUnwind = false;
constexpr std::uint64_t place_in_context(std::uint8_t) { return 0; }
constexpr std::uint64_t place_of_pc_in_context() { return 0; }
inline Registers registers_here() { return {}; }
#endif

// The interrupted registers, of a handler's third argument. Async-signal-safe.
inline Registers registers_of(const ucontext_t& context) {
  Registers registers;
  const auto at = [&](std::uint64_t place) {
    return *reinterpret_cast<const std::uint64_t*>(reinterpret_cast<const char*>(&context) + place);
  };
  for (std::uint8_t number = 0; number < kRegisters; ++number) registers.value[number] = at(place_in_context(number));
  registers.pc = at(place_of_pc_in_context());
  return registers;
}

}  // namespace plimsoll::native
