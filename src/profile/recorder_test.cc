// profile/recorder_test.cc: what a recording keeps in memory, and what is in its file.
#include "profile/recorder.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "base/clock.h"
#include "profile/plim_reader.h"

namespace plimsoll::profile {
namespace {

class ManyThreads : public ::testing::Test {
 protected:
  explicit ManyThreads(bool is_exact = false) {
    RecorderSettings settings;
    settings.path = path_;
    settings.is_exact = is_exact;
    recorder_ = Recorder::create(std::move(settings)).take();
    cpython::CodeInfo code;
    code.name = "burn";
    recorder_->code(kFrame.code, code);
  }
  ~ManyThreads() override { std::filesystem::remove(path_); }

  void tell(std::uint32_t serial, bool has_ended = false) {
    capture::ThreadInfo info;
    info.serial = capture::ThreadSerial{serial};
    info.tid = Tid{static_cast<std::int32_t>(1000 + serial)};
    info.name = "worker " + std::to_string(serial);
    info.start_ns = info.end_ns = start_ns_;
    info.has_ended = has_ended;
    recorder_->thread(info);
  }
  // A sample of a thread that weighs so many units of the file's.
  void sample(std::uint32_t serial, std::int64_t weight) {
    capture::Sample sample;
    sample.thread = capture::ThreadSerial{serial};
    sample.time_ns = start_ns_ + 1'000'000 * ++samples_;
    sample.weight_ns = kUnit * weight;
    sample.frames = {&kFrame, 1};
    recorder_->sample(sample);
  }
  void flush(capture::SampleSink::Ending ending = capture::SampleSink::Ending::kOpen) {
    ASSERT_TRUE(recorder_->flush({start_ns_ + 1'000'000 * samples_, 0, {}}, ending).ok());
  }
  Profile read() {
    flush(capture::SampleSink::Ending::kComplete);
    return read_plim_file(path_).take();
  }

  static constexpr std::int64_t kUnit = 20'000;  // ns, at 1 kHz
  static constexpr capture::SampleFrame kFrame{capture::CodeId{0}, {}};
  // Of this process: tests run at the same time.
  const std::string path_ = ::testing::TempDir() + "recorder_test." + std::to_string(::getpid()) + ".plim";
  const std::int64_t start_ns_ = monotonic_ns();
  std::int64_t samples_ = 0;
  std::unique_ptr<Recorder> recorder_;
};

TEST_F(ManyThreads, EndByAnExecOnlyIfItDoesNotFail) {
  using Ending = capture::SampleSink::Ending;
  // GIVEN a recording whose program is about to become another one
  tell(0);
  sample(0, 1);
  flush(Ending::kExec);
  // WHEN nothing follows THEN it is whole, and says so
  Profile profile = read_plim_file(path_).take();
  EXPECT_TRUE(profile.complete);
  EXPECT_EQ(profile.meta_value("ending"), "exec");
  // AND if something does, the exec has failed
  sample(0, 1);
  profile = read();
  EXPECT_TRUE(profile.complete);
  EXPECT_EQ(profile.meta_value("ending"), "");
}

TEST_F(ManyThreads, AreForgottenWhenTheyHaveEndedAndAreAllInTheFile) {
  // GIVEN one thread that lives on, and others that come and go between flushes
  tell(0);
  for (std::uint32_t serial = 1; serial <= 500; ++serial) {
    tell(serial);
    sample(serial, serial);
    sample(0, 1000);
    tell(serial, true);
    if (serial % 10 == 0) flush();
    // THEN no more are kept than have ended since the flush before the last
    EXPECT_LE(recorder_->threads_in_memory(), 1 + 20U);
  }
  // AND all have their names and their time
  const Profile profile = read();
  ASSERT_EQ(profile.threads.size(), 501U);
  std::vector<std::int64_t> weight(501);
  for (std::size_t row = 0; row < profile.samples.size(); ++row)
    weight[profile.samples.thread[row].index()] += profile.samples.weight_ns[row];
  EXPECT_EQ(weight[0], 500 * 1000 * kUnit);
  for (std::uint32_t serial = 1; serial <= 500; ++serial) {
    EXPECT_EQ(profile.threads[serial].name, "worker " + std::to_string(serial));
    EXPECT_EQ(weight[serial], kUnit * serial);
  }
}

TEST_F(ManyThreads, MayHaveSamplesThatWereStillOnTheirWayWhenTheirEndWasTold) {
  tell(0);
  sample(0, 5);
  tell(0, true);
  flush();
  sample(0, 7);
  flush();
  flush();
  EXPECT_EQ(recorder_->threads_in_memory(), 0U);
  const Profile profile = read();
  ASSERT_EQ(profile.samples.size(), 2U);
  EXPECT_EQ(profile.samples.weight_ns, (std::vector<std::int64_t>{5 * kUnit, 7 * kUnit}));
}

TEST_F(ManyThreads, HaveNumbersWithoutGapsEvenIfOneWasNeverTold) {
  // GIVEN number 1, of a thread that had ended before it could be sampled
  tell(0);
  tell(2);
  sample(2, 3);
  const Profile profile = read();
  ASSERT_EQ(profile.threads.size(), 3U);
  EXPECT_EQ(profile.threads[1].name, "");
  EXPECT_EQ(profile.threads[2].name, "worker 2");
  EXPECT_EQ(profile.samples.thread[0], ThreadId{2});
}

// Python files of 100 KB.
class ManySources : public ManyThreads {
 protected:
  static constexpr int kFiles = 20;

