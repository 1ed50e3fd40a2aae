#include "cli/watched_program.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

namespace plimsoll::cli {
namespace {

// What is shown of the output of a program of the shell.
std::string last_output_of(const std::string& program, std::size_t lines) {
  sigset_t none;
  ::sigemptyset(&none);
  auto started = WatchedProgram::start({"/bin/sh", "-c", program}, ProgramOutput::kFile, none);
  if (!started.ok()) return started.error().message;
  constexpr int kTries = 10'000;
  for (int i = 0; i < kTries && !started.value()->ending(); ++i) ::usleep(1'000);
  std::string shown = started.value()->last_output(lines);
  if (const std::string file = started.value()->output_file(); !file.empty())
    std::filesystem::remove_all(std::filesystem::path(file).parent_path());
  return shown;
}

TEST(WatchedProgram, ShowsTheLastLinesOfItsOutput) {
  EXPECT_EQ(last_output_of("printf 'a\\nb\\nc\\n'", 2), "\n  b\n  c");
  EXPECT_EQ(last_output_of("printf 'a\\nb'", 10), "\n  a\n  b");
  EXPECT_EQ(last_output_of(":", 10), "");
}

TEST(WatchedProgram, ShowsTheLastLinesHoweverMuchItHasWritten) {
  // (more than any source that is read)
  EXPECT_EQ(last_output_of("head -c 40000000 /dev/zero | tr '\\0' '\\n'; printf 'x\\nlast\\n'", 2), "\n  x\n  last");
  // and if a line is longer than what is looked at, its end
  const std::string shown = last_output_of("head -c 100000 /dev/zero | tr '\\0' y; echo z", 2);
  EXPECT_TRUE(shown.ends_with("yz")) << shown.size();
  EXPECT_TRUE(last_output_of("head -c 100000 /dev/zero | tr '\\0' y; printf '\\nlast\\n'", 2) == "\n  last");
}

}  // namespace
}  // namespace plimsoll::cli
