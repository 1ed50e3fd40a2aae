// formats/pprof/reader_test.cc: bytes of the right fields and of the wrong types.
#include "formats/pprof/reader.h"

#include <gtest/gtest.h>

#include <protozero/pbf_builder.hpp>
#include <string>

#include "formats/foreign.h"
#include "formats/input.h"
#include "formats/pprof/fields.h"
#include "formats/pprof/writer.h"
#include "profile/testing.h"

namespace plimsoll::formats::pprof {
namespace {

TEST(PprofReader, RefusesFieldsOfAnotherType) {
  // GIVEN fields of profile.proto, by number and wire type, with a type that they do not have: location as a fixed
  // number, the time as bytes, a sample as a number; and a value type whose index is bytes
  for (const std::string_view bytes : {std::string_view("\x25\x6c\x1a\x00\x00", 5), std::string_view("\x4a\x01x", 3),
                                       std::string_view("\x10\x05", 2), std::string_view("\x0a\x03\x0a\x01x", 5)}) {
    // WHEN they are read THEN they are an error
    const Result<profile::Profile> profile = read(bytes);
    ASSERT_FALSE(profile.ok());
    EXPECT_EQ(profile.error().kind, ErrorKind::kBadInput);
    EXPECT_NE(profile.error().message.find("not whole pprof data"), std::string::npos) << profile.error().message;
  }
}

TEST(PprofReader, RefusesStacksThatAreAProductOfWhatIsThere) {
  // GIVEN one place with very many inlined calls, which a sample has very often
  constexpr int kMany = 3'000;
  std::string bytes;
  protozero::pbf_builder<ProfileField> file(bytes);
  {
    protozero::pbf_builder<ValueTypeField> type(file, ProfileField::kSampleType);
    type.add_int64(ValueTypeField::kType, 1);
    type.add_int64(ValueTypeField::kUnit, 2);
  }
  {
    protozero::pbf_builder<SampleField> sample(file, ProfileField::kSample);
    for (int i = 0; i < kMany; ++i) sample.add_uint64(SampleField::kLocationId, 1);
    sample.add_int64(SampleField::kValue, 1);
  }
  {
    protozero::pbf_builder<LocationField> location(file, ProfileField::kLocation);
    location.add_uint64(LocationField::kId, 1);
    for (int i = 0; i < kMany; ++i) {
      protozero::pbf_builder<LineField> line(location, LocationField::kLine);
      line.add_uint64(LineField::kFunctionId, 1);
      line.add_int64(LineField::kLine, i);
    }
  }
  {
    protozero::pbf_builder<FunctionField> function(file, ProfileField::kFunction);
    function.add_uint64(FunctionField::kId, 1);
  }
  for (const char* text : {"", "cpu", "nanoseconds"}) file.add_string(ProfileField::kStringTable, text);
  // WHEN it is read THEN it is an error, not millions of frames
  const Result<profile::Profile> profile = read(bytes);
  ASSERT_FALSE(profile.ok());
  EXPECT_NE(profile.error().message.find("more frames"), std::string::npos) << profile.error().message;
}

// A value of time, in a file whose strings are "", "cpu", "nanoseconds", ...
void put_time(protozero::pbf_builder<ProfileField>& file) {
  protozero::pbf_builder<ValueTypeField> type(file, ProfileField::kSampleType);
  type.add_int64(ValueTypeField::kType, 1);
  type.add_int64(ValueTypeField::kUnit, 2);
}
// A location, with one line of that function unless it is 0.
void put_location(protozero::pbf_builder<ProfileField>& file, std::uint64_t id, std::uint64_t mapping,
                  std::uint64_t address, std::uint64_t function) {
  protozero::pbf_builder<LocationField> location(file, ProfileField::kLocation);
  location.add_uint64(LocationField::kId, id);
  location.add_uint64(LocationField::kMappingId, mapping);
  location.add_uint64(LocationField::kAddress, address);
  if (function == 0) return;
  protozero::pbf_builder<LineField> line(location, LocationField::kLine);
  line.add_uint64(LineField::kFunctionId, function);
}

void put_sample(protozero::pbf_builder<ProfileField>& file, std::uint64_t leaf, std::uint64_t caller) {
  protozero::pbf_builder<SampleField> sample(file, ProfileField::kSample);
  sample.add_uint64(SampleField::kLocationId, leaf);
  sample.add_uint64(SampleField::kLocationId, caller);
  sample.add_int64(SampleField::kValue, 1000);
}

TEST(PprofReader, KeepsFramesWithoutSymbolsAndCountsThoseThatAreMissing) {
  // GIVEN a function that is known, one without symbols, a place that is nowhere, a function that is nowhere
  std::string bytes;
  protozero::pbf_builder<ProfileField> file(bytes);
  put_time(file);
  {
    protozero::pbf_builder<MappingField> mapping(file, ProfileField::kMapping);
    mapping.add_uint64(MappingField::kId, 1);
    mapping.add_uint64(MappingField::kStart, 0x400000);
    mapping.add_uint64(MappingField::kOffset, 0x1000);
    mapping.add_int64(MappingField::kFilename, 4);
  }
  put_location(file, 1, 1, 0x400010, 1);
  put_location(file, 2, 1, 0x400234, 0);
  put_location(file, 3, 0, 0x77, 0);
  put_location(file, 4, 1, 0x400020, 9);
  {
    protozero::pbf_builder<FunctionField> function(file, ProfileField::kFunction);
    function.add_uint64(FunctionField::kId, 1);
    function.add_int64(FunctionField::kName, 3);
  }
  for (const std::uint64_t leaf : {2, 3, 4, 99}) put_sample(file, leaf, 1);
  for (const char* text : {"", "cpu", "nanoseconds", "main", "/bin/x"})
    file.add_string(ProfileField::kStringTable, text);
  // WHEN it is read
  Result<profile::Profile> read_back = read(bytes);
  ASSERT_TRUE(read_back.ok()) << read_back.error().message;
  const profile::Profile& profile = read_back.value();
  // THEN code without symbols is a frame by its place in its file, and what the file does not have is told
  EXPECT_EQ(profile::testing::stacks_of(profile),
            (std::vector<std::string>{"main;x+0x1234", "main;0x77", "main", "main"}));
  const FunctionId unnamed = profile::testing::function_named(profile, "x+0x1234");
  EXPECT_EQ(profile.functions[unnamed].kind, profile::FunctionKind::kNative);
  EXPECT_EQ(profile.strings[profile.functions[unnamed].file], "/bin/x");
  ASSERT_EQ(profile.drops.size(), 1U);
  EXPECT_EQ(profile.drops[0].reason, kMissingFrames);
  EXPECT_EQ(profile.drops[0].count, 2U);
}

TEST(PprofReader, KnowsHowManySamplesAStackHas) {
  // GIVEN a profile in which a stack has three samples WHEN it goes through the format THEN it still has, of equal
  // shares
  const profile::Profile original = profile::testing::draw_profile("main  1\n main  1.000001\n other  5\n main  3");
  const Result<profile::Profile> read = read_profile(write(original));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(profile::testing::stacks_of(read.value()), (std::vector<std::string>{"main", "main", "main", "other"}));
  EXPECT_EQ(read.value().samples.weight_ns, (std::vector<std::int64_t>{1'666'667, 1'666'667, 1'666'667, 5'000'000}));
  EXPECT_EQ(read.value().samples.time_ns, (std::vector<std::int64_t>{1'666'667, 3'333'334, 5'000'001, 10'000'001}));
}

TEST(PprofReader, KnowsFilesWhoseFieldsAreInAnotherOrder) {
  // GIVEN a file as Go's own runtime writes it, which begins with the time, and one that begins with drop_frames
  const profile::Profile original = profile::testing::draw_profile("main  1\n main;work  5");
  const std::string written = unpacked(write(original)).take().bytes;
  const std::string_view time("\x48\x80\x80\x80\x80\x80\x80\x80\xd9\x15", 10);
  for (const std::string& bytes : {std::string(time) + written, "8" + std::string(1, '\0') + written}) {
    // WHEN / THEN
    EXPECT_TRUE(is_pprof(bytes));
    const Result<profile::Profile> read = read_profile(bytes);
    ASSERT_TRUE(read.ok()) << read.error().message;
    EXPECT_EQ(read.value().meta_value("format"), "pprof");
  }
  // AND texts are none, whatever they begin with
  for (const char* text :
       {"java;main 3\n", "\"a\":{}", "python 1 1.0: 1 cycles:\n\t1 f (x)\n\n", "2;3 4\n", "\n\n", ""})
    EXPECT_FALSE(is_pprof(text)) << text;
}

// What is said of bytes that are a part of `original`; empty if they are read as all of its stacks, as nothing in a
// file says how many fields there are.
std::string said_of(std::string_view bytes, const profile::Profile& original) {
  const Result<profile::Profile> profile = read_profile(bytes);
  if (!profile.ok()) return profile.error().message;
  if (!profile.value().complete) return "incomplete";
  return profile::testing::stacks_of(profile.value()) == profile::testing::stacks_of(original) ? "" : "other stacks";
}

TEST(PprofReader, SaysOfAFileThatIsCutThatItEndsEarly) {
  // GIVEN a file, plain and packed, WHEN it is cut at any byte
  const profile::Profile original = profile::testing::draw_profile("main  1\n main;work  5\n main;other  2");
  const std::string packed = write(original), plain = unpacked(packed).take().bytes;
  const auto ends = [](const std::string& said) { return said.find("a pprof file that ends early") == 0; };
  constexpr std::size_t kOneType = 6;  // there must be one to tell the format by
  std::size_t refused = 0;
  for (std::size_t size = kOneType; size < plain.size(); ++size) {
    // THEN it is said to end early, or what was read of it is
    const std::string said = said_of(std::string_view(plain).substr(0, size), original);
    EXPECT_TRUE(said.empty() || said == "incomplete" || ends(said)) << size << " " << said;
    refused += ends(said) ? 1 : 0;
  }
  EXPECT_GT(refused, plain.size() / 2);
  for (std::size_t size = packed.size() / 2; size < packed.size(); ++size) {
    const std::string said = said_of(std::string_view(packed).substr(0, size), original);
    EXPECT_TRUE(said == "incomplete" || ends(said)) << size << " " << said;
  }
  // AND no text, and no file of another format, is a pprof file that ends early
  for (const char* text :
       {"java;main 3", "\n\x04main\n\x08 1", "{\"a\"", "\n\n", "", "memray", "\n\x04\x08\x01\x10\x02"})
    EXPECT_FALSE(ends_early(text)) << text;
}

TEST(PprofReader, TellsTheRateByThePeriod) {
  profile::Profile profile = profile::testing::draw_profile("main  10");
  const auto rate = [&] { return std::string(read_profile(write(profile)).value().meta_value("rate_hz")); };
  EXPECT_EQ(rate(), "");
  profile.set_meta("rate_hz", "100");
  EXPECT_EQ(rate(), "100");
}

}  // namespace
}  // namespace plimsoll::formats::pprof
