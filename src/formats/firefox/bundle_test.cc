// formats/firefox/bundle_test.cc: what is in the archive, and that it stays where it is unpacked.
#include "formats/firefox/bundle.h"

#include <gtest/gtest.h>

#include <map>

#include "base/chunk.h"
#include "formats/input.h"
#include "formats/zip.h"
#include "profile/testing.h"

#include <zlib.h>

namespace plimsoll::formats::firefox {
namespace {

std::uint32_t u16_at(std::string_view bytes, std::size_t at) { return u32_at(bytes, at - 2) >> 16U; }

std::string inflated(std::string_view stored, std::size_t size) {
  std::string plain(size, '\0');
  z_stream stream{};
  EXPECT_EQ(inflateInit2(&stream, -15), Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(stored.data()));
  stream.avail_in = static_cast<uInt>(stored.size());
  stream.next_out = reinterpret_cast<Bytef*>(plain.data());
  stream.avail_out = static_cast<uInt>(plain.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  inflateEnd(&stream);
  return plain;
}

// The files of an archive, by its list at the end.
std::map<std::string, std::string> files_of(const std::string& zip) {
  std::map<std::string, std::string> files;
  const std::size_t end = zip.rfind("PK\5\6");
  EXPECT_NE(end, std::string::npos);
  std::size_t at = u32_at(zip, end + 16);
  for (std::size_t left = u16_at(zip, end + 10); left > 0; --left) {
    EXPECT_EQ(zip.substr(at, 4), "PK\1\2");
    const std::size_t stored = u32_at(zip, at + 20), size = u32_at(zip, at + 24), name = u16_at(zip, at + 28);
    const std::size_t local = u32_at(zip, at + 42);
    const std::size_t data = local + 30 + u16_at(zip, local + 26) + u16_at(zip, local + 28);
    files[zip.substr(at + 46, name)] = inflated(std::string_view(zip).substr(data, stored), size);
    at += 46 + name + u16_at(zip, at + 30) + u16_at(zip, at + 32);
  }
  return files;
}

TEST(FirefoxBundle, HoldsTheProfileItsSourcesAndWhatToDo) {
  // GIVEN a profile with sources and a log WHEN it is bundled THEN they are there, and the profile weighs the same
  profile::Profile profile = profile::testing::draw_profile("main(app.py:3 def 1);work(app.py:12 def 10)  5 @6");
  profile.sources.push_back({"app.py", "def main():\n"});
  profile.attachments.push_back({"jitlog", std::string("\0\1", 2)});
  const Result<std::string> zip = write_bundle(profile, "app.plim");
  ASSERT_TRUE(zip.ok()) << zip.error().message;
  const std::map<std::string, std::string> files = files_of(zip.value());
  ASSERT_EQ(files.size(), 4U);
  EXPECT_EQ(files.at("sources/app.py"), "def main():\n");
  EXPECT_EQ(files.at("attached/jitlog").size(), 2U);
  EXPECT_NE(files.at("README.txt").find("app.plim"), std::string::npos);
  const Result<profile::Profile> read_back = read_profile(files.at("profile.json"));
  ASSERT_TRUE(read_back.ok());
  EXPECT_EQ(read_back.value().sampled_ns(), 5'000'000);
  EXPECT_EQ(read_back.value().sources.size(), 1U);
}

TEST(FirefoxBundle, StaysWhereItIsUnpacked) {
  // GIVEN files of any name WHEN they are bundled THEN no name leads out of the archive, and none comes twice
  profile::Profile profile = profile::testing::draw_profile("main  1");
  for (const char* file : {"../../etc/passwd", "/etc/passwd", "C:\\app\\..\\x.py", "<string>", "", "..", "a\nb"})
    profile.sources.push_back({file, "x"});
  const Result<std::string> zip = write_bundle(profile, "x");
  ASSERT_TRUE(zip.ok());
  std::vector<std::string> names;
  for (const auto& [name, text] : files_of(zip.value()))
    if (name.starts_with("sources/")) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"sources/C_/app/x.py", "sources/_", "sources/_.2", "sources/_string_",
                                             "sources/a_b", "sources/etc/passwd", "sources/etc/passwd.2"}));
}

}  // namespace
}  // namespace plimsoll::formats::firefox
