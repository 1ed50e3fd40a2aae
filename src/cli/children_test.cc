// cli/children_test.cc: profiles of child processes, found beside the program's and shown with it.
#include "cli/children.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/testing.h"
#include "profile/testing.h"

namespace plimsoll::cli {
namespace {

using testing::FakeConsole;

// A directory with files of these names, and what is in them by the console.
class Children : public ::testing::Test {
 protected:
  Children() { std::filesystem::create_directories(directory_); }
  ~Children() override { std::filesystem::remove_all(directory_); }

  void add(const std::string& name, const char* drawing) {
    const std::string path = directory_ + "/" + name;
    std::ofstream(path) << name;
    console_.files[path] = [drawing] { return profile::testing::draw_profile(drawing); };
  }
  int show(const std::string& name) {
    return testing::run_words(make_show(), {"show", directory_ + "/" + name, "flat", "--children"}, console_);
  }
  // How often a text was printed.
  [[nodiscard]] static std::size_t count(const std::string& text, std::string_view part) {
    std::size_t found = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
    return found;
  }

  const std::string directory_ = ::testing::TempDir() + "children [1]." + std::to_string(::getpid());
  FakeConsole console_;
};

TEST_F(Children, AreThoseWithAProcessNumberInTheirNames) {
  for (const char* name :
       {"app.plim", "app.12.plim", "app.7.plim", "app.7.plim.old", "app.x.plim", "app.2026-backup.plim",
        "app.2026-11-29.plim", "app.12.7x.plim", "other.12.plim", "app.12-2.plim"})
    add(name, "main 1");
  EXPECT_EQ(profiles_of_children(directory_ + "/app.plim"),
            (std::vector<std::string>{directory_ + "/app.12-2.plim", directory_ + "/app.12.plim",
                                      directory_ + "/app.7.plim"}));
  EXPECT_EQ(profiles_of_children(directory_ + "/app.plim", ".old"),
            std::vector<std::string>{directory_ + "/app.7.plim"});
}

TEST_F(Children, AreShownWithTheirParentAsOne) {
  add("app.plim", "main(app.py:1 def 1);fork(app.py:2 def 2)  10");
  add("app.12.plim", "worker@12 | work(app.py:9 def 9)  20");
  add("app.13.plim", "worker@13 | work(app.py:9 def 9)  20");
  EXPECT_EQ(show("app.plim"), kFine);
  EXPECT_NE(console_.out.find("CPU time 50.0 ms"), std::string::npos) << console_.out;
  EXPECT_EQ(count(console_.out, "  work "), 1U) << "one line for what two of them did: " << console_.out;
}

TEST_F(Children, AreOfTheProcessThatTheirNamesTell) {
  // GIVEN a child, and the recording of another program with a number in its name
  add("app.plim", "main(app.py:1 def 1);fork(app.py:2 def 2)  10");
  add("app.12.plim", "worker@12 | work(app.py:9 def 9)  20");
  add("app.2.plim", "worker@555 | work(app.py:9 def 9)  1000");
  // WHEN they are shown as one THEN that one is not in it, which is said
  EXPECT_EQ(show("app.plim"), kFine);
  EXPECT_NE(console_.out.find("CPU time 30.0 ms"), std::string::npos) << console_.out;
  EXPECT_NE(console_.err.find("left out 1 profile of another process than the name says"), std::string::npos)
      << console_.err;
  EXPECT_EQ(pid_of_child("/srv/app.v2/app.12.plim"), 12);
  EXPECT_EQ(pid_of_child("/srv/app.12"), 12);
  EXPECT_EQ(pid_of_child("/srv/app.12-2.plim"), 12) << "what it became by exec";
}

TEST_F(Children, OfAnEarlierRecordingOfThatNameAreLeftOut) {
  // GIVEN a child of the recording, and one that began before it
  add("app.plim", "main(app.py:1 def 1);fork(app.py:2 def 2)  10");
  add("app.12.plim", "worker@12 | work(app.py:9 def 9)  20");
  add("app.13.plim", "worker@13 | work(app.py:9 def 9)  20");
  console_.files[directory_ + "/app.13.plim"] = [] {
    profile::Profile earlier = profile::testing::draw_profile("worker@13 | work(app.py:9 def 9)  20");
    earlier.start_monotonic_ns -= 1;
    return earlier;
  };
  // WHEN they are shown as one THEN that one is not in it, which is said
  EXPECT_EQ(show("app.plim"), kFine);
  EXPECT_NE(console_.out.find("CPU time 30.0 ms"), std::string::npos) << console_.out;
  EXPECT_NE(console_.err.find("left out 1 profile of an earlier recording of that name"), std::string::npos)
      << console_.err;
}

TEST_F(Children, OfARecordingWereWrittenSinceItBegan) {
  add("app.12.plim", "main 1");
  add("app.13.plim", "main 1");
  using std::filesystem::last_write_time;
  last_write_time(directory_ + "/app.12.plim", last_write_time(directory_ + "/app.13.plim") - std::chrono::hours(1));
  struct stat written {};
  ASSERT_EQ(::stat((directory_ + "/app.13.plim").c_str(), &written), 0);
  EXPECT_EQ(
      profiles_of_children_since(directory_ + "/app.plim", (written.st_mtim.tv_sec - 60) * std::int64_t{1'000'000'000}),
      std::vector<std::string>{directory_ + "/app.13.plim"});
}

TEST_F(Children, ThatCannotBeReadAreLeftOutAndNamed) {
  add("app.plim", "main(app.py:1 def 1)  10");
  std::ofstream(directory_ + "/app.12.plim") << "no profile";
  EXPECT_EQ(show("app.plim"), kFine);
  EXPECT_NE(console_.err.find("left out " + directory_ + "/app.12.plim: "), std::string::npos) << console_.err;
}

TEST_F(Children, ThatAreNotThereAreMissed) {
  add("app.plim", "main(app.py:1 def 1)  10");
  EXPECT_EQ(show("app.plim"), kFine);
  EXPECT_NE(console_.err.find("no child process has a profile beside"), std::string::npos) << console_.err;
}

TEST_F(Children, MayBeInTheProfileItself) {
  // GIVEN one of several processes, as attach --children makes it WHEN they are asked for THEN they are not missed
  add("app.plim", "main@1 | main(app.py:1 def 1)  10\nworker@12 | work(app.py:9 def 9)  20");
  EXPECT_EQ(show("app.plim"), kFine);
  EXPECT_NE(console_.out.find("CPU time 30.0 ms"), std::string::npos) << console_.out;
  EXPECT_NE(console_.err.find("app.plim has 2 processes in itself"), std::string::npos) << console_.err;
}

TEST_F(Children, AreNotBesideStandardInput) {
  EXPECT_EQ(testing::run_words(make_show(), {"show", "-", "--children"}, console_), kUsage);
}

}  // namespace
}  // namespace plimsoll::cli
