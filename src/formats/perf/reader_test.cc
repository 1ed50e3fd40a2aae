// formats/perf/reader_test.cc: what perf script prints, with the columns that users choose.
#include "formats/perf/reader.h"

#include <gtest/gtest.h>

#include "profile/testing.h"

namespace plimsoll::formats::perf {
namespace {

using profile::testing::stacks_of;

profile::Profile read_text(std::string_view text) {
  EXPECT_TRUE(is_perf_script(text)) << text;
  Result<profile::Profile> read_back = read(text);
  EXPECT_TRUE(read_back.ok()) << read_back.error().message;
  return read_back.ok() ? read_back.take() : profile::Profile{};
}

std::string file_of_leaf(const profile::Profile& profile, std::size_t sample) {
  const profile::Function& function = profile.functions[profile.leaf_function(profile.samples.stack[sample])];
  return std::string(profile.strings[function.file]);
}

TEST(PerfScript, NamesPythonFunctionsAmongNativeOnes) {
  // GIVEN samples with CPython's trampolines WHEN they are read THEN Python, native and kernel code are told apart
  const profile::Profile profile = read_text(
      "# cmdline : perf record\n"
      "#\n"
      "python3 a  5777/5778 [001] 64951.051010:    2000000 cpu-clock:u: \n"
      "\t           467f4 long_add+0x14 (/usr/bin/python3.15 (deleted))\n"
      "\t    7f6909474eea py::Cup.<lambda>:/srv/a:b/tea.py+0xa (/tmp/perf-5777.map)\n"
      "\t          356aa4 [unknown] (/usr/bin/python3.15)\n"
      "\t    7ffe85725a53 [unknown] ([unknown])\n"
      "\n"
      "python3 a  5777/5778 [001] 64951.053010123:    1000000 cpu-clock:u: \n"
      "\tffffffff815e9cee operator()(int)+0x31e ([kernel.kallsyms])\n"
      "\t          1dfbbe std::sort<int, (lambda)> (inlined)\n"
      "\n");
  EXPECT_EQ(stacks_of(profile), (std::vector<std::string>{"[unknown];[unknown];Cup.<lambda>;long_add",
                                                          "std::sort<int, (lambda)>;operator()(int)"}));
  EXPECT_EQ(file_of_leaf(profile, 0), "/usr/bin/python3.15 (deleted)");
  EXPECT_EQ(file_of_leaf(profile, 1), "[kernel.kallsyms]");
  const FunctionId python = profile::testing::function_named(profile, "Cup.<lambda>");
  EXPECT_EQ(profile.functions[python].kind, profile::FunctionKind::kPython);
  EXPECT_EQ(profile.strings[profile.functions[python].file], "/srv/a:b/tea.py");
  // and clocks count nanoseconds
  EXPECT_EQ(profile.samples.weight_ns, (std::vector<std::int64_t>{2'000'000, 1'000'000}));
  EXPECT_EQ(profile.samples.time_ns, (std::vector<std::int64_t>{0, 2'000'123}));
  EXPECT_EQ(profile.meta_value("weights"), "as in the file");
  ASSERT_EQ(profile.threads.size(), 1U);
  EXPECT_EQ(profile.threads[0].name, "python3 a");
  EXPECT_EQ(profile.threads[0].os_tid, 5778);
  EXPECT_TRUE(profile.complete);
}

// perf script -F comm,pid,tid,time,event,ip,sym,dso
TEST(PerfScript, TakesSamplesWithoutPeriodsForAsLongAsTheyAreApart) {
  for (const std::string event : {"cpu-clock", "cycles"}) {
    // GIVEN samples of a thread each 2 ms, but for a pause, whose periods are not in the text
    std::string text;
    for (const char* time : {"1.000", "1.002", "1.004", "1.504", "1.506"})
      text += "a 1/2 " + std::string(time) + "000: " + event + ": \n\t1 f (x)\n\n";
    // WHEN it is read THEN each weighs 2 ms, and it is told that this is assumed
    const profile::Profile profile = read_text(text);
    EXPECT_EQ(profile.samples.weight_ns, std::vector<std::int64_t>(5, 2'000'000)) << event;
    EXPECT_EQ(profile.meta_value("weights"), "assumed: the time between two samples of a busy thread");
  }
  // AND of one sample nothing can be told
  const profile::Profile one = read_text("a 1/2 1.000000: cpu-clock: \n\t1 f (x)\n\n");
  EXPECT_EQ(one.samples.weight_ns, std::vector<std::int64_t>{1'000'000});
  EXPECT_EQ(one.meta_value("weights"), "assumed: a sample is a millisecond");
}

// simpleperf's report_sample.py of Android.
TEST(PerfScript, HasTabsInThePlaceOfBlanks) {
  const profile::Profile profile = read_text(
      "Gecko\t25122 [007] 115539.936601:\t\t1000000 task-clock:u:\n"
      "        b3cea6c4\tLock::unlock() (/system/lib/libc.so)\n"
      "        b3cea535\tshould_trace() (/system/lib/libc.so)\n"
      "\n");
  EXPECT_EQ(stacks_of(profile), std::vector<std::string>{"should_trace();Lock::unlock()"});
  EXPECT_EQ(file_of_leaf(profile, 0), "/system/lib/libc.so");
}

TEST(PerfScript, MakesTimeOfCyclesByTheirRateWhenBusy) {
  // GIVEN cycles at 2 per nanosecond, and a pause WHEN they are read THEN each weighs by its period
  const profile::Profile profile = read_text(
      "a 1 1.000000: 1 cycles:P: \n\t1 f (x)\n\n"
      "a 1 1.001000: 2000000 cycles:P: \n\t1 f (x)\n\n"
      "a 1 1.001500: 1000000 cycles:P: \n\t1 f (x)\n\n"
      "a 1 1.501500: 2000000 cpu_core/cycles/P: \n\t1 f (x)\n\n"
      "a 1 1.501600: 1 page-faults: \n\t1 f (x)\n\n");
  EXPECT_EQ(profile.samples.weight_ns, (std::vector<std::int64_t>{1, 1'000'000, 500'000, 1'000'000}));
  EXPECT_EQ(profile.meta_value("weights"), "assumed: cycles at the rate of the busiest times");
  ASSERT_EQ(profile.drops.size(), 1U);
  EXPECT_EQ(profile.drops[0].reason, "samples of other events");
}

TEST(PerfScript, TakesNoSleepForCpuTime) {
  // GIVEN 3 million cycles ten times a second, of which two samples came without a sleep between them
  std::string text;
  for (const char* time : {"0.1", "0.2", "0.3", "0.301", "0.4"})
    text += "a 1 [000] " + std::string(time) + "00000: 3000000 cycles: \n\t1 f (x)\n\n";
  // WHEN they are read THEN each is the millisecond that they took, by these two
  EXPECT_EQ(read_text(text).sampled_ns(), 5'000'000);
  // AND where all have slept in between, and where the thread has come from another CPU, the time is not known: at most
  // a nanosecond for a cycle
  const profile::Profile idle = read_text(
      "a 1 [000] 0.1: 3000000 cycles: \n\t1 f (x)\n\n"
      "a 1 [001] 0.1001: 3000000 cycles: \n\t1 f (x)\n\n"
      "a 1 [000] 0.2: 3000000 cycles: \n\t1 f (x)\n\n");
  EXPECT_EQ(idle.sampled_ns(), 9'000'000);
  EXPECT_EQ(idle.meta_value("weights"), "assumed: a cycle is a nanosecond, which is too much");
}

TEST(PerfScript, WithoutTimesOrStacksIsReadAsFarAsItGoes) {
  // GIVEN columns without a time, and samples of one frame in a line WHEN they are read THEN what is missing is assumed
  const profile::Profile timeless =
      read_text("a b 7/8 cycles: \n\t1 f (x)\n\t2 g (x)\n\nnonsense\na b 7/9 cycles:\n\n");
  EXPECT_EQ(stacks_of(timeless), (std::vector<std::string>{"g;f", ""}));
  EXPECT_EQ(timeless.sampled_ns(), 2'000'000);
  EXPECT_EQ(timeless.meta_value("times"), "assumed: one stack after the other");
  ASSERT_EQ(timeless.drops.size(), 1U);
  const profile::Profile flat = read_text(
      "perf 7 1.5: 250000 cpu-clock:u:  7f12 main+0x4 (/bin/x)\nperf 7 1.6: 250000 cpu-clock:u:  7f13 [unknown] "
      "(/bin/x)\n");
  EXPECT_EQ(stacks_of(flat), (std::vector<std::string>{"main", "[unknown]"}));
  EXPECT_EQ(flat.sampled_ns(), 500'000);
  EXPECT_TRUE(flat.complete);
}

TEST(PerfScript, WithoutCallGraphsHasNamesOfThreadsPaddedOnTheLeft) {
  // GIVEN samples of one frame in a line, each line indented WHEN they are read THEN each is a sample
  const profile::Profile profile = read_text(
      "         python3  5777 1.051010:    2000000 cpu-clock:u:             467f4 long_add+0x14 (/usr/bin/python3.12)\n"
      "            cafe  5777 1.053010:    2000000 cpu-clock:u:             467f4 long_mul+0x14 (/usr/bin/python3.12)\n"
      "         python3  5777 1.055010:    2000000 cpu-clock:u:             467f4 long_add+0x14 "
      "(/usr/bin/python3.12)\n");
  EXPECT_EQ(stacks_of(profile), (std::vector<std::string>{"long_add", "long_mul", "long_add"}));
  EXPECT_EQ(profile.sampled_ns(), 6'000'000);
  EXPECT_TRUE(profile.drops.empty());
  // AND likewise where not even an address was asked for
  const profile::Profile bare = read_text("   dead 7 1.5: 1000 cpu-clock: \n   dead 7 1.6: 1000 cpu-clock:\n\n");
  EXPECT_EQ(bare.samples.size(), 2U);
}

TEST(PerfScript, CountsLinesWithinSamplesThatItCannotRead) {
  // GIVEN lines of source below frames, and one that makes no sense
  const profile::Profile profile =
      read_text("a 1 1.0: 1000 cpu-clock: \n\t1 f (x)\n  f.c:12\n\t2 g (x)\n  ??:0\n\tnonsense\n\n");
  EXPECT_EQ(stacks_of(profile), (std::vector<std::string>{"g;f"}));
  ASSERT_EQ(profile.drops.size(), 1U);
  EXPECT_EQ(profile.drops[0].reason, "lines that are no samples");
  EXPECT_EQ(profile.drops[0].count, 1U);
}

TEST(PerfScript, KeepsNoStackThatIsCut) {
  // GIVEN a text that ends within a stack WHEN it is read THEN that sample is counted, and the profile is not complete
  constexpr std::string_view kText =
      "a 1 1.0: 1000 cpu-clock: \n\t1 f (x)\n\na 1 1.1: 1000 cpu-clock: \n\t1 f (x)\n\t2 mai";
  const profile::Profile profile = read_text(kText);
  EXPECT_EQ(stacks_of(profile), (std::vector<std::string>{"f"}));
  EXPECT_FALSE(profile.complete);
  ASSERT_EQ(profile.drops.size(), 1U);
  EXPECT_EQ(profile.drops[0].reason, "cut off by the end of the file");
  for (std::size_t size = 0; size < kText.size(); ++size) (void)read(kText.substr(0, size));
}

TEST(PerfScript, OfEventsThatAreNoTimeIsRefusedByName) {
  // GIVEN samples of page faults WHEN they are read THEN the error says so
  const Result<profile::Profile> profile = read("a 1 1.0: 1 page-faults: \n\t1 f (x)\n\n");
  ASSERT_FALSE(profile.ok());
  EXPECT_EQ(profile.error().kind, ErrorKind::kUnsupported);
  EXPECT_NE(profile.error().message.find("page-faults"), std::string::npos);
}

TEST(PerfScript, IsNotWhatOnlyLooksLikeIt) {
  for (const std::string_view text : {"", "\n\n", "a;b 12\n", "main (app.py:3);work (app.py:7) 12\n", "a 1 1.0: \n",
                                      "a 1 cycles:\nmore\n", "1.0: x:\n", "P12;T34;/srv/app.py:main:3 1500\n"})
    EXPECT_FALSE(is_perf_script(text)) << text;
}

}  // namespace
}  // namespace plimsoll::formats::perf
