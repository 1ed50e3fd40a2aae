// formats/pprof/writer_test.cc: drawn profiles as pprof files, read back with protozero.
#include "formats/pprof/writer.h"

#include <map>
#include <protozero/pbf_message.hpp>

#include "formats/pprof/fields.h"
#include "formats/testing.h"
#include "profile/testing.h"

namespace plimsoll::formats::pprof {
namespace {

using profile::testing::draw_profile;
using protozero::pbf_message;
using Samples = std::vector<std::string>;

// A file as its reader sees it.
struct Decoded {
  std::vector<std::string> strings;
  std::map<std::uint64_t, std::string> functions;  // id -> "name file:start_line"
  std::map<std::uint64_t, std::string> locations;  // id -> "function-id:line"
  std::vector<std::string> samples;                // "location ids | values | labels"
  std::map<ProfileField, std::int64_t> numbers;
  std::vector<std::string> comments;
  std::vector<std::string> value_types;
  std::vector<bool> mapping_flags;
  std::string mapping_file;

  // The second pass: needs the strings of the first one.
  void decode(const std::string& bytes);

 private:
  std::string function(pbf_message<FunctionField> message, std::uint64_t& id) const;
  static std::string location(pbf_message<LocationField> message, std::uint64_t& id);
  std::string sample(pbf_message<SampleField> message) const;
  std::string label(pbf_message<LabelField> message) const;
  std::string value_type(pbf_message<ValueTypeField> message) const;
  void mapping(pbf_message<MappingField> message);
  [[nodiscard]] std::string text(std::int64_t index) const { return strings.at(static_cast<std::size_t>(index)); }
};

std::string Decoded::function(pbf_message<FunctionField> message, std::uint64_t& id) const {
  std::string name, file;
  std::int64_t line = 0;
  while (message.next()) switch (message.tag()) {
      case FunctionField::kId: id = message.get_uint64(); break;
      case FunctionField::kName: name = text(message.get_int64()); break;
      case FunctionField::kFilename: file = text(message.get_int64()); break;
      case FunctionField::kStartLine: line = message.get_int64(); break;
      default: message.skip();
    }
  return name + " " + file + ":" + std::to_string(line);
}

std::string Decoded::location(pbf_message<LocationField> message, std::uint64_t& id) {
  std::string lines;
  while (message.next()) {
    if (message.tag() == LocationField::kId) {
      id = message.get_uint64();
    } else if (message.tag() == LocationField::kLine) {
      pbf_message<LineField> line = message.get_message();
      std::uint64_t function = 0;
      std::int64_t number = 0;
      while (line.next()) {
        if (line.tag() == LineField::kFunctionId)
          function = line.get_uint64();
        else if (line.tag() == LineField::kLine)
          number = line.get_int64();
        else
          line.skip();
      }
      lines += std::to_string(function) + ":" + std::to_string(number);
    } else {
      message.skip();
    }
  }
  return lines;
}

std::string Decoded::label(pbf_message<LabelField> message) const {
  std::string key, value;
  while (message.next()) (message.tag() == LabelField::kKey ? key : value) = text(message.get_int64());
  return " " + key + "=" + value;
}

std::string Decoded::sample(pbf_message<SampleField> message) const {
  std::string stack, values, labels;
  while (message.next()) switch (message.tag()) {
      case SampleField::kLocationId:
        for (const auto id : message.get_packed_uint64()) stack += std::to_string(id) + " ";
        break;
      case SampleField::kValue:
        for (const auto value : message.get_packed_int64()) values += " " + std::to_string(value);
        break;
      case SampleField::kLabel: labels += label(message.get_message()); break;
    }
  return stack + "|" + values + " |" + labels;
}

std::string Decoded::value_type(pbf_message<ValueTypeField> message) const {
  std::string type, unit;
  while (message.next()) (message.tag() == ValueTypeField::kType ? type : unit) = text(message.get_int64());
  return type + "/" + unit;
}

void Decoded::mapping(pbf_message<MappingField> message) {
  while (message.next()) {
    if (message.tag() >= MappingField::kHasFunctions)
      mapping_flags.push_back(message.get_bool());
    else if (message.tag() == MappingField::kFilename)
      mapping_file = text(message.get_int64());
    else
      message.skip();
  }
}

void Decoded::decode(const std::string& bytes) {
  for (pbf_message<ProfileField> file(bytes); file.next(ProfileField::kStringTable);)
    strings.push_back(file.get_string());
  pbf_message<ProfileField> file(bytes);
  while (file.next()) {
    std::uint64_t id = 0;
    switch (file.tag()) {
      case ProfileField::kFunction: {
        const std::string row = function(file.get_message(), id);
        functions[id] = row;
        break;
      }
      case ProfileField::kLocation: {
        const std::string row = location(file.get_message(), id);
        locations[id] = row;
        break;
      }
      case ProfileField::kSample: samples.push_back(sample(file.get_message())); break;
      case ProfileField::kSampleType: value_types.push_back(value_type(file.get_message())); break;
      case ProfileField::kComment:
        for (const auto index : file.get_packed_int64()) comments.push_back(text(index));
        break;
      case ProfileField::kMapping: mapping(file.get_message()); break;
      case ProfileField::kTimeNanos:
      case ProfileField::kDurationNanos:
      case ProfileField::kPeriod:
      case ProfileField::kDefaultSampleType: numbers[file.tag()] = file.get_int64(); break;
      default: file.skip();
    }
  }
}

Decoded decoded(const profile::Profile& profile) {
  Decoded result;
  result.decode(testing::gunzip(write(profile)));
  return result;
}

TEST(Pprof, SumsSamplesPerStackInnermostCallFirst) {
  // GIVEN samples of two stacks
  const Decoded file = decoded(draw_profile(R"(
    main(app.py:3 def 1);work(app.py:7 def 5)   1
    main(app.py:4 def 1)                        2
    main(app.py:3 def 1);work(app.py:7 def 5)   4
  )"));
  // WHEN they are written THEN there is a sample per stack with its count and its CPU nanoseconds
  const std::string labels = " | thread_name=MainThread thread_id=100 pid=100";
  EXPECT_EQ(file.samples, (Samples{"2 1 | 2 5000000" + labels, "3 | 1 2000000" + labels}));
  // AND functions know where they are defined, locations where they were
  EXPECT_EQ(file.functions.at(1), "main app.py:1");
  EXPECT_EQ(file.functions.at(2), "work app.py:5");
  EXPECT_EQ(file.locations.at(1), "1:3");
  EXPECT_EQ(file.locations.at(2), "2:7");
  EXPECT_EQ(file.locations.at(3), "1:4");
}

TEST(Pprof, ShowsCpuTimeByDefault) {
  // GIVEN a profile WHEN it is written THEN it has counts and CPU time, and the latter is what pprof shows
  const Decoded file = decoded(draw_profile("main  1"));
  EXPECT_EQ(file.value_types, (Samples{"samples/count", "cpu/nanoseconds"}));
  EXPECT_EQ(file.strings.at(static_cast<std::size_t>(file.numbers.at(ProfileField::kDefaultSampleType))), "cpu");
  EXPECT_EQ(file.strings.at(0), "");
}

TEST(Pprof, DoesNotOfferNamesForDemangling) {
  // GIVEN a Python name that looks like C++ template arguments WHEN it is written THEN there is no system_name: pprof
  // cuts "<module>" away where it is the same
  const std::string bytes = testing::gunzip(write(draw_profile("<module>(app.py:1)  1")));
  pbf_message<ProfileField> file(bytes);
  ASSERT_TRUE(file.next(ProfileField::kFunction));
  pbf_message<FunctionField> function = file.get_message();
  EXPECT_FALSE(function.next(FunctionField::kSystemName));
}

TEST(Pprof, TellsThreadsAndProcessesApartByLabels) {
  // GIVEN one stack on two threads and in two processes WHEN it is written THEN each has a sample of its own
  const Decoded file = decoded(draw_profile("main  1\n worker | main  2\n MainThread@200 | main  4"));
  EXPECT_EQ(file.samples, (Samples{"1 | 1 1000000 | thread_name=MainThread thread_id=100 pid=100",
                                   "1 | 1 2000000 | thread_name=worker thread_id=101 pid=100",
                                   "1 | 1 4000000 | thread_name=MainThread thread_id=200 pid=200"}));
}

TEST(Pprof, LeavesNothingToSymbolise) {
  // GIVEN a profile WHEN it is written THEN all flags of its mapping are set
  EXPECT_EQ(decoded(draw_profile("main  1")).mapping_flags, (std::vector<bool>{true, true, true, true}));
}

TEST(Pprof, NamesTheProgramWithoutItsArguments) {
  // GIVEN a command whose last word is a path, of which pprof would show the end as the file
  profile::Profile profile = draw_profile("main  1");
  profile.processes.at(0).name = "/usr/bin/python3 /usr/bin/black src/flask";
  EXPECT_EQ(decoded(profile).mapping_file, "python3");
}

TEST(Pprof, KeepsTheFactsOfTheSession) {
  // GIVEN a recording of 2 s at 100 Hz that dropped samples
  profile::Profile profile = draw_profile("main  1 @2000");
  profile.set_meta("rate_hz", "100");
  profile.drops.push_back({"ring full", 3, 30});
  // WHEN it is written THEN start, duration, period and drops are in the file
  const Decoded file = decoded(profile);
  EXPECT_EQ(file.numbers.at(ProfileField::kTimeNanos), profile.start_realtime_ns);
  EXPECT_EQ(file.numbers.at(ProfileField::kDurationNanos), 2'000'000'000);
  EXPECT_EQ(file.numbers.at(ProfileField::kPeriod), 10'000'000);
  EXPECT_EQ(file.comments,
            (Samples{"Plimsoll " PLIMSOLL_VERSION, "rate_hz: 100", "dropped: ring full: 3 samples, 30 ns"}));
}

TEST(Pprof, KeepsTheTimeOfTheEmptyStack) {
  // GIVEN a sample without frames WHEN it is written THEN a location stands for it
  const Decoded file = decoded(draw_profile("main  1\n -  2"));
  EXPECT_EQ(file.samples.at(1), "2 | 1 2000000 | thread_name=MainThread thread_id=100 pid=100");
  EXPECT_EQ(file.locations.at(2), "2:0");
  EXPECT_EQ(file.functions.at(2), "[no stack] :0");
}

TEST(PprofHeap, HasWhatWasAllocatedAndWhatIsInUse) {
  // GIVEN two blocks of a stack, one of them freed, large enough to stand for themselves
  profile::Profile profile = draw_profile("main(a.py:1);make(a.py:5 def 4)  1");
  profile.allocation_distance = 100;
  for (const std::int64_t freed_ns : {std::int64_t{7}, profile::AllocationRow::kAlive}) {
    profile::AllocationRow row;
    row.number = profile.allocations.size();
    row.thread = ThreadId{0};
    row.stack = profile.samples.stack[0];
    row.size = row.chance_bytes = 10'000;
    row.freed_ns = freed_ns;
    row.type = profile.strings.intern("bytearray");
    profile.allocations.push_back(row);
  }
  Decoded file;
  file.decode(testing::gunzip(write_heap(profile)));
  EXPECT_EQ(file.value_types, (std::vector<std::string>{"alloc_objects/count", "alloc_space/bytes",
                                                        "inuse_objects/count", "inuse_space/bytes"}));
  ASSERT_EQ(file.samples.size(), 1U);
  EXPECT_NE(file.samples[0].find("2 20000 1 10000"), std::string::npos) << file.samples[0];
  EXPECT_NE(file.samples[0].find("type=bytearray"), std::string::npos) << file.samples[0];
}

TEST(PprofHeap, TellsBlocksApartByTags) {
  // GIVEN blocks of one stack, each allocated under another value of a tag that is called as a label of ours is
  profile::Profile profile = draw_profile("main  1");
  profile.allocation_distance = 100;
  for (const char* value : {"index", "query"}) {
    profile::AllocationRow row;
    row.number = profile.allocations.size();
    row.thread = ThreadId{0};
    row.stack = profile.samples.stack[0];
    row.size = row.chance_bytes = 10'000;
    row.tags = profile.tag_sets.intern({{profile.strings.intern("type"), profile.strings.intern(value)}});
    profile.allocations.push_back(row);
  }
  // WHEN they are written THEN each has a sample of its own, with the tag as a label
  Decoded file;
  file.decode(testing::gunzip(write_heap(profile)));
  ASSERT_EQ(file.samples.size(), 2U);
  EXPECT_NE(file.samples[0].find("1 10000 1 10000"), std::string::npos) << file.samples[0];
  EXPECT_NE(file.samples[0].find(" tag_type=index"), std::string::npos) << file.samples[0];
  EXPECT_NE(file.samples[1].find(" tag_type=query"), std::string::npos) << file.samples[1];
}

TEST(PprofHeap, DoesNotAddUpTheRoundingOfItsRows) {
  // GIVEN a hundred stacks, of which a sample each stands for 1.58 blocks
  profile::Profile profile = draw_profile("main  1");
  profile.allocation_distance = 100;
  for (int i = 0; i < 100; ++i) {
    profile::AllocationRow row;
    row.number = profile.allocations.size();
    row.thread = ThreadId{0};
    row.stack = profile.stacks.intern({StackId{}, profile::testing::draw_frame(profile, "f" + std::to_string(i))});
    row.size = row.chance_bytes = 100;
    profile.allocations.push_back(row);
  }
  // WHEN they are written THEN their sum is that of the blocks
  Decoded file;
  file.decode(testing::gunzip(write_heap(profile)));
  std::int64_t blocks = 0;
  for (const std::string& sample : file.samples) blocks += std::atoll(sample.substr(sample.find("| ") + 2).c_str());
  EXPECT_EQ(blocks, 158) << "100 / (1 - 1/e)";
}

}  // namespace
}  // namespace plimsoll::formats::pprof
