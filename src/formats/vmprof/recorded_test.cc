// formats/vmprof/recorded_test.cc: profiles that vmprof recorded, and what its own reader finds in them.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "formats/input.h"
#include "profile/flat.h"

namespace plimsoll::formats::vmprof {
namespace {

// What is known of a recorded file.
struct Truth {
  std::string file;
  std::string format;
  std::size_t samples = 0;
  std::size_t stacks = 0;  // distinct ones
  std::string function;    // the one with the most own time
  std::uint64_t self_samples = 0;
  std::uint64_t jitted = 0;  // samples that ended in machine code of the JIT
};

profile::Profile open_recorded(const std::string& file) {
  Result<profile::Profile> profile = read_profile_file(std::string(PLIMSOLL_TEST_DATA) + "/vmprof/" + file);
  EXPECT_TRUE(profile.ok()) << profile.error().message;
  return profile.ok() ? profile.take() : profile::Profile{};
}

std::uint64_t jitted_samples(const profile::Profile& profile) {
  return static_cast<std::uint64_t>(std::count_if(
      profile.samples.stack.begin(), profile.samples.stack.end(),
      [&](StackId stack) { return !stack.is_none() && !profile.frames[profile.stacks[stack].frame].trace.is_none(); }));
}

TEST(RecordedByVmprof, HasWhatItsOwnReaderFinds) {
  // GIVEN files of CPython on Windows, and of PyPy with and without tags WHEN they are read THEN the numbers are those
  // that vmprof's own reader gives
  for (const Truth& truth : {Truth{"example.prof.gz", "vmprof 6", 2535, 9, "function_a", 2518, 0},
                             Truth{"pypy-pystone.prof.gz", "vmprof 6", 375, 16, "Func2", 184, 355}}) {
    SCOPED_TRACE(truth.file);
    const profile::Profile profile = open_recorded(truth.file);
    EXPECT_EQ(profile.meta_value("format"), truth.format);
    EXPECT_EQ(profile.samples.size(), truth.samples);
    EXPECT_EQ(std::set<StackId>(profile.samples.stack.begin(), profile.samples.stack.end()).size(), truth.stacks);
    EXPECT_EQ(jitted_samples(profile), truth.jitted);
    EXPECT_TRUE(profile.complete);
    const std::vector<profile::FlatRow> rows = flat(profile);
    ASSERT_FALSE(rows.empty());
    EXPECT_EQ(profile.strings[profile.functions[rows[0].function].name], truth.function);
    EXPECT_EQ(rows[0].self_samples, truth.self_samples);
  }
}

TEST(RecordedByVmprof, HasItsFunctionsWhereTheProgramSpentItsTime) {
  // GIVEN the profile of two functions that call each other WHEN it is read THEN both are under the module in all but a
  // few samples, and start and end are those of the file
  const profile::Profile profile = open_recorded("example.prof.gz");
  std::size_t functions = 0;
  for (const profile::FlatRow& row : flat(profile)) {
    const profile::Function& function = profile.functions[row.function];
    if (profile.strings[function.file] != "vmprofconvert/test/example.py") continue;
    EXPECT_EQ(row.total_samples, 2518U);
    ++functions;
  }
  EXPECT_EQ(functions, 3U);
  EXPECT_EQ(profile.start_realtime_ns / 1'000'000, 1'681'890'179'831);
  EXPECT_EQ(profile.end_ns / 1'000'000, 494);
  EXPECT_LE(profile.sampled_ns(), profile.end_ns);
  ASSERT_EQ(profile.threads.size(), 1U);
  EXPECT_EQ(profile.threads[0].os_tid, 0x380c);
}

TEST(RecordedByVmprof, HasNamesInTheOldestVersion) {
  // GIVEN machine stacks of PyPy in 2015 WHEN they are read THEN all Python functions have names, and native ones a
  // library
  const profile::Profile profile = open_recorded("richards.pypy.prof.gz");
  EXPECT_EQ(profile.samples.size(), 69U);
  std::set<std::string_view> names;
  for (const profile::Function& function : profile.functions.rows()) names.insert(profile.strings[function.name]);
  for (const std::string_view name : {"schedule", "runTask", "libpypy-c.so"}) EXPECT_TRUE(names.contains(name)) << name;
  for (const std::string_view name : names) EXPECT_FALSE(name.starts_with("[unknown code")) << name;
}

}  // namespace
}  // namespace plimsoll::formats::vmprof
