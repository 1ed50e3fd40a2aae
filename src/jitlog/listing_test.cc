// jitlog/listing_test.cc: machine code between the operations and lines that it comes from.
#include "jitlog/listing.h"

#include <gtest/gtest.h>

#include "jitlog/reader.h"
#include "jitlog/testing.h"

namespace plimsoll::jitlog {
namespace {

std::vector<std::string> lines_of(const std::string& log, bool with_code) {
  const Result<Forest> forest = read(log);
  EXPECT_TRUE(forest.ok());
  const Result<Disassembler> disassembler = Disassembler::open("x86_64", false);
  std::vector<std::string> lines;
  for (const ListingLine& line :
       listing(forest.value(), forest.value().traces.at(0), with_code ? &disassembler.value() : nullptr))
    lines.push_back(std::to_string(line.offset) + " " + line.text);
  return lines;
}

// A loop of two lines, whose optimised loads are other operations when they are assembled.
testing::LogWriter optimised() {
  testing::LogWriter log(4, false);
  log.names(
      {{1, "getfield_gc_i"}, {2, "guard_true"}, {3, "int_add"}, {4, "gc_load_i"}, {5, "increment_debug_counter"}});
  log.start(7, "loop", 0, "pypyjit").stage(0x18, 7).arguments("p0").declare_places();
  log.place("app.py", 3, "run").operation(1, "i1,p0").operation(2, "?,i1,<Guard>", 0x90);
  log.place("app.py", 4, "run").operation(3, "i2,i1,1").operation(1, "i3,p0");
  return log;
}

TEST(Listing, PutsLinesAndOperationsBetweenInstructions) {
  // GIVEN the machine code of a loop, with code before its first operation
  testing::LogWriter log = optimised();
  log.stage(0x19, 7).arguments("p0").code(0, "\x90").operation(5, "?,1");
  log.operation(4, "i11,p0,8").code(1, "\x48\x8b\x07").operation(2, "?,i11,<Guard>", 0x90).code(4, "\x48\x85\xc0");
  log.operation(3, "i12,i11,1").code(7, "\x48\xff\xc0").operation(4, "i13,p0,16").code_address(0x1000, 0x100a);
  // WHEN it is listed THEN each instruction stands below its operation, and each operation below its line
  EXPECT_EQ(lines_of(log.bytes(), true),
            (std::vector<std::string>{"0     nop", "1   increment_debug_counter(1)", "1 app.py:3  run",
                                      "1   i11 = gc_load_i(p0,8)", "1     mov rax, qword ptr [rdi]",
                                      "4   guard_true(i11)  <Guard>", "4     test rax, rax", "7 app.py:4  run",
                                      "7   i12 = int_add(i11,1)", "7     inc rax", "10   i13 = gc_load_i(p0,16)"}));
}

TEST(Listing, OfATraceThatWasNotAssembledHasItsOperations) {
  EXPECT_EQ(lines_of(optimised().bytes(), true),
            (std::vector<std::string>{"0 app.py:3  run", "0   i1 = getfield_gc_i(p0)", "0   guard_true(i1)  <Guard>",
                                      "0 app.py:4  run", "0   i2 = int_add(i1,1)", "0   i3 = getfield_gc_i(p0)"}));
}

TEST(Listing, NeverGoesBack) {
  // GIVEN code whose offsets go back, as no writer would have them WHEN it is listed THEN the offsets do not
  testing::LogWriter log = optimised();
  log.stage(0x19, 7).operation(4, "i1,p0,8").code(500, "\x90\x90").operation(4, "i2,p0,8").code(3, "\x90");
  const std::vector<std::string> lines = lines_of(log.bytes(), true);
  ASSERT_EQ(lines.size(), 6U);
  EXPECT_EQ(lines.back(), "502     nop");
}

}  // namespace
}  // namespace plimsoll::jitlog
