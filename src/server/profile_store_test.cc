#include "server/profile_store.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "base/directory_testing.h"
#include "base/write_file.h"

namespace plimsoll::server {
namespace {

class ProfileStoreTest : public plimsoll::testing::DirectoryTest {
 protected:
  void put(const std::string& name, const std::string& bytes = "main;work 10\n") { std::ofstream(path(name)) << bytes; }
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const StoredProfile& each : store().list()) all.push_back(each.name);
    return all;
  }
  [[nodiscard]] ProfileStore store() const { return ProfileStore(path("")); }
};

TEST_F(ProfileStoreTest, HasTheProfilesOfItsDirectoryAndNothingElse) {
  // GIVEN a profile among what is none, hidden, a link out of the directory, or a directory
  put("app.plim");
  put("notes.txt");
  put(".hidden.plim");
  put(".plim");
  ASSERT_EQ(::symlink("/etc/passwd", path("link.prof").c_str()), 0);
  ASSERT_EQ(::mkdir(path("directory.plim").c_str(), 0700), 0);
  // WHEN it is listed, or asked for by name, THEN only that is there
  EXPECT_EQ(names(), std::vector<std::string>{"app.plim"});
  EXPECT_TRUE(store().find("app.plim"));
  for (const char* name : {"notes.txt", ".hidden.plim", ".plim", "link.prof", "directory.plim", "", "..", "none.plim",
                           "../app.plim", "directory.plim/../app.plim"})
    EXPECT_FALSE(store().find(name)) << name;
  EXPECT_FALSE(store().find(std::string_view("app.plim\0.plim", 14)));
}

TEST_F(ProfileStoreTest, ListsTheLatestFirst) {
  for (const auto& [name, seconds] : {std::pair("b.plim", 20), {"a.plim", 10}, {"c.plim", 30}}) {
    put(name);
    const timespec times[2] = {{seconds, 0}, {seconds, 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, path(name).c_str(), times, 0), 0);
  }
  EXPECT_EQ(names(), (std::vector<std::string>{"c.plim", "b.plim", "a.plim"}));
}

TEST_F(ProfileStoreTest, KeepsWhatAnEntryIsSentUntilThatIsFrozen) {
  ProfileStore store(path(""));
  // GIVEN an entry of a program whose name is no file's
  const Result<std::string> entry = store.begin("/usr/bin/python3 -u /opt/../a<b>/.app;rm.py --all");
  ASSERT_TRUE(entry.ok());
  Result<Arriving> arriving = store.receive();
  ASSERT_TRUE(arriving.ok());
  EXPECT_TRUE(store.list().empty());
  // WHEN a profile has come THEN it has a name that its owner may read
  ASSERT_EQ(write_all(arriving.value().file.get(), "main;work 10\n"), 0);
  ASSERT_TRUE(store.keep(entry.value(), ProfileStore::Kind::kProfile, arriving.value().path).ok());
  const std::string name = "apprm.py-" + entry.value() + ".prof";
  EXPECT_EQ(names(), std::vector<std::string>{name});
  struct stat facts {};
  ASSERT_EQ(::stat(path(name).c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777U, 0600U);
  // AND after the end nothing more
  store.freeze(entry.value());
  EXPECT_FALSE(store.is_open(entry.value()));
  EXPECT_FALSE(store.keep(entry.value(), ProfileStore::Kind::kProfile, path(name)).ok());
}

TEST_F(ProfileStoreTest, TakesNothingThatIsNoProfile) {
  ProfileStore store(path(""));
  const Result<std::string> entry = store.begin("app.py");
  const Result<Arriving> arriving = store.receive();
  ASSERT_TRUE(entry.ok() && arriving.ok());
  ASSERT_EQ(write_all(arriving.value().file.get(),
                      "\x7f"
                      "ELF"),
            0);
  EXPECT_EQ(store.keep(entry.value(), ProfileStore::Kind::kProfile, arriving.value().path).error().kind,
            ErrorKind::kBadInput);
  EXPECT_TRUE(store.list().empty());
}

TEST_F(ProfileStoreTest, KeepsItsSecretToItself) {
  const Result<std::string> first = store().secret();
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(first.value().size(), 48U);
  EXPECT_EQ(store().secret().value(), first.value());
  // A secret that others can read is none, nor is what somebody else has written there.
  ASSERT_EQ(::chmod(path(".plimsoll-serve").c_str(), 0644), 0);
  const std::string second = store().secret().value();
  EXPECT_NE(second, first.value());
  std::ofstream(path(".plimsoll-serve")) << "guess me";
  EXPECT_NE(store().secret().value(), "guess me");
}

}  // namespace
}  // namespace plimsoll::server
