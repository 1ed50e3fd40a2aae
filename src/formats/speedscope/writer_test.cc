// formats/speedscope/writer_test.cc: drawn profiles as speedscope files.
#include "formats/speedscope/writer.h"

#include "formats/testing.h"
#include "profile/testing.h"

namespace plimsoll::formats::speedscope {
namespace {

using profile::testing::draw_profile;
using testing::int_at;
using testing::json_at;
using testing::parse_json;
using testing::size_at;
using testing::text_at;

TEST(Speedscope, WritesAStackOfFramesPerSampleWithItsCpuTime) {
  // GIVEN three samples
  const auto file = parse_json(write(draw_profile(R"(
    main(app.py:1 def 1);work(app.py:7 def 5)   1.5
    main(app.py:2 def 1)                        2
    main(app.py:1 def 1);work(app.py:7 def 5)   0.000001
  )")));
  // WHEN they are written THEN frames are functions, at the line of their definition
  EXPECT_EQ(json_at(file, "/shared/frames"),
            R"([{"name":"main","file":"app.py","line":1},{"name":"work","file":"app.py","line":5}])");
  // AND samples stand in order of time, weighed in nanoseconds
  EXPECT_EQ(json_at(file, "/profiles/0/samples"), "[[0,1],[0],[0,1]]");
  EXPECT_EQ(json_at(file, "/profiles/0/weights"), "[1500000,2000000,1]");
  EXPECT_EQ(text_at(file, "/profiles/0/unit"), "nanoseconds");
  EXPECT_EQ(text_at(file, "/profiles/0/type"), "sampled");
  EXPECT_EQ(int_at(file, "/profiles/0/startValue"), 0);
  EXPECT_EQ(int_at(file, "/profiles/0/endValue"), 3500001);
}

TEST(Speedscope, SaysWhatItIs) {
  // GIVEN a command line WHEN the profile is written THEN the file has the schema, the exporter and a name
  profile::Profile profile = draw_profile("main  1");
  profile.set_meta("argv", "python app.py");
  const auto file = parse_json(write(profile));
  EXPECT_EQ(text_at(file, "/$schema"), "https://www.speedscope.app/file-format-schema.json");
  EXPECT_EQ(text_at(file, "/exporter"), "plimsoll@" PLIMSOLL_VERSION);
  EXPECT_EQ(text_at(file, "/name"), "python app.py");
}

TEST(Speedscope, JoinsAdjacentSamplesOfTheSameFunctions) {
  // GIVEN adjacent samples at different lines of one function WHEN they are written THEN they are one sample
  const auto file = parse_json(write(draw_profile(R"(
    work(app.py:7)   1
    work(app.py:8)   2
    other            4
    work(app.py:7)   8
  )")));
  EXPECT_EQ(json_at(file, "/profiles/0/samples"), "[[0],[1],[0]]");
  EXPECT_EQ(json_at(file, "/profiles/0/weights"), "[3000000,4000000,8000000]");
}

TEST(Speedscope, GivesEachThreadAProfileAndOpensTheBusiest) {
  // GIVEN two threads with samples, and one without
  profile::Profile profile = draw_profile("main  1\n worker | run  5");
  profile::testing::draw_thread(profile, "idle");
  // WHEN they are written THEN there are two profiles, and the worker's is shown first
  const auto file = parse_json(write(profile));
  EXPECT_EQ(size_at(file, "/profiles"), 2U);
  EXPECT_EQ(text_at(file, "/profiles/0/name"), "MainThread");
  EXPECT_EQ(text_at(file, "/profiles/1/name"), "worker");
  EXPECT_EQ(int_at(file, "/activeProfileIndex"), 1);
}

TEST(Speedscope, NamesTheProcessWhereThereIsMoreThanOne) {
  // GIVEN two processes WHEN they are written THEN the names of their threads can be told apart
  const auto file = parse_json(write(draw_profile("main  1\n MainThread@200 | main  2")));
  EXPECT_EQ(text_at(file, "/profiles/0/name"), "process 100: MainThread");
  EXPECT_EQ(text_at(file, "/profiles/1/name"), "process 200: MainThread");
}

TEST(Speedscope, PutsSamplesIntoOrderOfTime) {
  // GIVEN samples recorded out of order WHEN they are written THEN the earlier one comes first
  const auto file = parse_json(write(draw_profile("late  1 @20\n early  2 @10")));
  EXPECT_EQ(json_at(file, "/profiles/0/samples"), "[[1],[0]]");
  EXPECT_EQ(json_at(file, "/profiles/0/weights"), "[2000000,1000000]");
}

TEST(Speedscope, KeepsTheTimeOfTheEmptyStack) {
  // GIVEN a sample without frames WHEN it is written THEN a frame stands for it
  const auto file = parse_json(write(draw_profile("main  1\n -  2")));
  EXPECT_EQ(json_at(file, "/shared/frames/1"), R"({"name":"[no stack]"})");
  EXPECT_EQ(json_at(file, "/profiles/0/samples"), "[[0],[1]]");
}

TEST(Speedscope, HasAProfileEvenWithoutSamples) {
  // GIVEN no samples WHEN they are written THEN the file can still be opened
  const auto file = parse_json(write(draw_profile("")));
  EXPECT_EQ(size_at(file, "/profiles"), 1U);
  EXPECT_EQ(size_at(file, "/profiles/0/samples"), 0U);
}

}  // namespace
}  // namespace plimsoll::formats::speedscope
