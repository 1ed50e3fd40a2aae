// formats/firefox/jslb_test.cc: columns of numbers beside a JSON text.
#include "formats/firefox/jslb.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "base/chunk.h"
#include "formats/firefox/writer.h"
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

TEST(Jslb, IsWrittenByteByByteAsSpecified) {
  // GIVEN a column of two numbers and a text WHEN they are written THEN header, table and data are where the format has
  // them
  Slabs slabs;
  EXPECT_EQ(slabs.add(SlabType::kI32, column<std::int32_t>({1, -2})), 1U);
  EXPECT_EQ(slabs.file(R"({"a":{"$s":1}})").value(),
            std::string("\xDC\xDF\x4A\x53\x4C\x42\x01\x00"                                  // magic
                        "\x01\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00"                  // version, slabs, root
                        "\x0A\x00\x00\x00\x30\x00\x00\x00\x0E\x00\x00\x00"                  // JSON at 48, 14 bytes
                        "\x04\x00\x00\x00\x40\x00\x00\x00\x08\x00\x00\x00\x00\x00\x00\x00"  // int32 at 64, 8 bytes
                        "{\"a\":{\"$s\":1}}\x00\x00\x01\x00\x00\x00\xFE\xFF\xFF\xFF",
                        72));
}

TEST(Jslb, BeyondItsLimitIsAnErrorThatSaysWhatToDo) {
  Slabs slabs;
  slabs.add(SlabType::kF64, std::string(80, '\0'));
  EXPECT_TRUE(slabs.file("{}", 136).ok());
  const Result<std::string> file = slabs.file("{}", 135);
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().kind, ErrorKind::kUnsupported);
  EXPECT_NE(file.error().message.find("-f firefox"), std::string::npos) << file.error().message;
}

// Whether two values are one, whatever their numbers are stored as.
bool is_same(const boost::json::value& a, const boost::json::value& b) {
  if (a.is_number() && b.is_number()) return a.to_number<double>() == b.to_number<double>();
  if (a.is_array() && b.is_array())
    return std::equal(a.get_array().begin(), a.get_array().end(), b.get_array().begin(), b.get_array().end(), is_same);
  if (!a.is_object() || !b.is_object()) return a == b;
  if (a.get_object().size() != b.get_object().size()) return false;
  return std::all_of(a.get_object().begin(), a.get_object().end(), [&](const auto& member) {
    const boost::json::value* other = b.get_object().if_contains(member.key());
    return other != nullptr && is_same(member.value(), *other);
  });
}

TEST(Jslb, HoldsWhatTheJsonDoes) {
  // GIVEN a profile with threads, counters and stacks WHEN it is written as JSON and as JSLB THEN both are one value
  profile::Profile profile = profile::testing::generated_profile(200, 30);
  profile.counters.push_back({ProcessId{0}, "rss", "bytes", {0, 1'500'250}, {7, 5}});
  const std::string container = write_jslb(profile).value();
  const Result<boost::json::value> read_back = parse_jslb(container, {});
  ASSERT_TRUE(read_back.ok()) << read_back.error().message;
  boost::json::value json = boost::json::parse(write(profile));
  json.at("meta").at("preprocessedProfileVersion") = 67;  // the first one whose times may be columns
  EXPECT_TRUE(is_same(read_back.value(), json));
  // AND the columns that the page takes as they are, are not in the text
  EXPECT_EQ(container[12], 1 + 2 + 3 + 1 + static_cast<int>(profile.threads.size()));
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
