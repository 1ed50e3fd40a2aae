// formats/foreign_recorded_test.cc: files that other tools recorded of one program, and what those tools find in them.
#include <gtest/gtest.h>

#include "formats/input.h"
#include "profile/flat.h"

namespace plimsoll::formats {
namespace {

// What is known of a recorded file.
struct Truth {
  std::string file;
  std::string format;
  std::size_t samples = 0;
  std::size_t threads = 0;
  std::string function;  // one of Python
  std::uint64_t self_samples = 0;
  std::int64_t sampled_us = 0;
};

TEST(RecordedByOthers, HasWhatTheirOwnReadersFind) {
  // GIVEN recorded files WHEN they are read THEN samples, threads and times are those that the tools' readers give
  for (const Truth& truth : {Truth{"all-threads.tachyon", "profiling.sampling 1", 157, 2, "wait", 55, 157'000},
                             Truth{"cpu.tachyon", "profiling.sampling 1", 96, 2, "steep", 30, 96'000},
                             Truth{"full.mojo", "mojo 3", 99, 2, "wait", 24, 220'990},
                             Truth{"wall.mojo", "mojo 3", 105, 2, "pour", 20, 268'090},
                             Truth{"perf-script.txt.gz", "perf script", 15, 1, "pour", 0, 75'000},
                             Truth{"tea.pyisession.gz", "pyinstrument", 13, 1, "steep", 4, 107'747}}) {
    SCOPED_TRACE(truth.file);
    const Result<profile::Profile> read = read_profile_file(std::string(PLIMSOLL_TEST_DATA) + "/foreign/" + truth.file);
    ASSERT_TRUE(read.ok()) << read.error().message;
    const profile::Profile& profile = read.value();
    EXPECT_EQ(profile.meta_value("format"), truth.format);
    EXPECT_EQ(profile.samples.size(), truth.samples);
    EXPECT_EQ(profile.threads.size(), truth.threads);
    EXPECT_NEAR(static_cast<double>(profile.sampled_ns()) / 1'000, static_cast<double>(truth.sampled_us), 1);
    EXPECT_TRUE(profile.complete);
    bool is_there = false;
    for (const profile::FlatRow& row : flat(profile)) {
      if (profile.strings[profile.functions[row.function].name] != truth.function) continue;
      is_there = true;
      EXPECT_EQ(row.self_samples, truth.self_samples);
    }
    EXPECT_TRUE(is_there);
  }
}

}  // namespace
}  // namespace plimsoll::formats
