// formats/tachyon/reader_test.cc: every encoding of a stack, both byte orders, cut and damaged files.
#include "formats/tachyon/reader.h"

#include <gtest/gtest.h>
#include <zstd.h>

#include "formats/tachyon/testing.h"
#include "profile/testing.h"

namespace plimsoll::formats::tachyon {
namespace {

using profile::testing::stacks_of;
using testing::draw_file;
using testing::Drawing;

// Frames 0, 1, 2 are main, pour and the collector; innermost first.
constexpr std::string_view kSamples = R"(
  thread 70 0 1  v 100 b 35 v 2 1 0
  thread 70 0 2  v 1000 b 35 v 1 2 2 1
  thread 70 0 0  v 2 1000 b 34 v 1000 b 4
  thread 71 0 1  v 200 b 12 v 0
  thread 70 0 3  v 500 b 1 v 2 1 1
)";
const std::vector<std::string> kStacks = {"main;pour", "main;pour;[gc]", "main;pour;[gc]", "main;pour;[gc]",
                                          "",          "main;pour"};

profile::Profile read_file(const std::string& bytes) {
  EXPECT_TRUE(is_tachyon(bytes));
  Result<profile::Profile> read_back = read(bytes);
  EXPECT_TRUE(read_back.ok()) << read_back.error().message;
  return read_back.ok() ? read_back.take() : profile::Profile{};
}

TEST(Tachyon, TellsStacksByWhatHasChanged) {
  // GIVEN samples in each encoding, in both byte orders and headers WHEN they are read THEN the stacks are the same
  for (const auto& [is_big_endian, is_alpha] : {std::pair(false, false), {true, false}, {false, true}, {true, true}}) {
    Drawing drawing{kSamples, 6};
    drawing.is_big_endian = is_big_endian;
    drawing.is_alpha = is_alpha;
    const profile::Profile profile = read_file(draw_file(drawing));
    EXPECT_EQ(stacks_of(profile), kStacks);
    EXPECT_EQ(profile.samples.time_ns,
              (std::vector<std::int64_t>{100'000, 1'100'000, 2'100'000, 3'100'000, 200'000, 3'600'000}));
    EXPECT_EQ(profile.samples.activity,
              (std::vector<Activity>{Activity::kRunning, Activity::kRunning, Activity::kRunning, Activity::kOther,
                                     Activity::kGil, Activity::kRunning}));
    EXPECT_EQ(profile.sampled_ns(), 6'000'000);
    EXPECT_EQ(profile.meta_value("weights"), "assumed: the period that was asked for");
    EXPECT_EQ(profile.meta_value("python"), "3.15.2");
    EXPECT_EQ(profile.meta_value("mode"), is_alpha ? "" : "wall");
    EXPECT_TRUE(profile.complete);
    ASSERT_EQ(profile.threads.size(), 2U);
    EXPECT_TRUE(profile.threads[0].is_main);
    EXPECT_FALSE(profile.threads[1].is_main);
    EXPECT_EQ(profile.threads[1].os_tid, 71);
    const profile::Frame& pour = profile.frames[profile.stacks[profile.samples.stack[0]].frame];
    EXPECT_EQ(pour.line, 20U);
    EXPECT_EQ(pour.column, 5U);
  }
}

TEST(Tachyon, CountsAMeasuredPeriodAndWhatWasLost) {
  // GIVEN a file that tells the session's rate WHEN it is read THEN that is the weight, and failures are drops
  Drawing drawing{kSamples, 6};
  drawing.has_statistics = true;
  drawing.mode = 2;
  const profile::Profile profile = read_file(draw_file(drawing));
  EXPECT_EQ(profile.sampled_ns(), 12'000'000);
  EXPECT_EQ(profile.end_ns, 2'000'000'000);
  EXPECT_EQ(profile.meta_value("mode"), "cpu");
  ASSERT_EQ(profile.drops.size(), 2U);
  EXPECT_EQ(profile.drops[0].count, 10U);
  EXPECT_EQ(profile.drops[1].count, 5U);
}

// A file whose samples are compressed.
std::string compressed(const Drawing& drawing) {
  std::string plain = draw_file(drawing);
  Drawing empty = drawing;
  empty.samples = {};
  const std::size_t tables = draw_file(empty).size() - 64;
  const std::string samples = plain.substr(64, plain.size() - 64 - tables);
  std::string stored(ZSTD_compressBound(samples.size()), '\0');
  stored.resize(ZSTD_compress(stored.data(), stored.size(), samples.data(), samples.size(), 5));
  std::string file = plain.substr(0, 64) + stored + plain.substr(plain.size() - tables);
  const auto shift = static_cast<std::uint8_t>(samples.size() - stored.size());  // of small files
  file[40] = static_cast<char>(static_cast<std::uint8_t>(file[40]) - shift);
  file[48] = static_cast<char>(static_cast<std::uint8_t>(file[48]) - shift);
  file[56] = 1;
  const std::size_t size_at = file.size() - 24;
  file[size_at] = static_cast<char>(file.size());
  file[size_at + 1] = static_cast<char>(file.size() >> 8U);
  return file;
}

TEST(Tachyon, UnpacksItsSamples) {
  // GIVEN compressed samples WHEN they are read THEN they are those of the plain file; damage ends them
  std::string file = compressed({kSamples, 6});
  EXPECT_EQ(stacks_of(read_file(file)), kStacks);
  file[66] = static_cast<char>(file[66] ^ 0x55);
  const profile::Profile damaged = read_file(file);
  EXPECT_FALSE(damaged.complete);
  EXPECT_NE(damaged.meta_value("damage"), "");
}

TEST(Tachyon, ThatIsCutKeepsTheNamesThatAreThere) {
  // GIVEN a file cut at each byte WHEN it is read THEN all samples are there as soon as any name can be
  const std::string bytes = draw_file({kSamples, 6});
  const std::size_t names = bytes.find("tea.py") - 1;
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const Result<profile::Profile> profile = read(std::string_view(bytes).substr(0, size));
    ASSERT_EQ(profile.ok(), size >= names) << size;
    if (!profile.ok()) continue;
    EXPECT_EQ(profile.value().samples.size(), 6U);
    EXPECT_FALSE(profile.value().complete);
  }
  EXPECT_NE(read(std::string_view(bytes).substr(0, 100)).error().message.find("cut at byte 100, before the names"),
            std::string::npos);
  EXPECT_EQ(stacks_of(read_file(bytes.substr(0, names)))[0], "[unknown frame];[unknown frame]");
}

TEST(Tachyon, ThatMakesNoSenseEndsThere) {
  // GIVEN records that are none, counts and indices that are too large, stacks without end WHEN they are read THEN the
  // samples before are kept
  std::string endless = "thread 1 0 1 v 1 b 0 v 1 0\n";
  for (int i = 0; i < 90; ++i) {
    endless += "thread 1 0 2 v 1 b 0 v 99999 100\n v";
    for (int frame = 0; frame < 100; ++frame) endless += " 0";
    endless += "\n";
  }
  for (const std::string& tail : {std::string("thread 1 0 9 v 1 b 0"), std::string("thread 1 0 1 v 1 b 0 v 200000"),
                                  std::string("b 1 2 3"), std::string("thread 1 0 0 v 99999999 1 b 1"), endless}) {
    const std::string samples = "thread 70 0 1 v 100 b 35 v 2 1 7\n" + tail;
    const profile::Profile profile = read_file(draw_file({samples, 9'999}));
    EXPECT_FALSE(profile.complete);
    EXPECT_EQ(stacks_of(profile)[0], "[unknown frame];pour");
    EXPECT_NE(profile.meta_value("damage"), "");
  }
  std::string future = draw_file({kSamples, 6});
  future[4] = 2;
  EXPECT_EQ(read(future).error().kind, ErrorKind::kUnsupported);
  std::string twisted = draw_file({kSamples, 6});
  twisted[40] = twisted[36] = 0;
  EXPECT_EQ(read(twisted).error().kind, ErrorKind::kBadInput);
}

}  // namespace
}  // namespace plimsoll::formats::tachyon
