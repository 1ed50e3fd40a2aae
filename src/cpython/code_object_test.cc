// cpython/code_object_test.cc: what a code object says about itself, read from drawings of every version's objects.
#include "cpython/code_object.h"

#include <gtest/gtest.h>

#include <optional>

#include "cpython/testing.h"

namespace plimsoll::cpython {
namespace {

using testing::DrawnInterpreter;

class CodeObjectOf : public ::testing::TestWithParam<Layout> {
 protected:
  DrawnInterpreter python{GetParam()};

  [[nodiscard]] std::optional<std::string> text_at(Address str) const {
    std::string text;
    if (!read_text(python.memory, python.layout, str, text)) return std::nullopt;
    return text;
  }
  [[nodiscard]] std::optional<std::string> bytes_at(Address bytes) const {
    std::string text;
    if (!read_bytes(python.memory, python.layout, bytes, text)) return std::nullopt;
    return text;
  }
  void put(Address object, std::uint32_t offset, std::uint64_t value) {
    python.memory.put(offset_by(object, offset), value);
  }
};

// ---- strings ----

TEST_P(CodeObjectOf, StringsOfEveryKindBecomeUtf8) {
  EXPECT_EQ(text_at(python.str(U"")), "");
  EXPECT_EQ(text_at(python.str(U"plain ASCII\x7f")), "plain ASCII\x7f");
  EXPECT_EQ(text_at(python.str(U"M\u00fcller\u0080\u00ff")), "M\u00fcller\u0080\u00ff") << "Latin-1: one byte each";
  EXPECT_EQ(text_at(python.str(U"\u2211 x \u07ff\u0800\uffff")), "\u2211 x \u07ff\u0800\uffff") << "two bytes each";
  EXPECT_EQ(text_at(python.str(U"\U0001f6a2 ship \U0010ffff")), "\U0001f6a2 ship \U0010ffff") << "four bytes each";
}

TEST_P(CodeObjectOf, AStringMayHoldZeros) {
  EXPECT_EQ(text_at(python.str(std::u32string_view(U"a\0b", 3))), std::string("a\0b", 3));
}

TEST_P(CodeObjectOf, WhatIsNoCharacterBecomesTheReplacementCharacter) {
  // A lone surrogate stands for a byte of a file name that is not UTF-8; the other one is damage.
  const char32_t surrogate[] = {U'a', char32_t{0xdcff}, U'b'};
  const char32_t beyond[] = {U'a', char32_t{0x110000}, U'b'};
  EXPECT_EQ(text_at(python.str({surrogate, 3})), "a\ufffdb");
  EXPECT_EQ(text_at(python.str({beyond, 3})), "a\ufffdb");
}

TEST_P(CodeObjectOf, AStringMayBeLongButNotAbsurdlyLong) {
  const std::u32string longest(kLongestText, U'x');
  EXPECT_EQ(text_at(python.str(longest))->size(), kLongestText);
  EXPECT_EQ(text_at(python.str(longest + U'x')), std::nullopt);
  const Address damaged = python.str(U"x");
  put(damaged, python.layout.unicode.length, ~std::uint64_t{0});
  EXPECT_EQ(text_at(damaged), std::nullopt);
}

TEST_P(CodeObjectOf, AStringThatIsNotCompactIsNotRead) {
  // Up to 3.11 a str may keep its characters elsewhere; the compiler never makes such a name.
  const Address str = python.str(U"name");
  python.put_str_state(str, 1, DrawnInterpreter::kAscii);
  EXPECT_EQ(text_at(str), std::nullopt);
}

TEST_P(CodeObjectOf, AStringOfAnImpossibleWidthIsNotRead) {
  const Address str = python.str(U"name");
  for (const std::uint32_t width : {0U, 3U, 5U, 6U, 7U}) {
    python.put_str_state(str, width, DrawnInterpreter::kCompact | DrawnInterpreter::kAscii);
    EXPECT_EQ(text_at(str), std::nullopt) << width;
  }
}

TEST_P(CodeObjectOf, AStringOfWhichAPartIsMissingIsNotRead) {
  EXPECT_EQ(text_at(Address{}), std::nullopt);
  EXPECT_EQ(text_at(Address{0x666000}), std::nullopt);
  const std::u32string_view text = U"\u2211 x";
  for (const auto& [offset, size] :
       {std::pair{python.layout.unicode.length, 8}, std::pair{python.layout.unicode.state, 4},
        std::pair{python.layout.unicode.compact_size + 5, 1}}) {
    const Address str = python.str(text);
    python.memory.erase(offset_by(str, offset), static_cast<std::size_t>(size));
    EXPECT_EQ(text_at(str), std::nullopt) << offset;
  }
}

// ---- bytes ----

TEST_P(CodeObjectOf, BytesComeAsTheyAre) {
  EXPECT_EQ(bytes_at(python.bytes("")), "");
  EXPECT_EQ(bytes_at(python.bytes(std::string_view("\x80\0\xff", 3))), std::string("\x80\0\xff", 3));
}

TEST_P(CodeObjectOf, BytesOfAnAbsurdLengthOrOfWhichAPartIsMissingAreNotRead) {
  EXPECT_EQ(bytes_at(Address{}), std::nullopt);
  EXPECT_EQ(bytes_at(Address{0x666000}), std::nullopt);
  const Address bytes = python.bytes("table");
  for (const std::uint64_t size :
       {std::uint64_t{6}, kLongestLineTable + 1, ~std::uint64_t{0}, std::uint64_t{1} << 63U}) {
    put(bytes, python.layout.object.var_size, size);
    EXPECT_EQ(bytes_at(bytes), std::nullopt) << size;
  }
}

// ---- code objects ----

class WholeCodeObjectOf : public CodeObjectOf {
 protected:
  WholeCodeObjectOf() {
    put(code, python.layout.code.name, raw(python.str(U"method")));
    if (has_qualname()) put(code, python.layout.code.qualname, raw(python.str(U"Class.method")));
    put(code, python.layout.code.filename, raw(python.str(U"/srv/\u00fcber/app.py")));
    put(code, python.layout.code.line_table, raw(python.bytes("\x80\x01")));
    python.memory.put(offset_by(code, python.layout.code.first_line), std::int32_t{42});
  }
  [[nodiscard]] bool has_qualname() const { return python.layout.code.qualname != kNoField; }
  [[nodiscard]] std::optional<CodeInfo> read() const {
    CodeInfo info;
    if (!read_code(python.memory, python.layout, code, info)) return std::nullopt;
    return info;
  }

