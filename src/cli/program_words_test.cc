#include "cli/program_words.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <optional>

namespace plimsoll::cli {
namespace {

using Words = std::vector<std::string>;

// A verb with a flag, an option with a value, and the program that follows them.
class ProgramWords : public testing::Test {
 protected:
  ProgramWords() {
    verb_.add_flag("--children", children_);
    verb_.add_option("-r,--rate", rate_);
  }
  // Splits "run ..." and returns the program; what is left of the words is in `ours_`.
  Words program_of(Words words) {
    Words program = take_program(verb_, words);
    ours_ = words;
    return program;
  }

  CLI::App verb_;
  bool children_ = false;
  std::optional<double> rate_;
  Words ours_;
};

TEST_F(ProgramWords, BeginAtTheFirstWordThatIsNoOption) {
  EXPECT_EQ(program_of({"run", "-r", "100", "--children", "app.py", "-r", "5"}), (Words{"app.py", "-r", "5"}));
  EXPECT_EQ(ours_, (Words{"run", "-r", "100", "--children"}));
}

TEST_F(ProgramWords, MayBeAModuleACommandOrStandardInput) {
  EXPECT_EQ(program_of({"run", "-m", "pytest", "--rate", "3"}), (Words{"-m", "pytest", "--rate", "3"}));
  EXPECT_EQ(program_of({"run", "--children", "-c", "print(1)"}), (Words{"-c", "print(1)"}));
  EXPECT_EQ(program_of({"run", "-", "x"}), (Words{"-", "x"}));
}

TEST_F(ProgramWords, FollowADoubleDash) {
  EXPECT_EQ(program_of({"run", "--rate=3", "--", "app.py", "--", "x"}), (Words{"app.py", "--", "x"}));
  EXPECT_EQ(ours_, (Words{"run", "--rate=3"}));
}

TEST_F(ProgramWords, AreNotTakenFromAnOptionsValue) {
  EXPECT_EQ(program_of({"run", "-r100", "app.py"}), (Words{"app.py"}));
  EXPECT_EQ(program_of({"run", "--rate", "100"}), Words{});
  EXPECT_EQ(ours_, (Words{"run", "--rate", "100"}));
}

TEST_F(ProgramWords, DoNotBeginAtAnArgumentOfTheVerbs) {
  Words words{"top", "--rate", "100", "1234", "--children"};
  EXPECT_EQ(take_program(verb_, words, [](std::string_view word) { return word == "1234"; }), Words{});
  EXPECT_EQ(words, (Words{"top", "--rate", "100", "1234", "--children"}));
}

TEST_F(ProgramWords, LeaveAnUnknownOptionToTheParser) {
  EXPECT_EQ(program_of({"run", "--rat", "app.py"}), (Words{"app.py"}));
  EXPECT_EQ(ours_, (Words{"run", "--rat"}));
}

}  // namespace
}  // namespace plimsoll::cli
