// cli/python_command_test.cc: command lines in a directory of their own, and commands on a PATH of their own.
#include "cli/python_command.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace plimsoll::cli {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

class PythonCommands : public testing::Test {
 protected:
  void SetUp() override {
    path_ = std::getenv("PATH");
    before_ = fs::current_path();
    directory_ = fs::path(testing::TempDir()) / testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(directory_);
    fs::create_directories(directory_ / "bin");
    fs::create_directories(directory_ / "here");
    fs::current_path(directory_ / "here");
    ::setenv("PATH", bin("").c_str(), 1);
    command("python3",
            "\x7f"
            "ELF");
  }
  void TearDown() override {
    ::setenv("PATH", path_.c_str(), 1);
    fs::current_path(before_);
    fs::remove_all(directory_);
  }

  [[nodiscard]] std::string bin(const std::string& name) const { return (directory_ / "bin" / name).string(); }
  void command(const std::string& name, const std::string& text) {
    std::ofstream(bin(name)) << text;
    fs::permissions(bin(name), fs::perms::owner_all);
  }
  // What would be run.
  static Words argv(const Words& words, const std::string& asked = "python3") {
    const Result<PythonCommand> found = find_python_command(asked, words);
    EXPECT_TRUE(found.ok()) << found.error().message;
    return found.ok() ? found.value().argv() : Words{};
  }
  static std::string problem(const Words& words, const std::string& asked = {}) {
    const Result<PythonCommand> found = find_python_command(asked, words);
    return found.ok() ? "" : found.error().message;
  }

  std::string path_;
  fs::path before_;
  fs::path directory_;
};

TEST_F(PythonCommands, AreProgramsForPython) {
  std::ofstream("app.py") << "print()\n";
  const std::string python = bin("python3");
  EXPECT_EQ(argv({"app.py", "--port", "80"}), (Words{python, "app.py", "--port", "80"}));
  EXPECT_EQ(argv({"-m", "pytest"}), (Words{python, "-m", "pytest"}));
  EXPECT_EQ(argv({"-"}), (Words{python, "-"}));
  // So is what a shell makes of <(...), which can be read only once.
  ASSERT_EQ(::mkfifo("pipe", 0600), 0);
  EXPECT_EQ(argv({"pipe"}), (Words{python, "pipe"}));
  // A directory is one if Python can run it.
  fs::create_directories("package");
  EXPECT_NE(problem({"package"}), "");
  std::ofstream("package/__main__.py") << "print()\n";
  EXPECT_EQ(argv({"package"}), (Words{python, "package"}));
}

TEST_F(PythonCommands, MayBeginWithTheInterpreter) {
  command("python3.12",
          "\x7f"
          "ELF");
  fs::create_symlink(bin("python3.12"), bin("py"));
  for (const char* name : {"python3.12", "py"}) {
    const Result<PythonCommand> found = find_python_command("", {name, "-u", "-X", "dev", "app.py", "-u"});
    ASSERT_TRUE(found.ok()) << found.error().message;
    EXPECT_EQ(found.value().interpreter, bin(name));
    EXPECT_EQ(found.value().options, (Words{"-u", "-X", "dev"}));
    EXPECT_EQ(found.value().program, (Words{"app.py", "-u"}));
  }
  EXPECT_EQ(argv({bin("python3.12"), "-m", "app"}, ""), (Words{bin("python3.12"), "-m", "app"}));
  // One of pyenv's is a script; a program here may be called like one.
  command("python3.9", "#!/usr/bin/env bash\n");
  EXPECT_EQ(argv({"python3.9", "app.py"}, ""), (Words{bin("python3.9"), "app.py"}));
  std::ofstream("python") << "print()\n";
  EXPECT_EQ(argv({"python", "x"}), (Words{bin("python3"), "python", "x"}));
  EXPECT_NE(problem({"python3.12"}).find("which program?"), std::string::npos);
  EXPECT_NE(problem({"python3.12", "-X"}).find("which program?"), std::string::npos);
  EXPECT_NE(problem({"python3.12", "app.py"}, "python3").find("which interpreter?"), std::string::npos);
}

TEST_F(PythonCommands, MayBeScriptsThatNameTheirInterpreter) {
  command("pypy3",
          "\x7f"
          "ELF");
  const std::string pypy = bin("pypy3");
  command("plain", "#!" + pypy + " -Es\nimport sys\n");
  command("spaced", "#! " + pypy + "  -W error -X dev \nimport sys\n");
  command("by-env", "#!/usr/bin/env -S pypy3 -u\n");
  command("long", "#!/bin/sh\n'''exec' \"" + pypy + "\" \"$0\" \"$@\"\n' '''\n");
  EXPECT_EQ(argv({"plain", "x"}, ""), (Words{pypy, "-Es", bin("plain"), "x"}));
  // (The kernel gives what there is beside the program as one word, whatever Python makes of that.)
  EXPECT_EQ(argv({"spaced"}, ""), (Words{pypy, "-W error -X dev", bin("spaced")}));
  EXPECT_EQ(argv({"by-env"}, ""), (Words{pypy, "-u", bin("by-env")}));
  EXPECT_EQ(argv({"long", "-x"}, ""), (Words{pypy, bin("long"), "-x"}));
  // The user may have chosen another one.
  EXPECT_EQ(argv({"long"}), (Words{bin("python3"), bin("long")}));
}

TEST_F(PythonCommands, OfProgramsWithPythonInThemAreTheirOwn) {
  command("editor",
          "\x7f"
          "ELF");
  EXPECT_EQ(argv({"scene.blend", "-x"}, "editor"), (Words{bin("editor"), "scene.blend", "-x"}));
}

TEST_F(PythonCommands, ThatAreNoneSaySo) {
  command("tool",
          "\x7f"
          "ELF");
  command("script", "#!/bin/sh\necho\n");
  command("text", "hello");
  EXPECT_EQ(problem({"nothing.py"}), "there is no file 'nothing.py', and no command of that name");
  EXPECT_EQ(problem({"nothing.py"}, "no-such-python"), "no Python interpreter 'no-such-python'");
  EXPECT_NE(problem({"tool"}).find("machine code"), std::string::npos);
  EXPECT_NE(problem({"script"}).find("is no program of Python"), std::string::npos);
  EXPECT_NE(problem({"text"}).find("is no program of Python"), std::string::npos);
}

TEST_F(PythonCommands, TellWhatKeepsPythonFromImportingUs) {
  const auto option = [](const Words& words) {
    const Result<PythonCommand> found = find_python_command({}, words);
    return found.ok() ? found.value().isolating_option() : found.error().message;
  };
  std::ofstream("app.py") << "print()";
  EXPECT_EQ(option({"python3", "-I", "app.py"}), "-I");
  EXPECT_EQ(option({"python3", "-u", "-sE", "app.py"}), "-sE");
  EXPECT_EQ(option({"python3", "-S", "-m", "app"}), "-S");
  EXPECT_EQ(option({"-I", "app.py"}), "-I");
  EXPECT_EQ(option({"python3", "-WError", "-X", "IES", "app.py", "-I"}), "");
  EXPECT_EQ(option({"app.py", "-E"}), "");
}

TEST_F(PythonCommands, SayWhatADirectoryLacks) {
  fs::create_directory("package");
  EXPECT_NE(problem({"package"}).find("no __main__.py"), std::string::npos) << problem({"package"});
}

}  // namespace
}  // namespace plimsoll::cli
