// profile/plim_hostile_test.cc: files that nobody wrote to be read: they cost what they say, or are refused.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "base/symbols.h"
#include "profile/plim_markers.h"
#include "profile/plim_reader.h"
#include "profile/plim_samples.h"
#include "profile/plim_testing.h"
#include "profile/plim_threads.h"
#include "profile/testing.h"

namespace plimsoll::profile {
namespace {

constexpr std::uint64_t kMebibyte = std::uint64_t{1} << 20U;

std::string section(plim::Section kind, const std::string& payload) {
  std::string out;
  put_varint(out, static_cast<std::uint64_t>(kind));
  put_bytes(out, payload);
  return out;
}

std::string session() {
  std::string payload;
  for (const std::int64_t number : {0, 0, 1}) put_signed(payload, number);
  return section(plim::Section::kSession, payload);
}

// The rows of a chunk, as they are drawn.
struct Rows {
  StackModels stacks;
  ThreadModels threads;
  SampleModels samples;
  MarkerModels markers;
  CounterModels counters;
  ProgressModels progress;
  SymbolWriter out;

  void begin() {
    out.put(stacks.counts, 0);
    out.put(threads.counts, 0);
    out.put(samples.counts, 0);
  }
  void end() {
    out.put(counters.counts, 0);
    out.put_signed(progress.times, 0);
    out.put_signed(progress.cpus, 0);
  }
};

// A chunk with markers of so many fields without names.
std::string file_of_fields(std::size_t markers, std::size_t fields) {
  std::string shape;
  put_bytes(shape, "m");
  put_varint(shape, fields);
  for (std::size_t i = 0; i < fields; ++i) put_bytes(shape, "");
  Rows rows;
  rows.begin();
  rows.out.put(rows.markers.counts, markers);
  for (std::size_t i = 0; i < markers; ++i) {
    rows.out.put(rows.markers.shapes, 0);
    rows.out.put(rows.markers.threads, 0);
    rows.out.put_signed(rows.markers.times, 0);
    rows.out.put_signed(rows.markers.durations, 0);
    for (std::size_t field = 0; field < fields; ++field) rows.out.put(rows.markers.values_of(field), 1);
  }
  rows.end();
  return plim_file_with_chunk(
      session() + section(plim::Section::kMarkerShapes, shape) + section(plim::Section::kRows, {}), rows.out.take());
}

TEST(HostilePlim, TakesNoMoreMemoryThanItMay) {
  // GIVEN few bytes that stand for many fields WHEN they are read with room for all of them THEN they are there
  const std::string file = file_of_fields(100, 2'000);
  EXPECT_LT(file.size(), 10'000U);
  const Result<Profile> all = read_plim_within(32 * kMebibyte, file);
  ASSERT_TRUE(all.ok()) << all.error().message;
  EXPECT_EQ(all.value().markers.size(), 100U);
  // WHEN there is less room THEN the file is refused
  const Result<Profile> refused = read_plim_within(kMebibyte, file);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("unpacks to more"), std::string::npos) << refused.error().message;
}

TEST(HostilePlim, CountsSamplesAsWhatTheyTake) {
  // GIVEN a profile of a few bytes a sample WHEN it is read with less room than its samples take THEN it is refused
  const std::string file = PlimEncoder::file_header() + PlimEncoder(1).encode(testing::generated_profile(50'000, 10));
  EXPECT_LT(file.size(), kMebibyte);
  EXPECT_TRUE(read_plim_within(4 * kMebibyte, file).ok());
  EXPECT_FALSE(read_plim_within(kMebibyte, file).ok());
}

TEST(HostilePlim, HasRowsOnceInAChunk) {
  // GIVEN a chunk that says two times that its rows follow
  Rows rows;
  for (int i = 0; i < 2; ++i) {
    rows.begin();
    rows.out.put(rows.markers.counts, 0);
    rows.end();
  }
  const std::string twice = section(plim::Section::kRows, {}) + section(plim::Section::kRows, {});
  // WHEN it is read THEN it makes no sense
  const Result<Profile> profile =
      read_plim(plim_file_with_chunk(session() + twice + section(plim::Section::kEnd, {}), rows.out.take()));
  ASSERT_TRUE(profile.ok());
  EXPECT_FALSE(profile.value().complete);
}

TEST(HostilePlim, IsNotCompleteIfItsLastChunkMakesNoSense) {
  // GIVEN a chunk that ends the recording, and then refers to nothing
  std::string frame;
  for (const std::uint64_t number : {7, 0, 0}) put_varint(frame, number);
  const std::string end = section(plim::Section::kEnd, {});
  EXPECT_TRUE(read_plim(plim_file_with_chunk(session() + end)).value().complete);
  const std::string broken = end + section(plim::Section::kFrames, frame);
  EXPECT_FALSE(read_plim(plim_file_with_chunk(session() + broken)).value().complete);
}

TEST(HostilePlim, HasAHundredThousandFactsAndAttachmentsInNoTime) {
  // GIVEN very many facts, counters and attachments, one of each twice (looked for one by one they take minutes)
  constexpr std::size_t kMany = 100'000;
  std::string facts, attachments, counters;
  for (std::size_t i = 0; i <= kMany; ++i) {
    const std::string name = std::to_string(i % kMany);
    put_bytes(facts, name);
    put_bytes(facts, i < kMany ? "first" : "last");
    std::string attachment;
    put_bytes(attachment, name);
    put_bytes(attachment, "x");
    attachments += section(plim::Section::kAttachment, attachment);
    std::string counter;
    put_varint(counter, 0);
    put_bytes(counter, name);
    put_bytes(counter, "");
    put_varint(counter, 1);
    put_signed(counter, 1);
    put_signed(counter, 1);
    counters += section(plim::Section::kOldCounter, counter);
  }
  // WHEN they are read THEN each is there once
  const Result<Profile> read =
      read_plim(old_plim_file_with_chunk(session() + section(plim::Section::kMeta, facts) + attachments + counters));
  ASSERT_TRUE(read.ok());
  const Profile& profile = read.value();
  ASSERT_EQ(profile.meta.size(), kMany);
  EXPECT_EQ(profile.meta_value("0"), "last");
  EXPECT_EQ(profile.meta_value("1"), "first");
  ASSERT_EQ(profile.attachments.size(), kMany);
  EXPECT_EQ(profile.attachment("0")->bytes, "xx");
  ASSERT_EQ(profile.counters.size(), kMany);
  EXPECT_EQ(profile.counters[0].value.size(), 2U);
}

TEST(HostilePlim, HasNoWeightsWhoseSumIsNoNumber) {
  // GIVEN samples that weigh more together than 64 bits can say WHEN they are read THEN what comes before that stays
  Profile profile = testing::draw_profile("main  1\n main  1\n main  1");
  profile.samples.weight_ns = {1'000, INT64_MAX / 2, INT64_MAX / 2};
  const Result<Profile> read = read_plim(PlimEncoder::file_header() + PlimEncoder(1).encode(profile));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read.value().sampled_ns(), 1'000);
  EXPECT_FALSE(read.value().complete);
}

// A profile of one thread and one counter, both of no process, and of so many processes, as it is read from a file.
Profile without_process(std::size_t processes) {
  Profile profile = testing::draw_profile("main  1");
  profile.threads[0].process = ProcessId{};
  profile.counters.push_back({ProcessId{}, "rss", "bytes", {1}, {2}});
  profile.processes.assign(processes, {7, 1, "app.py"});
  Result<Profile> read = read_plim(PlimEncoder::file_header() + PlimEncoder(1).encode(profile));
  EXPECT_TRUE(read.ok());
  return read.take();
}

TEST(HostilePlim, GivesAProcessToWhatHasNone) {
  // GIVEN a file without processes WHEN it is read THEN thread and counter are of one that nothing is known of
  const Profile none = without_process(0);
  ASSERT_EQ(none.processes.size(), 1U);
  EXPECT_EQ(none.threads.at(0).process, ProcessId{0});
  EXPECT_EQ(none.counters.at(0).process, ProcessId{0});
  // AND where the file has one, of that
  const Profile one = without_process(1);
  ASSERT_EQ(one.processes.size(), 1U);
  EXPECT_EQ(one.processes[0].pid, 7);
  EXPECT_EQ(one.threads.at(0).process, ProcessId{0});
  // AND where it has several, of none of them
  const Profile two = without_process(2);
  ASSERT_EQ(two.processes.size(), 3U);
  EXPECT_EQ(two.threads.at(0).process, ProcessId{2});
  EXPECT_EQ(two.counters.at(0).process, ProcessId{2});
}

}  // namespace
}  // namespace plimsoll::profile
