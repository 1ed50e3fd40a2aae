// cli/process_id_test.cc: what is taken for the number of a process.
#include "cli/process_id.h"

#include <gtest/gtest.h>

namespace plimsoll::cli {
namespace {

TEST(ProcessId, IsAPositiveNumber) {
  EXPECT_EQ(problem_of_process_id("1"), "");
  EXPECT_EQ(problem_of_process_id("4194304"), "");
  for (const char* word : {"abc", "0", "-5", "12x", "1.5", "", "99999999999999999999"})
    EXPECT_NE(problem_of_process_id(word).find("is no process id"), std::string::npos) << word;
}

}  // namespace
}  // namespace plimsoll::cli