  ManySources() {
    std::filesystem::create_directory(directory_);
    for (int i = 0; i < kFiles; ++i) {
      cpython::CodeInfo code;
      code.name = "function" + std::to_string(i);
      code.file = directory_ + "/" + code.name + ".py";
      std::ofstream(code.file) << std::string(100'000, static_cast<char>('a' + i));
      recorder_->code(capture::CodeId{static_cast<std::uint32_t>(1 + i)}, code);
    }
  }
  ~ManySources() override { std::filesystem::remove_all(directory_); }

  const std::string directory_ = path_ + ".sources";
};

TEST_F(ManySources, AreWrittenAFewAtATimeWhileSamplesCome) {
  // WHEN a recording goes on THEN it is flushed again at once, a few times, and after that no more
  EXPECT_FALSE(recorder_->wants_flush());
  int flushes = 0;
  do {
    const std::uintmax_t before = std::filesystem::exists(path_) ? std::filesystem::file_size(path_) : 0;
    flush();
    ++flushes;
    EXPECT_GT(std::filesystem::file_size(path_), before);
  } while (recorder_->wants_flush() && flushes < kFiles);
  EXPECT_GT(flushes, 3);
  EXPECT_LT(flushes, kFiles);
  // AND each is in the file, once
  EXPECT_EQ(read_plim_file(path_).take().sources.size(), static_cast<std::size_t>(kFiles));
}

TEST_F(ManySources, AreAllWrittenAtTheEnd) {
  EXPECT_EQ(read().sources.size(), static_cast<std::size_t>(kFiles));
  EXPECT_FALSE(recorder_->wants_flush());
}

TEST_F(ManySources, ThatAreNotOnDiskMayBeTold) {
  // GIVEN a function of a notebook's cell
  cpython::CodeInfo code;
  code.name = "cell";
  code.file = "<ipython-input-1>";
  recorder_->code(capture::CodeId{100}, code);
  flush();
  // WHEN the texts of that one, of one that no function is of and of one that is on disk are told
  for (const std::string& file : {code.file, std::string("<ipython-input-2>"), directory_ + "/function0.py"})
    recorder_->source({file, "told"});
  // THEN the first is in the file, the second is not, and what is on disk is as it is there
  std::map<std::string, std::string> sources;
  for (const Source& source : read().sources) EXPECT_TRUE(sources.emplace(source.file, source.text).second);
  EXPECT_EQ(sources.size(), static_cast<std::size_t>(kFiles) + 1);
  EXPECT_EQ(sources[code.file], "told");
  EXPECT_EQ(sources[directory_ + "/function0.py"].front(), 'a');
}

// Stacks of an exact recording.
class ExactStacks : public ManyThreads {
 protected:
  ExactStacks() : ManyThreads(true) {}

  using Kind = capture::ExactStack::Kind;
  // A stack on top of another, and as many blocks of it as its number is.
  void tell_stack(std::uint32_t number, std::uint32_t below, Kind kind) {
    EXPECT_FALSE(recorder_->knows_stack(number));
    recorder_->exact_stack({number, below, kind, kFrame});
    EXPECT_TRUE(recorder_->knows_stack(number));
    capture::ExactAllocation blocks;
    blocks.stack = number;
    blocks.thread = capture::ThreadSerial{0};
    blocks.blocks = number;
    blocks.bytes = 16 * std::int64_t{number};
    blocks.born_ns = blocks.at_ns = start_ns_ + 1'000'000'000 * std::int64_t{number};  // so each is a row
    recorder_->exact_allocation(blocks);
  }
  // What the file says of each number.
  std::map<std::int64_t, std::string> stacks() {
    const Profile profile = read();
    std::map<std::int64_t, std::string> found;
    for (const AllocationRow& row : profile.allocations)
      for (const FrameId frame : frames_of(profile.stacks, row.stack))
        found[static_cast<std::int64_t>(row.blocks)] +=
            std::string(profile.strings[profile.functions[profile.frames[frame].function].name]) + ";";
    return found;
  }
};

TEST_F(ExactStacks, AreMadeOfTheStacksBelowThem) {
  tell(0);
  // GIVEN   thread 1 <- burn 2 <- burn 3 <- hidden 4 <- burn 5     truncated 6 <- burn 7     native 8
  tell_stack(1, 0, Kind::kNoPython);
  tell_stack(2, 1, Kind::kFrame);
  tell_stack(3, 2, Kind::kFrame);
  tell_stack(4, 3, Kind::kHidden);
  tell_stack(5, 4, Kind::kFrame);
  tell_stack(6, 0, Kind::kTruncated);
  tell_stack(7, 6, Kind::kFrame);
  tell_stack(8, 0, Kind::kNative);
  // THEN each has the frames that are to be shown, and the beginnings have what stands for none
  const std::map<std::int64_t, std::string> expected{
      {1, "[no Python frame];"}, {2, "burn;"},
      {3, "burn;burn;"},         {4, "burn;burn;"},
      {5, "burn;burn;burn;"},    {6, "[no Python frame];"},
      {8, "[native thread];"},   {7, "[stack too deep: outer frames missing];burn;"}};
  EXPECT_EQ(stacks(), expected);
}

}  // namespace
}  // namespace plimsoll::profile
