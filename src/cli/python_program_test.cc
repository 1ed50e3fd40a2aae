#include "cli/python_program.h"

#include <gtest/gtest.h>

namespace plimsoll::cli {
namespace {

std::string answer_of(const std::string& program, std::int64_t patience_ns = kAnswerPatience) {
  return output_of({"/bin/sh", "-c", program}, patience_ns);
}

TEST(OutputOfProgram, IsWhatItPrints) {
  EXPECT_EQ(answer_of("echo one; echo nothing >&2; echo two"), "one\ntwo\n");
  EXPECT_EQ(answer_of("echo one; exit 1"), "");
  EXPECT_EQ(output_of({"/does/not/exist"}), "");
}

TEST(OutputOfProgram, IsNotWaitedForWhereItWaitsForUs) {
  // GIVEN one that asks for input THEN it gets none
  EXPECT_EQ(answer_of("cat; echo end"), "end\n");
  // GIVEN one that says nothing, and does not end THEN it is killed
  constexpr std::int64_t kShort = 20'000'000;
  EXPECT_EQ(answer_of("exec sleep 1000000", kShort), "");
  EXPECT_EQ(answer_of("echo begun; exec sleep 1000000", kShort), "");
  // AND what it has started does not keep us either
  EXPECT_EQ(answer_of("sleep 1 & wait", kShort), "");
}

}  // namespace
}  // namespace plimsoll::cli
