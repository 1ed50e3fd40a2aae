// jitlog/disassembler.h: machine code -> instructions as text (capstone).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace plimsoll::jitlog {

struct CapstoneLibrary;

// One instruction, or bytes that are none (".byte 0xff").
struct Instruction {
  std::size_t offset = 0;  // in the code
  std::string text;        // "add rax, rbx"
};

// Knows one machine's code. Move-only; not to be shared by threads.
class Disassembler {
 public:
  // `machine` as jitlogs have it: "x86_64", "x86", "aarch64". Errors: kUnsupported for any other, or if
  // capstone's library is not there; kSystem without memory.
  static Result<Disassembler> open(std::string_view machine, bool is_32bit);

  Disassembler(Disassembler&& other) noexcept;
  Disassembler& operator=(Disassembler&& other) noexcept;
  ~Disassembler();

  // All of the code, which stands at `address`. Any bytes will do.
  [[nodiscard]] std::vector<Instruction> instructions(std::string_view code, std::uint64_t address) const;

 private:
  Disassembler(const CapstoneLibrary& capstone, std::size_t handle) : capstone_(&capstone), handle_(handle) {}
  const CapstoneLibrary* capstone_;
  std::size_t handle_;  // capstone's; 0 = none
};

}  // namespace plimsoll::jitlog
