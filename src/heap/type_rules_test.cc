#include "heap/type_rules.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

namespace plimsoll::heap {
namespace {

TEST(TypeRules, AreReadAsPeopleWriteThem) {
  const Result<std::vector<TypeRule>> read = parse_rules(
      "# of the application\n"
      "app.Session: label user\n"
      "mylib.*: native 0 8 unit 4 owned 16, label name, exactly; torch.Storage: native 8 16\n");
  ASSERT_TRUE(read.ok()) << read.error().message;
  const std::vector<TypeRule>& rules = read.value();
  ASSERT_EQ(rules.size(), 3U);
  EXPECT_EQ(rules[0].classes, "app.Session");
  EXPECT_EQ(rules[0].facets.label, "user");
  EXPECT_EQ(rules[0].reach, Reach::kInstances);
  EXPECT_FALSE(rules[0].facets.native);
  EXPECT_EQ(rules[1].reach, Reach::kExactly);
  EXPECT_EQ(rules[1].facets.label, "name");
  ASSERT_TRUE(rules[1].facets.native);
  EXPECT_EQ(rules[1].facets.native->length, 8U);
  EXPECT_EQ(rules[1].facets.native->unit, 4U);
  EXPECT_EQ(rules[1].facets.native->owned, 16U);
  EXPECT_EQ(rules[2].facets.native->pointer, 8U);
  EXPECT_EQ(rules[2].facets.native->owned, NativeMemory::kNowhere);
}

TEST(TypeRules, SayWhichOfThemIsNone) {
  for (const char* wrong : {"app.Session", "app.Session:", ": label user", "app.Session: label", "a: native 1",
                            "a: native 1 x", "a: native 1 2 unit", "a: native -8 0", "a: label b c", "a: size 5",
                            "a: exactly b", "a: native 99999999999 0"}) {
    const Result<std::vector<TypeRule>> read = parse_rules("good.Class: label name; " + std::string(wrong));
    ASSERT_FALSE(read.ok()) << wrong;
    EXPECT_EQ(read.error().kind, ErrorKind::kUsage);
    EXPECT_NE(read.error().message.find("not \"" + std::string(wrong) + "\""), std::string::npos)
        << read.error().message;
  }
}

TEST(TypeRules, TheMostDerivedClassDecidesAndThenTheLastRule) {
  const std::vector<TypeRule> rules =
      parse_rules("app.Base: label first; app.Base: label last; *.Derived: label own; app.Base: native 0 8").take();
  const std::array<std::string, 3> derived{"app.Derived", "app.Base", "object"};
  EXPECT_EQ(facets_of(derived, rules).label, "own");
  EXPECT_TRUE(facets_of(derived, rules).native);
  EXPECT_EQ(facets_of(std::span(derived).subspan(1), rules).label, "last");
  // and one that is for a class alone says nothing of what is derived from it
  const std::vector<TypeRule> exactly = parse_rules("app.Base: label name, exactly").take();
  EXPECT_FALSE(facets_of(derived, exactly).label);
  EXPECT_EQ(facets_of(std::span(derived).subspan(1), exactly).label, "name");
}

// An object of 40 bytes: a head of 16, an address, a length, and an int that says whether they are its own.
struct Drawn {
  std::array<std::uint64_t, 5> words{1, 0, 0x7000, 1000, 1};
  [[nodiscard]] std::uint64_t owns(const NativeMemory& native) const {
    return native_extent(
               native, Address{0x1000}, 16, sizeof words, [&](std::uint64_t offset) { return words[offset / 8]; },
               [&](std::uint64_t offset) { return static_cast<std::uint32_t>(words[offset / 8]); })
        .size;
  }
};

TEST(TypeRules, MemoryIsWhatTheObjectSays) {
  Drawn object;
  EXPECT_EQ(object.owns({0, 8}), 1000U);
  EXPECT_EQ(object.owns({0, 8, 4, 16}), 4000U);
  object.words[4] = 0;
  EXPECT_EQ(object.owns({0, 8, 4, 16}), 0U);  // somebody else's
  object.words[2] = 0x1018;
  EXPECT_EQ(object.owns({0, 8}), 0U);  // its own room, which is counted already
  object.words[2] = 0;
  EXPECT_EQ(object.owns({0, 8}), 0U);  // none
}

TEST(TypeRules, NoOffsetLeadsOutOfTheObjectAndNoLengthIsAbsurd) {
  Drawn object;
  for (const NativeMemory& wrong : {NativeMemory{24, 8}, NativeMemory{0, 17}, NativeMemory{~std::uint64_t{0} - 3, 8},
                                    NativeMemory{0, 8, 1, 21}, NativeMemory{0, 8, 0}})
    EXPECT_EQ(object.owns(wrong), 0U);
  object.words[3] = std::uint64_t{1} << 60U;
  EXPECT_EQ(object.owns({0, 8}), 0U);
  EXPECT_EQ(object.owns({0, 8, std::uint64_t{1} << 31U}), 0U);
}

}  // namespace
}  // namespace plimsoll::heap
