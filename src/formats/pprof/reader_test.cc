// formats/pprof/reader_test.cc: bytes of the right fields and of the wrong types.
#include "formats/pprof/reader.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace plimsoll::formats::pprof
