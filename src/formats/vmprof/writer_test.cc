// formats/vmprof/writer_test.cc: what is written is what is read.
#include "formats/vmprof/writer.h"

#include <gtest/gtest.h>

#include <map>

#include "formats/vmprof/periods.h"
#include "formats/vmprof/reader.h"
#include "formats/vmprof/testing.h"
#include "profile/testing.h"

namespace plimsoll::formats::vmprof {
namespace {

using profile::testing::draw_profile;
using profile::testing::kMillisecond;

profile::Profile back(const profile::Profile& profile) {
  Result<profile::Profile> read = vmprof::read(write(profile));
  EXPECT_TRUE(read.ok());
  return read.take();
}

// Samples and time of each stack, written as its functions and lines.
std::map<std::string, std::pair<std::size_t, std::int64_t>> totals(const profile::Profile& profile) {
  std::map<std::string, std::pair<std::size_t, std::int64_t>> totals;
  for (std::size_t row = 0; row < profile.samples.size(); ++row) {
    std::string text;
    for (const FrameId id : frames_of(profile.stacks, profile.samples.stack[row])) {
      const profile::Frame& frame = profile.frames[id];
      const profile::Function& function = profile.functions[frame.function];
      text += std::to_string(static_cast<int>(function.kind)) + std::string(profile.strings[function.name]) + "(" +
              std::string(profile.strings[function.file]) + ":" + std::to_string(function.first_line) + "@" +
              std::to_string(frame.line) + std::string(profile.strings[frame.trace]) + ");";
    }
    auto& total = totals[std::to_string(profile.threads[profile.samples.thread[row].index()].os_tid) + text];
    ++total.first;
    total.second += profile.samples.weight_ns[row];
  }
  return totals;
}

TEST(VmprofWriter, WritesWhatTheReaderReads) {
  // GIVEN all kinds of frames on two threads, an empty stack, memory
  profile::Profile profile = draw_profile(R"(
    main(app.py:3 def 1);work(lib/work.py:12 def 10);!memcpy(libc.so)  1
    main(app.py:3 def 1);work(lib/work.py:13 def 10)  1
    [truncated stack];work(lib/work.py:13 def 10)  1
    -  1
    worker | run(app.py:9 def 8)  1
  )");
  profile.counters.push_back({ProcessId{0}, "rss", "bytes", {0, 2 * kMillisecond}, {4096 * 1024, 8192 * 1024}});
  profile.set_meta("rate_hz", "1000");
  profile.set_meta("argv", "app.py --all");
  // WHEN they are written and read THEN stacks, lines, times and memory are the same
  const profile::Profile read = back(profile);
  EXPECT_EQ(totals(read), totals(profile));
  EXPECT_EQ(read.start_realtime_ns, profile.start_realtime_ns);
  EXPECT_EQ(read.end_ns, profile.end_ns);
  EXPECT_EQ(read.meta_value("argv"), "app.py --all");
  EXPECT_EQ(read.meta_value("rate_hz"), "1000");
  ASSERT_EQ(read.counters.size(), 1U);
  constexpr std::int64_t kBefore = 4096 * 1024;
  constexpr std::int64_t kAfter = 8192 * 1024;
  EXPECT_EQ(read.counters[0].value, (std::vector<std::int64_t>{kBefore, kAfter, kAfter, kAfter, kBefore}));
  EXPECT_TRUE(read.complete);
}

TEST(VmprofWriter, KeepsPyPysTraces) {
  // GIVEN a profile of PyPy WHEN it is read, written and read THEN the frames are the same
  const profile::Profile profile = vmprof::read(testing::draw_file(R"(
    layout unix64 990
    header 6 t pypy
    name 4 py:main:1:app.py
    name 8 py:f:2:app.py
    name 12 py:g:3:app.py
    stack 6 0x7f01 3 12 6 0x7f00 3 12 3 8 1 8 1 4
    stack 3 8 1 4
    stack 5 0 1 4
    end 1)"))
                                       .take();
  EXPECT_EQ(totals(back(profile)), totals(profile));
}

TEST(VmprofWriter, GivesEachStackItsShareOfPeriods) {
  // GIVEN weights from nothing to many periods WHEN they are written THEN each stack has its time to half a period, and
  // all together have the sum
  const profile::Profile profile = draw_profile(R"(
    a  0.4
    b  0.6
    a  0.4
    b  0.6
    a  0.4
    b  0.6
    c  0
    d  20.25
    e  0.2
  )");
  const Periods periods = count_periods(profile);
  const std::int64_t period = periods.period_us * 1000;
  std::map<std::uint32_t, std::int64_t> written;
  std::map<std::uint32_t, std::int64_t> exact;
  std::int64_t sum = 0;
  for (std::size_t row = 0; row < profile.samples.size(); ++row) {
    written[profile.samples.stack[row].index()] += periods.count[row] * period;
    exact[profile.samples.stack[row].index()] += profile.samples.weight_ns[row];
    sum += periods.count[row] * period;
  }
  for (const auto& [stack, ns] : exact) EXPECT_LE(std::abs(written[stack] - ns), period) << stack;
  EXPECT_LE(std::abs(sum - profile.sampled_ns()), period / 2);
}

TEST(VmprofWriter, KeepsEverySampleWhereAllWeighTheSame) {
  // GIVEN samples of 194 microseconds WHEN they are written THEN each is one, and the period is their weight
  profile::Profile profile = draw_profile("a 0.194\n b 0.194\n a 0.194\n a;b 0.194");
  profile.set_meta("rate_hz", "1000");
  const Periods periods = count_periods(profile);
  EXPECT_EQ(periods.period_us, 194);
  EXPECT_EQ(periods.count, (std::vector<std::uint32_t>{1, 1, 1, 1}));
}

TEST(VmprofWriter, WritesTheBytesOfTheFormat) {
  // GIVEN one sample of one function WHEN it is written THEN the file is that which the drawing of the format is
  profile::Profile profile = draw_profile("main(app.py:0 def 7)  1");
  profile.start_realtime_ns = 100'250'000'000;
  EXPECT_EQ(write(profile), testing::draw_file(R"(
    layout unix64 1000
    header 6 - cpython
    start 100.25
    meta os linux
    meta bits 64
    stack 2 t=100
    name 2 py:main:7:app.py
    end 100.251)"));
}

}  // namespace
}  // namespace plimsoll::formats::vmprof
