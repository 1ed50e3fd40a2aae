// cli/app_test.cc: command lines, right and wrong.
#include "cli/app.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <new>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/testing.h"

namespace plimsoll::cli {
namespace {

using testing::FakeConsole;

// A command that does what a test tells it to.
class Echo final : public Command {
 public:
  explicit Echo(Result<int> result) : result_(std::move(result)) {}
  [[nodiscard]] std::string_view name() const override { return "echo"; }
  [[nodiscard]] std::string_view summary() const override { return "Say it again"; }
  [[nodiscard]] std::string examples() const override { return "  plimsoll echo WORD"; }
  void add_arguments(CLI::App& app) override { app.add_option("--word", word_); }
  Result<int> run(Console& console) override {
    PLIMSOLL_TRY(console.print(word_));
    return result_;
  }

 private:
  Result<int> result_;
  std::string word_;
};

// A command that needs more memory than there is.
class Greedy final : public Command {
 public:
  [[nodiscard]] std::string_view name() const override { return "greedy"; }
  [[nodiscard]] std::string_view summary() const override { return "Take all"; }
  [[nodiscard]] std::string examples() const override { return "  plimsoll greedy"; }
  void add_arguments(CLI::App&) override {}
  Result<int> run(Console&) override { throw std::bad_alloc(); }
};

int run_all(std::vector<std::string> words, Console& console) {
  Commands commands;
  commands.push_back(make_show());
  commands.push_back(make_info());
  commands.push_back(make_convert());
  return run_app(commands, std::move(words), console);
}

TEST(App, ShowsTheVersion) {
  FakeConsole console;
  EXPECT_EQ(run_all({"--version"}, console), kFine);
  EXPECT_EQ(console.out, "plimsoll " PLIMSOLL_VERSION "\n");
}

TEST(App, SaysThatThereIsNoMemory) {
  Commands commands;
  commands.push_back(std::make_unique<Greedy>());
  FakeConsole console;
  EXPECT_EQ(run_app(commands, {"greedy"}, console), kFailed);
  EXPECT_NE(console.err.find("not enough memory"), std::string::npos) << console.err;
}

TEST(App, ListsItsCommandsInHelp) {
  FakeConsole console;
  EXPECT_EQ(run_all({"--help"}, console), kFine);
  for (const char* name : {"show", "info", "convert", "Exit codes: 0 fine, 1 failed", "2 usage"})
    EXPECT_NE(console.out.find(name), std::string::npos) << console.out;
}

TEST(App, HasExamplesForEveryCommand) {
  for (const char* name : {"show", "info", "convert"}) {
    FakeConsole console;
    EXPECT_EQ(run_all({name, "--help"}, console), kFine);
    EXPECT_NE(console.out.find(std::string("Examples:\n  plimsoll ") + name), std::string::npos) << console.out;
    FakeConsole other;
    EXPECT_EQ(run_all({"help", name}, other), kFine);
    EXPECT_EQ(other.out, console.out);
  }
}

TEST(App, SuggestsACommandForASlip) {
  FakeConsole console;
  EXPECT_EQ(run_all({"shwo", "app.plim"}, console), kUsage);
  EXPECT_EQ(console.err, "there is no command \"shwo\" (did you mean \"show\"?); there are show, info, convert\n");
  EXPECT_EQ(console.out, "");
}

TEST(App, TellsWhereACommandBelongs) {
  FakeConsole console;
  EXPECT_EQ(run_all({"app.plim"}, console), kUsage);
  EXPECT_EQ(console.err, "a command comes first: plimsoll show app.plim\n");
}

TEST(App, SuggestsAnOptionForASlip) {
  FakeConsole console;
  EXPECT_EQ(run_all({"show", "app.plim", "--min-precent", "3"}, console), kUsage);
  EXPECT_EQ(console.err,
            "there is no option \"--min-precent\"; did you mean \"--min-percent\"? (plimsoll show --help)\n");
}

TEST(App, NamesTheHelpOfAVerbOfAVerb) {
  const auto run_heap = [](std::vector<std::string> words, Console& console) {
    Commands commands;
    commands.push_back(make_heap());
    return run_app(commands, std::move(words), console);
  };
  FakeConsole console;
  EXPECT_EQ(run_heap({"heap", "show", "app.heap", "--dept", "3"}, console), kUsage);
  EXPECT_EQ(console.err, "there is no option \"--dept\"; did you mean \"--depth\"? (plimsoll heap show --help)\n");
  console.err.clear();
  EXPECT_EQ(run_heap({"heap", "diff", "a.heap"}, console), kUsage);
  EXPECT_EQ(console.err, "AFTER is required (plimsoll heap diff --help)\n");
}

TEST(App, RefusesAnArgumentTooMany) {
  FakeConsole console;
  EXPECT_EQ(run_all({"info", "a.plim", "b.plim"}, console), kUsage);
  EXPECT_EQ(console.err, "\"b.plim\" is one argument too many (plimsoll info --help)\n");
}

TEST(App, NamesAValueThatIsNoNumber) {
  FakeConsole console;
  EXPECT_EQ(run_all({"show", "app.plim", "--limit", "x"}, console), kUsage);
  EXPECT_EQ(console.err, "--limit: \"x\" is no number that it takes (plimsoll show --help)\n");
}

TEST(App, NamesAnOptionBeforeTheCommand) {
  FakeConsole console;
  EXPECT_EQ(run_all({"--foo"}, console), kUsage);
  EXPECT_EQ(console.err, "there is no option \"--foo\" (plimsoll --help)\n");
}

TEST(App, NamesAMissingArgument) {
  FakeConsole console;
  EXPECT_EQ(run_all({"show"}, console), kUsage);
  EXPECT_NE(console.err.find("FILE is required"), std::string::npos) << console.err;
}

TEST(App, ShowsHelpWithoutACommand) {
  FakeConsole console;
  EXPECT_EQ(run_all({}, console), kUsage);
  EXPECT_NE(console.err.find("convert"), std::string::npos);
}

TEST(App, PassesACommandsExitCodeThrough) {
  FakeConsole console;
  EXPECT_EQ(testing::run_words(std::make_unique<Echo>(139), {"echo", "--word", "hello"}, console), 139);
  EXPECT_EQ(console.out, "hello");
}

TEST(App, GivesEveryKindOfErrorItsExitCode) {
  const std::pair<ErrorKind, int> codes[] = {{ErrorKind::kUsage, 2},
                                             {ErrorKind::kPermission, 3},
                                             {ErrorKind::kBadInput, 5},
                                             {ErrorKind::kUnsupported, 1},
                                             {ErrorKind::kSystem, 1}};
  for (const auto& [kind, code] : codes) {
    FakeConsole console;
    EXPECT_EQ(testing::run_words(std::make_unique<Echo>(Error{kind, "words"}), {"echo"}, console), code);
    EXPECT_EQ(console.err, "words\n");
  }
}

}  // namespace
}  // namespace plimsoll::cli
