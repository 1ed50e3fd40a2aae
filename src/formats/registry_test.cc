// formats/registry_test.cc: from a name or a path to a writer.
#include "formats/registry.h"

#include "formats/testing.h"
#include "profile/testing.h"

namespace plimsoll::formats {
namespace {

std::string found(std::string_view name, std::string_view path) {
  const Result<Writer> writer = find_writer(name, path);
  return writer.ok() ? std::string(writer.value().name) : "error: " + writer.error().message;
}

TEST(Registry, FindsEachWriterByItsName) {
  // GIVEN the names of --help WHEN they are asked for THEN they are found, whatever the path
  for (const Writer& writer : writers()) EXPECT_EQ(found(writer.name, "out.xyz"), writer.name);
}

TEST(Registry, FindsEachWriterByTheEndingItShows) {
  // GIVEN the endings of --help WHEN a file has them THEN the writer is found
  for (const Writer& writer : writers()) EXPECT_EQ(found("", "out" + std::string(writer.extension)), writer.name);
}

TEST(Registry, KnowsTheEndingsThatViewersUse) {
  // GIVEN the file names that people give WHEN no format is named THEN it is the one that they mean
  EXPECT_EQ(found("", "a/b.speedscope.json.gz"), "speedscope");
  EXPECT_EQ(found("", "out.SPEEDSCOPE.JSON"), "speedscope");
  EXPECT_EQ(found("", "out.folded"), "collapsed");
  EXPECT_EQ(found("", "app.html"), "flamegraph");
  EXPECT_EQ(found("", "out.folded.txt"), "collapsed");
  EXPECT_EQ(found("", "out.collapsedstack.txt"), "collapsed");
  EXPECT_EQ(found("", "out.firefox.json"), "firefox");
  EXPECT_EQ(found("", "profile.json"), "firefox");
  EXPECT_EQ(found("", "app.JSLB.gz"), "jslb");
  EXPECT_EQ(found("", "dir/profile.json.gz"), "firefox");
  EXPECT_EQ(found("", "out.pb"), "pprof");
  EXPECT_EQ(found("", "out.pprof.gz"), "pprof");
}

TEST(Registry, DoesNotGuessBetweenTwoJsonFormats) {
  // GIVEN a plain .json file WHEN no format is named THEN the error says how to choose
  const Result<Writer> writer = find_writer("", "out.json");
  ASSERT_FALSE(writer.ok());
  EXPECT_EQ(writer.error().kind, ErrorKind::kUsage);
  EXPECT_NE(writer.error().message.find("-f speedscope or -f firefox"), std::string::npos) << writer.error().message;
  EXPECT_FALSE(find_writer("", "my_profile.json").ok());
  // (in Python it is asked for otherwise)
  EXPECT_NE(find_writer("", "out.json", "format=").error().message.find("give format=speedscope or format=firefox"),
            std::string::npos);
}

TEST(Registry, ListsTheFormatsWhenNoneFits) {
  // GIVEN a name or an ending that is not known WHEN it is asked for THEN the error lists what is
  EXPECT_EQ(found("perfetto", "x"),
            "error: there is no format \"perfetto\"; the formats are flamegraph, speedscope, firefox, jslb, pprof, "
            "pprof-heap, "
            "collapsed, "
            "vmprof");
  EXPECT_EQ(found("", "out"),
            "error: the name \"out\" does not say which format to write; give one with -f, or end the name with "
            ".html (flamegraph), .speedscope.json (speedscope), .firefox.json.gz (firefox), .jslb.gz (jslb), .pb.gz "
            "(pprof), .heap.gz "
            "(pprof-heap), "
            ".collapsed (collapsed), .vmprof (vmprof)");
}

TEST(Registry, KnowsWhatAFormatHasNothingOf) {
  const Writer pprof = find_writer("pprof", "").take(), heap = find_writer("pprof-heap", "").take(),
               firefox = find_writer("firefox", "").take();
  profile::Profile profile = profile::testing::draw_profile("main  5");
  EXPECT_EQ(nothing_to_write(pprof, profile), "");
  EXPECT_EQ(nothing_to_write(heap, profile), "holds no allocations");
  profile.samples.clear();
  EXPECT_EQ(nothing_to_write(pprof, profile), "holds no samples");
  // (A recording of allocations in which there were none.)
  profile.allocation_distance = 1;
  EXPECT_EQ(nothing_to_write(firefox, profile), "holds no samples");
  EXPECT_EQ(nothing_to_write(heap, profile), "holds no allocations");
  profile.allocations.emplace_back();
  EXPECT_EQ(nothing_to_write(pprof, profile), "holds no samples");
  EXPECT_EQ(nothing_to_write(firefox, profile), "");
  EXPECT_EQ(nothing_to_write(heap, profile), "");
}

TEST(WriteAs, CompressesWhatIsCalledGz) {
  // GIVEN a format that is text WHEN the path ends with .gz THEN the bytes are gzipped, once
  profile::Profile profile = profile::testing::draw_profile("main  5");
  const Writer collapsed = find_writer("collapsed", "").take();
  EXPECT_EQ(write_as(collapsed, profile, "out.collapsed").value(), "main 5000\n");
  EXPECT_EQ(testing::gunzip(write_as(collapsed, profile, "out.collapsed.gz").value()), "main 5000\n");
  // AND pprof, which is compressed by itself, is not compressed again
  const Writer pprof = find_writer("pprof", "").take();
  EXPECT_EQ(write_as(pprof, profile, "out.pb.gz").value(), pprof.write(profile).value());
}

}  // namespace
}  // namespace plimsoll::formats
