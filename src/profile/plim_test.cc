#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "base/varint.h"
#include "profile/plim_reader.h"
#include "profile/plim_testing.h"
#include "profile/plim_writer.h"

namespace plimsoll::profile {
namespace {

// A profile with something in every table. Each call of add() is what a second of recording might add.
class Growing {
 public:
  Growing() {
    profile.start_monotonic_ns = 111;
    profile.start_realtime_ns = 1'700'000'000'000'000'000;
    profile.set_meta("python", "3.12.1");
    profile.processes.push_back({42, 1, "python app.py"});
  }
  void add(int round) {
    Function function;
    function.name = profile.strings.intern("f" + std::to_string(round));
    function.file = profile.strings.intern("/src/app.py");
    function.first_line = 10;
    const FunctionId id = profile.functions.intern(function);
    StackId stack;
    for (std::uint32_t line = 9; line < 13; ++line)  // a decorator's line comes before the function's first
      stack = profile.stacks.intern({stack, profile.frames.intern({id, line, line * 2})});
    const TagSetId tags = profile.tag_sets.intern(
        {{profile.strings.intern("request"), profile.strings.intern("GET /" + std::to_string(round))},
         {profile.strings.intern("user"), profile.strings.intern("7")}});
    if (profile.threads.size() < 3)
      profile.threads.push_back({ProcessId{0}, 1000 + round, "worker", round == 0, 5, 10, 15});
    const std::size_t threads = profile.threads.size();
    for (int i = 0; i < 50; ++i) {
      time_ += 1'000'000 + i * 37;
      profile.samples.push_back(time_, ThreadId{static_cast<std::size_t>(i) % threads}, i % 7 == 0 ? StackId{} : stack,
                                990'000 + i * 1'003,
                                round % 2 == 0 ? Activity::kRunning : static_cast<Activity>(i / 3 % 7),
                                round % 3 == 0 || i % 5 == 0 ? TagSetId{} : tags);
    }
    profile.counters = {{ProcessId{0}, "rss", "bytes", {time_, time_ + 5'000}, {4096 * round, 8192 * round}}};
    profile.markers.push_back({time_, 77, ThreadId{0}, "GC", {{"generation", "2"}}});
    profile.drops = {{"ring full", static_cast<std::uint64_t>(round), 5'000}};
    profile.sources.push_back({"/src/app" + std::to_string(round) + ".py", "print()\n"});
    profile.set_meta("rounds", std::to_string(round));
    profile.end_ns = time_;
    profile.process_cpu_ns = time_ / 2;
  }
  void clear_rows() {
    profile.samples.clear();
    profile.markers.clear();
    profile.sources.clear();
    profile.counters.clear();
  }

  Profile profile;

 private:
  std::int64_t time_ = 0;
};

void expect_equal(const Profile& a, const Profile& b) {
  EXPECT_EQ(a.meta, b.meta);
  EXPECT_EQ(a.start_monotonic_ns, b.start_monotonic_ns);
  EXPECT_EQ(a.start_realtime_ns, b.start_realtime_ns);
  EXPECT_EQ(a.end_ns, b.end_ns);
  EXPECT_EQ(a.process_cpu_ns, b.process_cpu_ns);
  EXPECT_EQ(a.complete, b.complete);
  EXPECT_EQ(a.functions.rows(), b.functions.rows());
  EXPECT_EQ(a.frames.rows(), b.frames.rows());
  EXPECT_EQ(a.stacks.rows(), b.stacks.rows());
  EXPECT_EQ(a.samples.time_ns, b.samples.time_ns);
  EXPECT_EQ(a.samples.thread, b.samples.thread);
  EXPECT_EQ(a.samples.stack, b.samples.stack);
  EXPECT_EQ(a.samples.weight_ns, b.samples.weight_ns);
  EXPECT_EQ(a.samples.activity, b.samples.activity);
  EXPECT_EQ(a.samples.tags, b.samples.tags);
  EXPECT_EQ(a.tag_sets.rows(), b.tag_sets.rows());
  ASSERT_EQ(a.threads.size(), b.threads.size());
  for (std::size_t i = 0; i < a.threads.size(); ++i) {
    EXPECT_EQ(a.threads[i].os_tid, b.threads[i].os_tid);
    EXPECT_EQ(a.threads[i].name, b.threads[i].name);
    EXPECT_EQ(a.threads[i].is_main, b.threads[i].is_main);
  }
  ASSERT_EQ(a.markers.size(), b.markers.size());
  ASSERT_EQ(a.sources.size(), b.sources.size());
  for (std::size_t i = 0; i < a.sources.size(); ++i) EXPECT_EQ(a.sources[i].text, b.sources[i].text);
}

TEST(Plim, GivesBackWhatWasWrittenAtOnce) {
  Growing growing;
  growing.add(0);
  growing.add(1);
  growing.profile.complete = true;
  PlimEncoder encoder(1);
  const auto read = read_plim(PlimEncoder::file_header() + encoder.encode(growing.profile));
  ASSERT_TRUE(read.ok()) << read.error().message;
  expect_equal(read.value(), growing.profile);
}

TEST(Plim, OfVersionTwoIsReadAsItWas) {
  // GIVEN what GivesBackWhatWasWrittenInManyChunks draws, in a file that was written when version 2.0 was the format
  const auto read = read_plim_file(std::string(PLIMSOLL_TEST_DATA) + "/plim/version-2.0.plim");
  ASSERT_TRUE(read.ok()) << read.error().message;
  Growing whole;
  for (int round = 0; round < 5; ++round) whole.add(round);
  whole.profile.complete = true;
  // THEN it is all there
  expect_equal(read.value(), whole.profile);
  EXPECT_EQ(read.value().counters[0].value.size(), 10U);
  EXPECT_EQ(read.value().counters[0].value[9], 8192 * 4);
  EXPECT_EQ(read.value().markers[4].duration_ns, 77);
  EXPECT_EQ(read.value().drops[0].count, 4U);
  EXPECT_EQ(read.value().tag_sets.size(), 5U);
}

TEST(Plim, GivesBackMarkersWhateverTheirFieldsAre) {
  // GIVEN markers of several kinds, with numbers, what looks like one, and texts, in two chunks
  Growing growing;
  const auto field = [](const char* name, const std::string& value) { return std::pair{std::string(name), value}; };
  std::vector<Marker> all;
  for (int i = 0; i < 40; ++i) {
    const std::string number = std::to_string(i * i * 1'000'003 - 500);
    const std::string odd = std::vector<std::string>{"007", "-0", "", "+1", "9223372036854775807", "x"}[i % 6];
    all.push_back({i * 1000, i * 77, ThreadId{0}, "GC", {field("generation", "2"), field("collected", number)}});
    all.push_back({i * 1000 - 5, 0, {}, "GC", {field("generation", odd)}});
    all.push_back({i * 999, 1, {}, "note", {}});
    all.push_back({i, 1, {}, "many", std::vector<std::pair<std::string, std::string>>(9, field("text", odd))});
  }
  PlimEncoder encoder(1);
  std::string bytes = PlimEncoder::file_header();
  growing.add(0);
  for (const std::size_t half : {0U, 1U}) {
    growing.clear_rows();
    growing.profile.markers.assign(all.begin() + half * 80, all.begin() + half * 80 + 80);
    bytes += encoder.encode(growing.profile);
  }
  // WHEN / THEN
  const auto read = read_plim(bytes);
  ASSERT_TRUE(read.ok());
  ASSERT_EQ(read.value().markers.size(), all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(read.value().markers[i].time_ns, all[i].time_ns);
    EXPECT_EQ(read.value().markers[i].duration_ns, all[i].duration_ns);
    EXPECT_EQ(read.value().markers[i].thread, all[i].thread);
    EXPECT_EQ(read.value().markers[i].name, all[i].name);
    EXPECT_EQ(read.value().markers[i].fields, all[i].fields);
  }
}

TEST(Plim, KeepsTheSumOfShortDurations) {
  // GIVEN collections that are over long before a unit of the file's is
  Profile profile;
  for (int i = 0; i < 1000; ++i) profile.markers.push_back({i * 1'000'000, 7'000, {}, "GC", {}});
  PlimEncoder encoder(200'000);
  const auto read = read_plim(PlimEncoder::file_header() + encoder.encode(profile));
  // THEN together they took as long
  std::int64_t sum = 0;
  for (const Marker& marker : read.value().markers) sum += marker.duration_ns;
  EXPECT_NEAR(static_cast<double>(sum), 7'000'000, 50'000);
}

TEST(Plim, GivesBackThreadsByWhatTheyAreCalled) {
  // GIVEN threads whose names have numbers, nearly have, or have not, told of again as they go on
  const std::vector<std::string> names{"main",
                                       "Thread-1 (work)",
                                       "Thread-2 (work)",
                                       "Thread-10 (f2)",
                                       "",
                                       "pool-0_3",
                                       "pool-0_4",
                                       "007",
                                       "Thread-3 (work)",
                                       "12345678901234567890",
                                       "a1b22c333",
                                       "Thread-1 (work)"};
  PlimEncoder encoder(1);
  std::string bytes = PlimEncoder::file_header();
  Profile profile;
  profile.processes.push_back({42, 1, "python app.py"});
  std::vector<Thread> last;
  for (int round = 0; round < 3; ++round) {
    ThreadRows rows;
    last.clear();
    for (std::size_t i = 0; i < names.size(); ++i)
      last.push_back({i % 3 == 0 ? ProcessId{} : ProcessId{0}, static_cast<std::int64_t>(5000 + i * i), names[i],
                      i == 0, static_cast<std::int64_t>(i * 10), round * 1000 + 700 - static_cast<std::int64_t>(i),
                      static_cast<std::int64_t>(round * 100 + i)});
    if (round == 2) last[4].name = "now it has one";
    for (std::size_t i = 0; i < last.size(); ++i)
      if (round != 1 || i % 2 == 0) rows.emplace(static_cast<std::uint32_t>(i), last[i]);
    bytes += encoder.encode(profile, rows);
  }
  // WHEN / THEN
  const auto read = read_plim(bytes);
  ASSERT_TRUE(read.ok());
  for (Thread& thread : last) thread.process = ProcessId{0};  // those of none are of the only one
  EXPECT_EQ(read.value().threads, last);
}

TEST(Plim, GivesBackStacksThatWereMetBeforeInWhateverOrder) {
  // GIVEN more stacks than there are slots for, with ever new ones on top of old ones, of two threads
  Profile whole;
  Profile part;
  whole.threads.resize(2);
  part.threads.resize(2);
  std::mt19937 random(5);
  PlimEncoder encoder(1);
  std::string bytes = PlimEncoder::file_header();
  for (int chunk = 0; chunk < 6; ++chunk) {
    for (int i = 0; i < 2000; ++i) {
      const auto number = static_cast<std::uint32_t>(std::min(random() % 1000, random() % 1000) << (chunk % 2));
      StackId in_whole, in_part;
      for (std::uint32_t frame = number; frame != 0; frame /= 3) {
        in_whole = whole.stacks.intern({in_whole, whole.frames.intern({whole.functions.intern({}), frame, 0})});
        in_part = part.stacks.intern({in_part, part.frames.intern({part.functions.intern({}), frame, 0})});
      }
      const ThreadId thread{random() % 2};
      whole.samples.push_back(chunk * 2000 + i, thread, in_whole, 1);
      part.samples.push_back(chunk * 2000 + i, thread, in_part, 1);
    }
    bytes += encoder.encode(part);
    part.samples.clear();
    if (chunk == 3) {  // the tables are begun anew
      encoder.forget_tables();
      part.strings = {};
      part.functions = {};
      part.frames = {};
      part.stacks = {};
    }
  }
  // WHEN / THEN
  const auto read = read_plim(bytes);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read.value().samples.stack, whole.samples.stack);
  EXPECT_EQ(read.value().samples.thread, whole.samples.thread);
  EXPECT_EQ(read.value().stacks.rows(), whole.stacks.rows());
}

TEST(Plim, RefusesRowsThatAreNotThere) {
  // GIVEN a chunk that says that there are rows behind its sections, and has none, or some that make no sense
  std::string raw;
  put_varint(raw, static_cast<std::uint64_t>(plim::Section::kRows));
  put_bytes(raw, {});
  std::mt19937 random(9);
  for (int i = 0; i < 200; ++i) {
    std::string packed(i, '\0');
    for (char& letter : packed) letter = static_cast<char>(random());
    const auto read = read_plim(plim_file_with_chunk(raw, packed));
    // THEN it is a profile of what came before
    ASSERT_TRUE(read.ok());
    EXPECT_EQ(read.value().samples.size(), 0U);
  }
}

TEST(Plim, GivesBackTheTracesOfFrames) {
  // GIVEN a function that was interpreted at first, then ran as two pieces of machine code, in two chunks
  Profile profile;
  const FunctionId function = profile.functions.intern({profile.strings.intern("loop"), {}, 1, FunctionKind::kPython});
  PlimEncoder encoder(1);
  std::string bytes = PlimEncoder::file_header();
  profile.stacks.intern({{}, profile.frames.intern({function, 3, 0})});
  profile.stacks.intern({{}, profile.frames.intern({function, 3, 0, profile.strings.intern("0x7f00")})});
  bytes += encoder.encode(profile);
  profile.stacks.intern({{}, profile.frames.intern({function, 3, 0, profile.strings.intern("0x7f10")})});
  bytes += encoder.encode(profile);
  // WHEN it is read THEN the frames and their stacks are three
  const auto read = read_plim(bytes);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read.value().stacks.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    const Frame& frame = read.value().frames[read.value().stacks.rows()[i].frame];
    EXPECT_EQ(read.value().strings[frame.trace], i == 0 ? "" : i == 1 ? "0x7f00" : "0x7f10");
    EXPECT_EQ(frame.line, 3U);
  }
}

TEST(Plim, GivesBackWhatWasWrittenInManyChunks) {
  // GIVEN a recording that is flushed after each round, as the Recorder does
  Growing whole;
  Growing growing;
  PlimEncoder encoder(1);
  std::string bytes = PlimEncoder::file_header();
  for (int round = 0; round < 5; ++round) {
    whole.add(round);
    growing.add(round);
    growing.profile.complete = whole.profile.complete = round == 4;
    bytes += encoder.encode(growing.profile);
    growing.clear_rows();
  }
  // WHEN it is read THEN it is the profile that was never flushed
  const auto read = read_plim(bytes);
  ASSERT_TRUE(read.ok());
  expect_equal(read.value(), whole.profile);
  EXPECT_EQ(read.value().counters[0].value.size(), 10U);
}

TEST(Plim, TablesThatAreBegunAnewMakeTheSameProfile) {
  // GIVEN a recording that forgets its tables after each flush, for want of memory
  Growing whole;
  Growing growing;
  PlimEncoder encoder(1);
  std::string bytes = PlimEncoder::file_header();
  for (int round = 0; round < 5; ++round) {
    whole.add(round);
    growing.add(round);
    bytes += encoder.encode(growing.profile);
    growing.clear_rows();
    encoder.forget_tables();
    growing.profile.strings = {};
    growing.profile.functions = {};
    growing.profile.frames = {};
    growing.profile.stacks = {};
    growing.profile.tag_sets = {};
  }
  // WHEN it is read THEN equal rows are one again
  const auto read = read_plim(bytes);
  ASSERT_TRUE(read.ok());
  expect_equal(read.value(), whole.profile);
}

TEST(Plim, KeepsAttachmentsThatAreLargerThanAChunk) {
  Profile profile;
  profile.attachments = {{"jitlog", std::string(std::size_t{20} << 20U, 'x') + "end"},
                         {"other", std::string("a\0b", 3)}};
  PlimEncoder encoder(1);
  const Result<Profile> read = read_plim(PlimEncoder::file_header() + encoder.encode(profile));
  ASSERT_TRUE(read.ok()) << read.error().message;
  ASSERT_EQ(read.value().attachments.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(read.value().attachments[i].name, profile.attachments[i].name);
    EXPECT_TRUE(read.value().attachments[i].bytes == profile.attachments[i].bytes);
  }
}

TEST(Plim, MuchAtOnceTakesSeveralChunks) {
  // GIVEN more sources than fit a chunk, and more samples than fit a section
  Growing drawn;
  drawn.add(1);
  Profile& profile = drawn.profile;
  for (int i = 0; i < 600'000; ++i)
    profile.samples.push_back(profile.end_ns + i * 1000 + i % 7, ThreadId{0}, profile.samples.stack[1], 1000);
  std::string noise(4 << 20U, '\0');
  std::mt19937 random(1);
  for (char& letter : noise) letter = static_cast<char>(random());
  for (int i = 0; i < 20; ++i) profile.sources.push_back({"file" + std::to_string(i), noise});
  // WHEN they are written THEN all of it can be read again
  PlimEncoder encoder(1);
  const auto read = read_plim(PlimEncoder::file_header() + encoder.encode(profile));
  ASSERT_TRUE(read.ok()) << read.error().message;
  expect_equal(read.value(), profile);
  EXPECT_EQ(read.value().samples.size(), profile.samples.size());
}

TEST(Plim, CutAtAnyByteIsAProfileOfItsWholeChunks) {
  Growing growing;
  PlimEncoder encoder(1000);
  std::string bytes = PlimEncoder::file_header();
  std::vector<std::size_t> ends;
  for (int round = 0; round < 3; ++round) {
    growing.add(round);
    growing.profile.complete = round == 2;
    bytes += encoder.encode(growing.profile);
    growing.clear_rows();
    ends.push_back(bytes.size());
  }
  for (std::size_t size = 0; size <= bytes.size(); ++size) {
    const auto read = read_plim(std::string_view(bytes).substr(0, size));
    if (size < plim::kFileHeaderSize) {
      EXPECT_FALSE(read.ok());
      continue;
    }
    ASSERT_TRUE(read.ok()) << "cut at " << size;
    const auto chunks =
        static_cast<std::size_t>(std::count_if(ends.begin(), ends.end(), [&](std::size_t end) { return end <= size; }));
    EXPECT_EQ(read.value().samples.size(), chunks * 50) << "cut at " << size;
    EXPECT_EQ(read.value().complete, size == bytes.size());
  }
}

TEST(Plim, SurvivesEverySingleDamagedByte) {
  Growing growing;
  growing.add(0);
  PlimEncoder encoder(1);
  const std::string good = PlimEncoder::file_header() + encoder.encode(growing.profile);
  for (std::size_t at = 0; at < good.size(); ++at)
    for (const int bit : {0, 3, 7}) {
      std::string bad = good;
      bad[at] = static_cast<char>(static_cast<unsigned char>(bad[at]) ^ (1U << static_cast<unsigned>(bit)));
      const auto read = read_plim(bad);
      if (read.ok() && at >= plim::kFileHeaderSize) {
        EXPECT_EQ(read.value().samples.size(), 0U) << "byte " << at;
      }
    }
}

TEST(Plim, SkipsSectionsOfNewerMinorVersionsAndRefusesOtherMajorOnes) {
  std::string raw;
  put_varint(raw, 99);
  put_bytes(raw, "something new");
  put_varint(raw, static_cast<std::uint64_t>(plim::Section::kMeta));
  std::string meta;
  put_bytes(meta, "a");
  put_bytes(meta, "b");
  put_bytes(raw, meta);
  std::string file = plim_file_with_chunk(raw);
  const auto read = read_plim(file);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read.value().meta_value("a"), "b");
  for (const int other : {plim::kOldMajorVersion - 1, plim::kMajorVersion + 1}) {
    file[plim::kMagic.size()] = static_cast<char>(other);
    const auto refused = read_plim(file);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().kind, ErrorKind::kBadInput);
    EXPECT_NE(refused.error().message.find("version " + std::to_string(other)), std::string::npos);
  }
}

// A file of version 2 with one tag set of one tag, and one sample with what `tags` says, as the tags' column.
Result<Profile> with_tags_column(std::string_view tags) {
  std::string raw;
  const auto section = [&](plim::Section kind, const std::string& payload) {
    put_varint(raw, static_cast<std::uint64_t>(kind));
    put_bytes(raw, payload);
  };
  std::string set, samples;
  for (const std::uint64_t number : {1, 0, 0}) put_varint(set, number);
  section(plim::Section::kTagSets, set);
  section(plim::Section::kOldThreads, std::string("\0\0\0\0\0\0\0\0", 8));
  put_varint(samples, 1);
  for (const std::string_view column :
       {std::string_view("\0\1", 2), std::string_view("\0", 1), std::string_view("\0", 1), std::string_view("\0", 1),
        std::string_view("\0\1", 2), tags})
    put_bytes(samples, column);
  section(plim::Section::kOldSamples, samples);
  return read_plim(old_plim_file_with_chunk(raw));
}

TEST(Plim, RefusesTagsThatAreNotThere) {
  EXPECT_EQ(with_tags_column({"\1\1", 2}).value().samples.tags, (std::vector{TagSetId{0}}));
  EXPECT_EQ(with_tags_column({"\0\1", 2}).value().samples.tags, (std::vector{TagSetId{}}));
  // An unknown set, no run, a run of nothing
  EXPECT_EQ(with_tags_column({"\2\1", 2}).value().samples.size(), 0U);
  EXPECT_EQ(with_tags_column({}).value().samples.size(), 0U);
  EXPECT_EQ(with_tags_column({"\1\0", 2}).value().samples.size(), 0U);
}

TEST(Plim, KeepsSumsOfWeightsRightToOneUnit) {
  // GIVEN weights that are no multiples of the file's unit
  Profile profile;
  profile.threads.resize(2);
  std::int64_t sums[2] = {0, 0};
  for (int i = 0; i < 10'000; ++i) {
    const auto thread = static_cast<std::size_t>(i % 2);
    const std::int64_t weight = 999'000 + (i * 7919) % 3'001;
    profile.samples.push_back(std::int64_t{i} * 1'000'003, ThreadId{thread}, StackId{}, weight);
    sums[thread] += weight;
  }
  // WHEN they are written with a unit of 10 microseconds and read
  PlimEncoder encoder(10'000);
  const auto read = read_plim(PlimEncoder::file_header() + encoder.encode(profile));
  // THEN each thread's sum is off by less than a unit, and no time by more than half of one
  ASSERT_TRUE(read.ok());
  for (std::size_t row = 0; row < 10'000; ++row) {
    sums[read.value().samples.thread[row].index()] -= read.value().samples.weight_ns[row];
    EXPECT_LE(std::abs(read.value().samples.time_ns[row] - profile.samples.time_ns[row]), 5'000);
  }
  EXPECT_LT(std::abs(sums[0]), 10'000);
  EXPECT_LT(std::abs(sums[1]), 10'000);
}

// A minute of one thread between three stacks, with the jitter of a real tick, written once a second.
std::size_t bytes_of_a_minute(std::int64_t rate_hz) {
  Profile profile;
  Function function;
  function.name = profile.strings.intern("f");
  StackId stacks[3];
  for (std::uint32_t i = 0; i < 3; ++i)
    stacks[i] =
        profile.stacks.intern({StackId{}, profile.frames.intern({profile.functions.intern(function), i + 1, 0})});
  PlimEncoder encoder(time_unit_for(static_cast<double>(rate_hz)));
  const std::int64_t period = 1'000'000'000 / rate_hz;
  std::size_t bytes = 0;
  std::uint64_t random = 12345;
  std::int64_t time = 0;
  for (int second = 0; second < 60; ++second) {
    for (std::int64_t i = 0; i < rate_hz; ++i) {
      random = random * 6364136223846793005U + 1442695040888963407U;
      const std::int64_t noise = (static_cast<std::int64_t>(random >> 50U) - 8'192) * (1'000 / rate_hz);
      time += period + noise;  // +- 8 microseconds at 1 kHz
      profile.samples.push_back(time, ThreadId{0}, stacks[(random >> 40U) % 3], period + noise / 2);
    }
    profile.end_ns = time;
    profile.counters = {
        {ProcessId{}, "rss", "bytes", {time - 5'000'000, time - 7'000}, {second * 4096, second * 8192}}};
    bytes += encoder.encode(profile, {{0, {{}, 42, "main", true, 0, time, time}}}).size();
    profile.samples.clear();
  }
  return bytes;
}

TEST(Plim, NeedsAboutAByteForASampleHoweverFewThereAreInASecond) {
  EXPECT_LT(bytes_of_a_minute(1000), 60 * 1000U * 3 / 4);
  EXPECT_LT(bytes_of_a_minute(100), 60 * 100U * 5 / 4);
}

TEST(Plim, ChoosesAUnitThatDividesThePeriodFinely) {
  EXPECT_EQ(time_unit_for(100), 200'000);
  EXPECT_EQ(time_unit_for(1000), 20'000);
  EXPECT_EQ(time_unit_for(10'000), 2'000);
  EXPECT_EQ(time_unit_for(100'000), 1'000);
}

// ---- the file ----

class PlimFiles : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = std::filesystem::path(testing::TempDir()) /
                 ("plim-" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  std::string path(const std::string& name) const { return (directory_ / name).string(); }
  static std::string text_of(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  std::filesystem::path directory_;
};

TEST_F(PlimFiles, AreForTheirOwnerOnlyAndSayWhatWasRefused) {
  ASSERT_TRUE(PlimFile::create(path("a.plim")).ok());
  struct stat facts {};
  ASSERT_EQ(::stat(path("a.plim").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777U, 0600U);
  const auto missing = PlimFile::create(path("no/such/a.plim"));
  ASSERT_FALSE(missing.ok());
  EXPECT_NE(missing.error().message.find("no/such/a.plim: No such file"), std::string::npos);
}

TEST_F(PlimFiles, FollowNoSymbolicLink) {
  std::ofstream(path("precious")) << "precious";
  std::filesystem::create_symlink(path("precious"), path("a.plim"));
  const auto file = PlimFile::create(path("a.plim"));
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().kind, ErrorKind::kPermission);
  EXPECT_EQ(text_of(path("precious")), "precious");
}

TEST_F(PlimFiles, ReportAFullDevice) {
  auto file = PlimFile::create("/dev/full");
  ASSERT_TRUE(file.ok());
  const Status written = file.value().append("x");
  ASSERT_FALSE(written.ok());
  EXPECT_NE(written.error().message.find("No space left"), std::string::npos);
}

TEST_F(PlimFiles, AreFoundAgainWhenTheProgramClosedAndReusedTheDescriptor) {
  // GIVEN a profile being written, and a program that closes all descriptors and opens files of its own
  auto file = PlimFile::create(path("a.plim"));
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(file.value().append("one ").ok());
  std::vector<int> theirs;
  for (int fd = 512; fd < 560; ++fd) {
    struct stat facts {};
    struct stat ours {};
    ASSERT_EQ(::stat(path("a.plim").c_str(), &ours), 0);
    if (::fstat(fd, &facts) == 0 && facts.st_ino == ours.st_ino && facts.st_dev == ours.st_dev) {
      const int mine = ::open(path("mine").c_str(), O_WRONLY | O_CREAT, 0600);
      ASSERT_EQ(::dup2(mine, fd), fd);
      ::close(mine);
      theirs.push_back(fd);
    }
  }
  ASSERT_EQ(theirs.size(), 1U);
  // WHEN the profile goes on THEN it goes on in its own file
  ASSERT_TRUE(file.value().append("two").ok());
  EXPECT_EQ(text_of(path("a.plim")), "one two");
  EXPECT_EQ(text_of(path("mine")), "");
  ::close(theirs[0]);
}

TEST_F(PlimFiles, AreReadWithErrorsThatNameThem) {
  for (const char* name : {"missing.plim", "."}) {
    const auto read = read_plim_file(path(name));
    ASSERT_FALSE(read.ok());
    EXPECT_EQ(read.error().kind, ErrorKind::kBadInput);
    EXPECT_NE(read.error().message.find(path(name)), std::string::npos);
  }
}

TEST_F(PlimFiles, AreReadWhileSomebodyElseEmptiesAndFillsThem) {
  // GIVEN a profile that another program copies to the same name again and again
  Growing growing;
  for (int round = 0; round < 2000; ++round) growing.add(round);
  PlimEncoder encoder(1);
  const std::string bytes = PlimEncoder::file_header() + encoder.encode(growing.profile);
  const std::string name = path("a.plim");
  ASSERT_GT(bytes.size(), 8192U) << "more than a page, so that pages of a mapping would go";
  const auto copy = [&] { std::ofstream(name, std::ios::binary | std::ios::trunc) << bytes; };
  copy();
  std::atomic<bool> is_over{false};
  std::thread copier([&] {
    while (!is_over) copy();
  });
  // WHEN it is read meanwhile THEN each reading has what is there, or an error says what was wrong, and nothing crashes
  for (int reading = 0; reading < 500; ++reading) {
    const Result<Profile> read = read_plim_file(name);
    if (!read.ok()) {
      EXPECT_EQ(read.error().kind, ErrorKind::kBadInput) << read.error().message;
    }
  }
  is_over = true;
  copier.join();
  EXPECT_TRUE(read_plim_file(name).ok());
}

TEST_F(PlimFiles, StayWhatTheyAreToWhoReadsThemWhenARecordingBeginsThemAnew) {
  // GIVEN a profile that somebody has opened
  ASSERT_TRUE(write_plim_file({}, path("a.plim")).ok());
  const UniqueFd reader(::open(path("a.plim").c_str(), O_RDONLY | O_CLOEXEC));
  const std::string before = text_of(path("a.plim"));
  // WHEN a recording of the same name begins, and writes
  auto file = PlimFile::create(path("a.plim"));
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(text_of(path("a.plim")), "");
  ASSERT_TRUE(file.value().append("new").ok());
  // THEN it has the name, and who had opened the old one has all of it
  EXPECT_EQ(text_of(path("a.plim")), "new");
  std::string kept(before.size() + 1, '\0');
  EXPECT_EQ(::pread(reader.get(), kept.data(), kept.size(), 0), static_cast<ssize_t>(before.size()));
  EXPECT_EQ(kept.substr(0, before.size()), before);
}

}  // namespace
}  // namespace plimsoll::profile
