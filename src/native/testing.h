// native/testing.h: .eh_frame sections drawn in text, for tests only. No product code may include it.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "native/dwarf.h"
#include "native/eh_frame.h"

extern "C" {
// How a program that makes code tells debuggers of it, by the GDB manual. This program's is in own_stack_test.cc.
struct JitDescriptor {
  std::uint32_t version, action;
  void *relevant, *first;
};
extern JitDescriptor __jit_debug_descriptor;
}

namespace plimsoll::native::testing {

inline std::string uleb(std::uint64_t value) {
  std::string bytes;
  do {
    const auto low = static_cast<unsigned char>(value & 0x7fU);
    value >>= 7U;
    bytes += static_cast<char>(low | (value != 0 ? 0x80U : 0U));
  } while (value != 0);
  return bytes;
}
inline std::string sleb(std::int64_t value) {
  std::string bytes;
  for (bool more = true; more;) {
    const auto low = static_cast<unsigned char>(value & 0x7f);
    value >>= 7;
    more = !((value == 0 && (low & 0x40U) == 0) || (value == -1 && (low & 0x40U) != 0));
    bytes += static_cast<char>(low | (more ? 0x80U : 0U));
  }
  return bytes;
}
template <typename Integer>
std::string little_endian(Integer value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

// A program written as an assembler's directives, one after another, with semicolons between: "advance 1; cfa_offset
// 16; offset rbp -16". Offsets are from the CFA; "cfa_expression" and "expression rbp" take bytes in hexadecimal.
inline std::string program(const std::string& text) {
#if defined(__aarch64__)
  static const std::map<std::string, std::uint64_t> kNumbers = {{"x29", 29}, {"x30", 30}, {"sp", 31}};
#else
  static const std::map<std::string, std::uint64_t> kNumbers = {{"rax", 0},  {"rbx", 3},  {"rbp", 6}, {"rsp", 7},
                                                                {"r10", 10}, {"r11", 11}, {"rip", 16}};
#endif
  std::string bytes;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line, ';');) {
    std::istringstream words(line);
    std::string verb, first, second;
    words >> verb >> first >> second;
    const auto number = [&] { return kNumbers.at(first); };
    const auto expression = [](std::string_view digits) {
      std::string out;
      for (; digits.size() >= 2; digits.remove_prefix(2))
        out += static_cast<char>(std::stoul(std::string(digits.substr(0, 2)), nullptr, 16));
      return uleb(out.size()) + out;
    };
    constexpr std::int64_t kFactor = -8;
    if (verb == "advance")
      bytes += std::string{DW_CFA_advance_loc4} + little_endian(static_cast<std::uint32_t>(std::stoul(first)));
    else if (verb == "def_cfa")
      bytes += std::string{DW_CFA_def_cfa} + uleb(number()) + uleb(std::stoul(second));
    else if (verb == "cfa_offset")
      bytes += std::string{DW_CFA_def_cfa_offset} + uleb(std::stoul(first));
    else if (verb == "cfa_register")
      bytes += std::string{DW_CFA_def_cfa_register} + uleb(number());
    else if (verb == "cfa_expression")
      bytes += std::string{DW_CFA_def_cfa_expression} + expression(first);
    else if (verb == "expression")
      bytes += std::string{DW_CFA_expression} + uleb(number()) + expression(second);
    else if (verb == "offset")
      bytes += std::string{DW_CFA_offset_extended_sf} + uleb(number()) + sleb(std::stol(second) / kFactor);
    else if (verb == "restore")
      bytes += std::string{DW_CFA_restore_extended} + uleb(number());
    else if (verb == "undefined")
      bytes += std::string{DW_CFA_undefined} + uleb(number());
    else if (verb == "remember")
      bytes += std::string{DW_CFA_remember_state};
    else if (verb == "recall")
      bytes += std::string{DW_CFA_restore_state};
    else if (verb == "bytes")
      bytes += expression(first).substr(1);
    else
      throw std::invalid_argument("no such directive: " + line);
  }
  return bytes;
}

// A section that grows entry by entry.
class Section {
 public:
  static constexpr std::uint64_t kAddress = 0x500000;  // of the section
  static constexpr std::uint64_t kCode = 0x400000;     // of the code that it is about
  static constexpr std::uint64_t kCodeSize = 0x10000;

  // A common entry. Functions after it refer to it.
  Section& common(const std::string& text, const std::string& augmentation = "zR") {
    common_at_ = bytes_.size();
    std::string body = little_endian(std::uint32_t{0}) + '\1' + augmentation + '\0' + uleb(1) + sleb(-8) +
                       static_cast<char>(kReturnAddress);
    if (!augmentation.empty()) body += uleb(1) + static_cast<char>(DW_EH_PE_pcrel | DW_EH_PE_sdata4);
    return entry(body + program(text));
  }
  // A function at an offset of the code.
  Section& function(std::uint64_t offset, std::uint64_t size, const std::string& text) {
    const std::uint64_t id_at = bytes_.size() + sizeof(std::uint32_t);
    const std::uint64_t start_at = kAddress + id_at + sizeof(std::uint32_t);
    return entry(little_endian(static_cast<std::uint32_t>(id_at - common_at_)) +
                 little_endian(static_cast<std::int32_t>(kCode + offset - start_at)) +
                 little_endian(static_cast<std::uint32_t>(size)) + uleb(0) + program(text));
  }
  Section& raw_bytes(const std::string& bytes) {
    bytes_ += bytes;
    return *this;
  }

  [[nodiscard]] std::string bytes() const { return bytes_ + std::string(4, '\0'); }
  [[nodiscard]] UnwindTable compile(RulePool& pool) const { return compile_bytes(bytes(), pool); }
  static UnwindTable compile_bytes(const std::string& bytes, RulePool& pool, const Meanwhile& meanwhile = nullptr) {
    return compile_eh_frame({std::as_bytes(std::span(bytes)), kAddress, kCode, kCode + kCodeSize}, pool, meanwhile);
  }

 private:
  Section& entry(const std::string& body) {
    bytes_ += little_endian(static_cast<std::uint32_t>(body.size())) + body;
    return *this;
  }

  std::string bytes_;
  std::size_t common_at_ = 0;
};

// At 0 a function without a frame, at 0x100 one with 32 bytes of it, at 0x200 one with a frame pointer, at 0x300 where
// threads begin, at 0x400 one without a rule, at 0x500 one whose frame is where a register says, at 0x600 one that
// keeps the frame pointer beside the stack pointer.
inline Section functions() {
  Section section;
  section.common("def_cfa rsp 8; offset rip -8")
      .function(0, 0x10, "")
      .function(0x100, 0x10, "cfa_offset 40")
      .function(0x200, 0x10, "def_cfa rbp 16; offset rbp -16")
      .function(0x300, 0x10, "undefined rip")
      .function(0x500, 0x10, "def_cfa r10 0")
      .function(0x600, 0x10, "expression rbp 7710; cfa_offset 32");
  return section;
}

}  // namespace plimsoll::native::testing
