// formats/firefox/jslb_test.cc: columns of numbers beside a JSON text.
#include "formats/firefox/jslb.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/chunk.h"
#include "formats/input.h"
#include "profile/testing.h"

namespace plimsoll::formats::firefox {
namespace {

// A slab as it is drawn: its type's number, and its bytes.
using Drawn = std::pair<std::uint32_t, std::string>;
constexpr std::uint32_t kI32 = 4, kF64 = 7, kI64 = 8, kJson = 10;

template <typename Number>
std::string column(std::initializer_list<Number> numbers) {
  std::string bytes(numbers.size() * sizeof(Number), '\0');
  std::memcpy(bytes.data(), numbers.begin(), bytes.size());
  return bytes;
}

std::string draw_container(const std::vector<Drawn>& slabs, std::uint32_t root = 0) {
  std::string table("\xDC\xDF\x4A\x53\x4C\x42\x01\x00", 8), data;
  for (const std::uint32_t number : {std::uint32_t{1}, static_cast<std::uint32_t>(slabs.size()), root})
    put_u32(table, number);
  for (const auto& [type, bytes] : slabs) {
    for (const std::size_t number : {std::size_t{type}, 20 + 12 * slabs.size() + data.size(), bytes.size()})
      put_u32(table, static_cast<std::uint32_t>(number));
    data += bytes;
  }
  return table + data;
}

std::string assembled(const std::string& container) {
  const Result<boost::json::value> value = parse_jslb(container, {});
  return value.ok() ? boost::json::serialize(value.value()) : "error: " + value.error().message;
}

TEST(Jslb, HasItsColumnsInPlace) {
  // GIVEN slabs of numbers and of JSON WHEN the container is read THEN they stand where their numbers stood
  EXPECT_EQ(assembled(draw_container({{kJson, R"({"a":{"$s":1},"b":[{"$s":2},{"$s":3,"x":1}],"c":{"$s":3}})"},
                                      {kI32, column<std::int32_t>({1, -2})},
                                      {kJson, R"([{"$s":4}])"},
                                      {kI64, column<std::int64_t>({INT64_MIN})},
                                      {kJson, "[[]]"}})),
            R"({"a":[1,-2],"b":[[[[]]],{"$s":3,"x":1}],"c":[-9223372036854775808]})");
}

TEST(Jslb, IsReadAsTheJsonOfTheSameProfile) {
  // GIVEN a profile with columns as slabs WHEN it is read THEN its samples are there
  const std::string container =
      draw_container({{kJson, R"({"meta":{"interval":2,"preprocessedProfileVersion":66,"startTime":0},"shared":{
         "stackTable":{"frame":{"$s":1},"prefixOffset":{"$s":2},"length":2},
         "frameTable":{"func":[0,1],"line":[null,7],"length":2},
         "funcTable":{"name":[0,1],"source":[null,null],"lineNumber":[1,5],"length":2},"stringArray":["main","work"]},
         "threads":[{"name":"t","pid":"7","samples":{"stack":[1,0],"time":{"$s":3},"weight":null,"length":2}}]})"},
                      {kI32, column<std::int32_t>({0, 1})},
                      {kI32, column<std::int32_t>({0, 1})},
                      {kF64, column<double>({1, 3})}});
  const Result<profile::Profile> profile = read_profile(container);
  ASSERT_TRUE(profile.ok()) << profile.error().message;
  EXPECT_EQ(profile::testing::stacks_of(profile.value()), (std::vector<std::string>{"main;work", "main"}));
  EXPECT_EQ(profile.value().samples.time_ns, (std::vector<std::int64_t>{1'000'000, 3'000'000}));
}

TEST(Jslb, ThatIsCutOrTwistedSaysWhere) {
  // GIVEN containers that are cut, circular, or of other kinds WHEN they are read THEN they are errors
  const std::string whole = draw_container({{kJson, R"({"a":{"$s":1}})"}, {kI32, column<std::int32_t>({1})}});
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(parse_jslb(std::string_view(whole).substr(0, size), {}).ok()) << size;
  for (const std::string& twisted :
       {draw_container({{kJson, R"({"a":{"$s":0}})"}}), draw_container({{kJson, R"([{"$s":1},{"$s":1}])"}, {kI32, ""}}),
        draw_container({{kJson, R"([{"$s":-1}])"}}), draw_container({{kJson, "{"}}), draw_container({{11, "{}"}}),
        draw_container({{kJson, "{}"}}, 7)})
    EXPECT_EQ(assembled(twisted).substr(0, 6), "error:");
  EXPECT_EQ(assembled(draw_container({{11, "{}"}})),
            "error: not a whole JSLB file: an unknown type of slab at byte 20");
}

}  // namespace
}  // namespace plimsoll::formats::firefox
