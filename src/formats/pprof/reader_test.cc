// formats/pprof/reader_test.cc: bytes of the right fields and of the wrong types.
#include "formats/pprof/reader.h"

#include <gtest/gtest.h>

#include <protozero/pbf_builder.hpp>
#include <string>

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

TEST(PprofReader, TellsTheRateByThePeriod) {
  profile::Profile profile = profile::testing::draw_profile("main  10");
  const auto rate = [&] { return std::string(read_profile(write(profile)).value().meta_value("rate_hz")); };
  EXPECT_EQ(rate(), "");
  profile.set_meta("rate_hz", "100");
  EXPECT_EQ(rate(), "100");
}

}  // namespace
}  // namespace plimsoll::formats::pprof
