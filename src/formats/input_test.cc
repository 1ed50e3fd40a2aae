// formats/input_test.cc: from bytes to a reader.
#include "formats/input.h"

#include <gtest/gtest.h>

#include "formats/gzip.h"
#include "formats/vmprof/testing.h"
#include "profile/plim_writer.h"
#include "profile/testing.h"

namespace plimsoll::formats {
namespace {

std::string plim_bytes() {
  return profile::PlimEncoder::file_header() +
         profile::PlimEncoder(1).encode(profile::testing::draw_profile("main  5"));
}
std::string vmprof_bytes() {
  return vmprof::testing::draw_file("layout unix64 1000\nheader 6 - cpython\nstack 16\nstack 16\nend 1");
}

TEST(Input, IsRecognisedByItsBytes) {
  // GIVEN files of each format, plain and compressed WHEN they are read THEN exactly one reader takes them
  for (const std::string& bytes : {plim_bytes(), vmprof_bytes()}) {
    int takers = 0;
    for (const Reader& reader : readers()) takers += reader.recognises(bytes) ? 1 : 0;
    EXPECT_EQ(takers, 1);
    for (const std::string& stored : {bytes, gzip(bytes).value()}) {
      const Result<profile::Profile> profile = read_profile(stored);
      ASSERT_TRUE(profile.ok()) << profile.error().message;
      EXPECT_GT(profile.value().samples.size(), 0U);
      EXPECT_TRUE(profile.value().complete);
    }
  }
}

TEST(Input, ThatIsACutArchiveIsReadAsFarAsItGoes) {
  // GIVEN a compressed profile without its last bytes WHEN it is read THEN it is not complete
  std::string stored = gzip(vmprof_bytes()).value();
  stored.resize(stored.size() - 6);
  const Result<profile::Profile> profile = read_profile(stored);
  ASSERT_TRUE(profile.ok());
  EXPECT_FALSE(profile.value().complete);
}

TEST(Input, ThatIsNoProfileIsAnErrorThatListsTheFormats) {
  // GIVEN bytes of something else WHEN they are read THEN the error is one of input
  for (const std::string& bytes : {std::string("#!/bin/sh\n"), std::string(), gzip("hello").value()}) {
    const Result<profile::Profile> profile = read_profile(bytes);
    ASSERT_FALSE(profile.ok());
    EXPECT_EQ(profile.error().kind, ErrorKind::kBadInput);
    EXPECT_NE(profile.error().message.find("vmprof"), std::string::npos) << profile.error().message;
    EXPECT_EQ(profile.error().message.starts_with("empty"), bytes.empty()) << profile.error().message;
  }
}

TEST(Input, OfCollapsedStacksIsATimeThatIsSpent) {
  // GIVEN a difference of two files, and numbers that are no microseconds of anybody's
  for (const std::string_view bytes :
       {"main;f 5\nmain;g -3\n", "main;f 9000000000000000000\nmain;g 9000000000000000000\n"}) {
    const Result<profile::Profile> profile = read_profile(bytes);
    ASSERT_FALSE(profile.ok());
    EXPECT_EQ(profile.error().kind, ErrorKind::kBadInput);
  }
}

TEST(Input, ThatIsKnownAndCannotBeReadSaysWhatToDo) {
  // GIVEN an old file of memray, one of perf and others WHEN they are read THEN the error names the tool
  const auto reason = [](std::string bytes) {
    bytes.resize(100);
    const Result<profile::Profile> profile = read_profile(bytes);
    EXPECT_EQ(profile.ok() ? ErrorKind::kSystem : profile.error().kind, ErrorKind::kUnsupported);
    return profile.ok() ? "" : profile.error().message;
  };
  EXPECT_NE(reason(std::string("memray\0\x0b", 8)).find("memray table"), std::string::npos);
  EXPECT_NE(reason("\x89PHEAP\r\n").find("plimsoll heap show"), std::string::npos);
  EXPECT_NE(reason("{\xa9\x03\xfa\x0c/tmp/app.py").find("python -m pstats FILE"), std::string::npos);
  EXPECT_NE(reason("\xfb)\x03\xda\x01~").find("python -m pstats FILE"), std::string::npos);
  EXPECT_NE(reason("\n<!DOCTYPE html>").find("a page"), std::string::npos);
  EXPECT_NE(reason(R"({"type":"meta","v":0,"run_id":"5f","sample_interval_usec":1000,"mode":"wall"})").find("--binary"),
            std::string::npos);
  EXPECT_NE(reason("PERFILE2").find("perf script -i FILE"), std::string::npos);
  EXPECT_NE(reason(std::string(64, '\0') + "\x28\xB5\x2F\xFD").find("never finished"), std::string::npos);
}

TEST(Input, NamesTheFileThatCannotBeRead) {
  // GIVEN a path where nothing is WHEN it is read THEN the error names it
  const Result<profile::Profile> profile = read_profile_file("/nowhere/app.prof");
  ASSERT_FALSE(profile.ok());
  EXPECT_EQ(profile.error().message, "cannot read /nowhere/app.prof: No such file or directory");
}

}  // namespace
}  // namespace plimsoll::formats