  const Address code = python.code("method");
};

TEST_P(WholeCodeObjectOf, OfANameThatIsVeryLongTheBeginningIsKnown) {
  // GIVEN code whose file is called as its source, as by compile(source, source, "exec")
  put(code, python.layout.code.filename, raw(python.str(std::u32string(kLongestText + 1, U'\u00fc'))));
  // THEN it is known, with the beginning of that
  ASSERT_TRUE(read());
  EXPECT_EQ(read()->file.size(), 2 * kLongestText);
  EXPECT_EQ(read()->first_line, 42);
  // AND what is longer than any name is damage
  const Address damaged = python.str(U"x");
  put(damaged, python.layout.unicode.length, ~std::uint64_t{0});
  put(code, python.layout.code.filename, raw(damaged));
  EXPECT_FALSE(read());
}

TEST_P(WholeCodeObjectOf, SaysItsNamesItsFirstLineAndItsLineTable) {
  const std::optional<CodeInfo> info = read();
  ASSERT_TRUE(info);
  EXPECT_EQ(info->name, has_qualname() ? "Class.method" : "method");
  EXPECT_EQ(info->file, "/srv/\u00fcber/app.py");
  EXPECT_EQ(info->first_line, 42);
  EXPECT_EQ(info->line_table, "\x80\x01");
}

TEST_P(WholeCodeObjectOf, OfWhichAnyPartIsMissingIsNotRead) {
  for (const std::uint32_t offset : {python.layout.code.filename, python.layout.code.line_table,
                                     has_qualname() ? python.layout.code.qualname : python.layout.code.name}) {
    std::uint64_t before = 0;
    ASSERT_TRUE(python.memory.load(offset_by(code, offset), before));
    for (const std::uint64_t wrong : {std::uint64_t{0}, std::uint64_t{0x666000}, ~std::uint64_t{0}}) {
      put(code, offset, wrong);
      EXPECT_EQ(read(), std::nullopt) << offset;
    }
    python.memory.erase(offset_by(code, offset), 8);
    EXPECT_EQ(read(), std::nullopt) << offset;
    put(code, offset, before);
  }
  python.memory.erase(offset_by(code, python.layout.code.first_line), 1);
  EXPECT_EQ(read(), std::nullopt);
}

const auto name_of = [](const ::testing::TestParamInfo<Layout>& tested) { return testing::test_name(tested.param); };
INSTANTIATE_TEST_SUITE_P(Python, CodeObjectOf, ::testing::ValuesIn(testing::all_layouts()), name_of);
INSTANTIATE_TEST_SUITE_P(Python, WholeCodeObjectOf, ::testing::ValuesIn(testing::all_layouts()), name_of);

}  // namespace
}  // namespace plimsoll::cpython
