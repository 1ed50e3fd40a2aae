// formats/labels_test.cc: names of threads, and texts cut to size.
#include "formats/labels.h"

#include <gtest/gtest.h>

#include "profile/testing.h"

namespace plimsoll::formats {
namespace {

using profile::testing::draw_profile;
using Titles = std::vector<std::string>;

TEST(ThreadTitles, AreTheNamesWhereTheyAreClear) {
  // GIVEN threads of different names, and of one name in two processes WHEN titles are made THEN they are the names
  EXPECT_EQ(thread_titles(draw_profile("f  1\n pool | f  1\n pool@200 | f  1")),
            (Titles{"MainThread", "pool", "pool"}));
}

TEST(ThreadTitles, CarryTheKernelIdWhereNamesDoNotTell) {
  // GIVEN two threads of one name in a process, and one without a name
  profile::Profile profile = draw_profile("f  1\n a | f  1\n b | f  1\n c | f  1");
  profile.threads[2].name = "a";
  profile.threads[3].name = "";
  // WHEN titles are made THEN each is its own
  EXPECT_EQ(thread_titles(profile), (Titles{"MainThread", "a (tid 101)", "a (tid 102)", "thread (tid 103)"}));
}

TEST(CommandTitle, LeavesOutTheDirectoriesOfTheProgram) {
  // GIVEN command lines WHEN they are made titles THEN the program has its plain name, and the arguments stay
  EXPECT_EQ(command_title("/usr/bin/python3 /srv/app.py"), "python3 /srv/app.py");
  EXPECT_EQ(command_title("app"), "app");
  EXPECT_EQ(command_title(""), "");
  EXPECT_EQ(command_title(std::string(200, 'x')).size(), 103U);
}

TEST(Shortened, CutsBetweenCharacters) {
  // GIVEN a text of two-byte characters WHEN it is cut THEN none is halved
  EXPECT_EQ(shortened("ééé", 2), "éé...");
  EXPECT_EQ(shortened("ééé", 3), "ééé");
  EXPECT_EQ(shortened("", 3), "");
}

TEST(ValidUtf8, KeepsWhatIsValid) {
  // GIVEN texts of one to four bytes a character WHEN they are cleaned THEN nothing changes
  EXPECT_EQ(valid_utf8("aé漢😀"), "aé漢😀");
}

TEST(ValidUtf8, ReplacesEachStrayByte) {
  // GIVEN a character cut short, and code points beyond Unicode WHEN they are cleaned THEN each byte is U+FFFD
  const std::string mark = "\xef\xbf\xbd";
  EXPECT_EQ(valid_utf8("a\xe6\xbc"), "a" + mark + mark);
  EXPECT_EQ(valid_utf8("\xf5x\x80"), mark + "x" + mark);
  EXPECT_EQ(valid_utf8("\xf4\x90\x80\x80"), mark + mark + mark + mark);
}

}  // namespace
}  // namespace plimsoll::formats
