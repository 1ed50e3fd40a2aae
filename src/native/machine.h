// native/machine.h: what differs between the machines whose code is unwound: the registers, by the numbers of their
// DWARF, and where a call leaves the address that it returns to.
//
// x86-64: System V ABI, AMD64 supplement, figure 3.36. aarch64: DWARF for the Arm 64-bit architecture (AADWARF64), and
// the procedure call standard (AAPCS64).
#pragma once

#include <cstddef>
#include <cstdint>

namespace plimsoll::native {

#if defined(__aarch64__)
inline constexpr std::uint8_t kFramePointer = 29;  // x29
inline constexpr std::uint8_t kStackPointer = 31;  // sp
inline constexpr std::size_t kRegisters = 32;
inline constexpr std::uint8_t kReturnAddress = 30;  // x30, which a call sets and a function saves if it calls others
// Calls leave the return address in its register, not on the stack.
inline constexpr bool kReturnsByRegister = true;
inline constexpr std::uint64_t kRedZone = 0;
// Of addresses of code. Above them a saved return address may have a signature (pointer authentication).
inline constexpr unsigned kAddressBits = 48;
// From where the stack pointer is when a signal's handler returns to the ucontext_t: a siginfo_t comes first.
inline constexpr std::uint64_t kContextOfSignal = 128;
#else
inline constexpr std::uint8_t kFramePointer = 6;  // rbp
inline constexpr std::uint8_t kStackPointer = 7;  // rsp
inline constexpr std::size_t kRegisters = 16;
inline constexpr std::uint8_t kReturnAddress = 16;
inline constexpr bool kReturnsByRegister = false;
// Functions that call no others may keep things in so many bytes below the stack pointer: OpenSSL's SHA-256 has its CFA
// there.
inline constexpr std::uint64_t kRedZone = 128;
inline constexpr unsigned kAddressBits = 47;
inline constexpr std::uint64_t kContextOfSignal = 0;
#endif

// Where a call has put the return address, from its CFA, if not into a register.
inline constexpr std::int32_t kReturnPlace = kReturnsByRegister ? 0 : -8;

// An address of code, out of what was saved as a return address.
constexpr std::uint64_t without_signature(std::uint64_t address) {
  return kReturnsByRegister ? address & ((std::uint64_t{1} << kAddressBits) - 1) : address;
}

}  // namespace plimsoll::native
