// jitlog/disassembler_test.cc: bytes whose instructions are known from the manuals of the machines.
#include "jitlog/disassembler.h"

#include <gtest/gtest.h>

namespace plimsoll::jitlog {
namespace {

std::vector<std::pair<std::size_t, std::string>> instructions(std::string_view machine, bool is_32bit,
                                                              std::string_view code) {
  const Result<Disassembler> disassembler = Disassembler::open(machine, is_32bit);
  EXPECT_TRUE(disassembler.ok());
  std::vector<std::pair<std::size_t, std::string>> all;
  if (disassembler.ok())
    for (const Instruction& one : disassembler.value().instructions(code, 0x1000))
      all.emplace_back(one.offset, one.text);
  return all;
}
using All = std::vector<std::pair<std::size_t, std::string>>;

TEST(Disassembler, KnowsTheMachinesOfPyPy) {
  EXPECT_EQ(instructions("x86_64", false, "\x48\x01\xd8\xc3"), (All{{0, "add rax, rbx"}, {3, "ret"}}));
  EXPECT_EQ(instructions("x86", true, "\x01\xd8\x90"), (All{{0, "add eax, ebx"}, {2, "nop"}}));
  EXPECT_EQ(instructions("aarch64", false, std::string_view("\x20\x00\x02\x8b\xc0\x03\x5f\xd6", 8)),
            (All{{0, "add x0, x1, x2"}, {4, "ret"}}));
  // jumps have the address that they go to
  EXPECT_EQ(instructions("x86_64", false, std::string_view("\xe9\x10\x00\x00\x00", 5)), (All{{0, "jmp 0x1015"}}));
}

TEST(Disassembler, ShowsBytesThatAreNoInstruction) {
  // GIVEN a byte that begins no instruction in 64-bit mode, and an instruction that is cut
  const All all = instructions("x86_64", false, "\x06\x90\x48");
  ASSERT_EQ(all.size(), 3U);
  EXPECT_TRUE(all[0].second.starts_with(".byte")) << all[0].second;
  EXPECT_EQ(all[1], (std::pair<std::size_t, std::string>{1, "nop"}));
  EXPECT_TRUE(all[2].second.starts_with(".byte")) << all[2].second;
  EXPECT_TRUE(instructions("x86_64", false, "").empty());
}

TEST(Disassembler, SaysWhichMachinesItDoesNotKnow) {
  const Result<Disassembler> disassembler = Disassembler::open("s390x", false);
  ASSERT_FALSE(disassembler.ok());
  EXPECT_EQ(disassembler.error().kind, ErrorKind::kUnsupported);
  EXPECT_NE(disassembler.error().message.find("s390x"), std::string::npos);
}

}  // namespace
}  // namespace plimsoll::jitlog
