// cpython/debug_offsets_test.cc: the offsets that an interpreter publishes, believed only where they can be true.
#include <gtest/gtest.h>

#include "cpython/debug_offsets_testing.h"
#include "cpython/layout.h"

namespace plimsoll::cpython {
namespace {

using testing::DrawnOffsets;

struct Interpreter {
  const char* name;
  DrawnOffsets (*offsets)();
  bool has_tlbc;  // per-thread bytecode
};
std::ostream& operator<<(std::ostream& out, const Interpreter& interpreter) { return out << interpreter.name; }

class DebugOffsets : public ::testing::TestWithParam<Interpreter> {};

constexpr const char* kObjectFields[] = {"thread_state.current_frame",
                                         "thread_state.thread_id",
                                         "interpreter_frame.previous",
                                         "interpreter_frame.executable",
                                         "interpreter_frame.instr_ptr",
                                         "interpreter_frame.owner",
                                         "code_object.filename",
                                         "code_object.name",
                                         "code_object.qualname",
                                         "code_object.linetable",
                                         "code_object.firstlineno",
                                         "code_object.co_code_adaptive",
                                         "pyobject.ob_type",
                                         "tuple_object.ob_size",
                                         "bytes_object.ob_sval",
                                         "unicode_object.state",
                                         "unicode_object.length"};

std::string group_of(const std::string& field) { return field.substr(0, field.find('.')); }

// Every number of the layout, next to the name of the field that it must come from.
std::vector<std::pair<const char*, std::uint32_t>> numbers_of(const Layout& layout) {
  return {{"thread_state.current_frame", layout.tstate.current_frame},
          {"thread_state.thread_id", layout.tstate.thread_id},
          {"interpreter_frame.previous", layout.frame.previous},
          {"interpreter_frame.executable", layout.frame.executable},
          {"interpreter_frame.instr_ptr", layout.frame.position},
          {"interpreter_frame.owner", layout.frame.owner},
          {"code_object.filename", layout.code.filename},
          {"code_object.name", layout.code.name},
          {"code_object.qualname", layout.code.qualname},
          {"code_object.linetable", layout.code.line_table},
          {"code_object.firstlineno", layout.code.first_line},
          {"code_object.co_code_adaptive", layout.code.bytecode},
          {"pyobject.ob_type", layout.object.type},
          {"tuple_object.ob_size", layout.object.var_size},
          {"bytes_object.ob_sval", layout.bytes.data},
          {"unicode_object.state", layout.unicode.state},
          {"unicode_object.length", layout.unicode.length},
          {"unicode_object.asciiobject_size", layout.unicode.ascii_size}};
}

TEST_P(DebugOffsets, AreTakenAsTheInterpreterPublishesThem) {
  // GIVEN the table of an interpreter
  DrawnOffsets offsets = GetParam().offsets();
  // WHEN it is parsed
  const Result<Layout> layout = offsets.layout();
  // THEN every number is the one of its name
  ASSERT_TRUE(layout.ok()) << layout.error().message;
  EXPECT_EQ(layout.value().frame_style, FrameStyle::kDirect);
  EXPECT_EQ(layout.value().position_style, PositionStyle::kInstruction);
  EXPECT_EQ(layout.value().line_table_style, LineTableStyle::kLocations);
  for (const auto& [name, number] : numbers_of(layout.value())) EXPECT_EQ(number, offsets[name]) << name;
}

TEST_P(DebugOffsets, AreFoundAtTheirOwnPlacesAndNoOthers) {
  // GIVEN a table in which no two numbers are equal
  DrawnOffsets offsets = GetParam().offsets();
  std::uint64_t number = 8;
  for (auto& [name, value] : offsets.fields()) value = name.ends_with(".size") ? 1U << 19U : number += 8;
  // WHEN it is parsed
  const Result<Layout> layout = offsets.layout();
  // THEN every number is the one of its name, and those of per-thread bytecode are there only where it exists
  ASSERT_TRUE(layout.ok()) << layout.error().message;
  for (const auto& [name, found] : numbers_of(layout.value())) EXPECT_EQ(found, offsets[name]) << name;
  if (GetParam().has_tlbc) {
    EXPECT_EQ(layout.value().frame.tlbc_index, offsets["interpreter_frame.tlbc_index"]);
    EXPECT_EQ(layout.value().code.tlbc, offsets["code_object.co_tlbc"]);
  } else {
    EXPECT_EQ(layout.value().frame.tlbc_index, kNoField);
    EXPECT_EQ(layout.value().code.tlbc, kNoField);
  }
}

TEST_P(DebugOffsets, ThatLieOutsideTheirStructureAreRefusedByName) {
  for (const char* name : kObjectFields)
    for (const int excess : {0, 1}) {
      // GIVEN a field that starts at the end of its structure, or far behind it
      DrawnOffsets offsets = GetParam().offsets();
      const std::uint64_t size = offsets[group_of(name) + ".size"];
      offsets[name] = excess == 0 ? size : ~std::uint64_t{0} - 3;
      // WHEN it is parsed
      const Result<Layout> layout = offsets.layout();
      // THEN the message names it
      ASSERT_FALSE(layout.ok()) << name;
      EXPECT_EQ(layout.error().kind, ErrorKind::kUnsupported);
      EXPECT_NE(layout.error().message.find(std::string("impossible offset for ") + name), std::string::npos)
          << layout.error().message;
    }
}

TEST_P(DebugOffsets, OfAPointerThatHangsOverTheEndAreRefused) {
  DrawnOffsets offsets = GetParam().offsets();
  offsets["interpreter_frame.previous"] = offsets["interpreter_frame.size"] - 7;
  EXPECT_FALSE(offsets.layout().ok());
  offsets["interpreter_frame.previous"] = offsets["interpreter_frame.size"] - 8;
  EXPECT_TRUE(offsets.layout().ok());
}

TEST_P(DebugOffsets, WithAStructureOfImpossibleSizeAreRefused) {
  for (const char* group : {"thread_state", "interpreter_frame", "code_object", "pyobject", "tuple_object",
                            "bytes_object", "unicode_object"})
    for (const std::uint64_t size : {std::uint64_t{0}, std::uint64_t{1} << 21U, ~std::uint64_t{0}}) {
      DrawnOffsets offsets = GetParam().offsets();
      offsets[std::string(group) + ".size"] = size;
      EXPECT_FALSE(offsets.layout().ok()) << group << " of size " << size;
    }
}

TEST_P(DebugOffsets, WithAStringHeaderOfImpossibleSizeAreRefused) {
  for (const std::uint64_t size : {(std::uint64_t{1} << 20U) + 1, (std::uint64_t{1} << 32U) + 40, ~std::uint64_t{0}}) {
    DrawnOffsets offsets = GetParam().offsets();
    offsets["unicode_object.asciiobject_size"] = size;
    const Result<Layout> layout = offsets.layout();
    ASSERT_FALSE(layout.ok()) << size;
    EXPECT_NE(layout.error().message.find("unicode_object.asciiobject_size"), std::string::npos);
  }
}

INSTANTIATE_TEST_SUITE_P(Of, DebugOffsets,
                         ::testing::Values(Interpreter{"3_13", testing::offsets_3_13, false},
                                           Interpreter{"3_13t", testing::offsets_3_13t, false},
                                           Interpreter{"3_14", testing::offsets_3_14, false},
                                           Interpreter{"3_14t", testing::offsets_3_14t, true},
                                           Interpreter{"3_15", testing::offsets_3_15, false},
                                           Interpreter{"3_15t", testing::offsets_3_15t, true}),
                         [](const auto& tested) { return std::string(tested.param.name); });

TEST(DebugOffsetsOfAStranger, WithAnotherCookieAreRefused) {
  std::string table = testing::offsets_3_14().bytes();
  table[3] ^= 1;
  const Result<Layout> layout =
      layout_from_debug_offsets(reinterpret_cast<const unsigned char*>(table.data()), table.size());
  ASSERT_FALSE(layout.ok());
  EXPECT_NE(layout.error().message.find("cookie"), std::string::npos);
}

TEST(DebugOffsetsOfAStranger, OfAnUnknownVersionAreRefusedInWords) {
  for (const std::uint32_t hex : {0x030812f0U, 0x030c01f0U, 0x031000a1U, 0x020712f0U, 0x040e00f0U, 0U, ~0U}) {
    DrawnOffsets offsets = testing::offsets_3_14();
    offsets.set_version(hex);
    const Result<Layout> layout = offsets.layout();
    ASSERT_FALSE(layout.ok()) << std::hex << hex;
    EXPECT_EQ(layout.error().kind, ErrorKind::kUnsupported);
    EXPECT_NE(layout.error().message.find("Plimsoll knows CPython 3.9 to 3.15"), std::string::npos);
  }
}

TEST(DebugOffsetsOfAStranger, OfAnUnknownThreadingModelAreRefused) {
  DrawnOffsets offsets = testing::offsets_3_14();
  offsets.set_free_threaded(2);
  EXPECT_FALSE(offsets.layout().ok());
}

TEST(DebugOffsetsOfAStranger, ThatAreCutAreRefused) {
  const std::string table = testing::offsets_3_15().bytes();
  const auto* bytes = reinterpret_cast<const unsigned char*>(table.data());
  EXPECT_FALSE(layout_from_debug_offsets(bytes, 0).ok());
  EXPECT_FALSE(layout_from_debug_offsets(bytes, kDebugOffsetsSize - 1).ok());
  EXPECT_TRUE(layout_from_debug_offsets(bytes, kDebugOffsetsSize).ok());
}

TEST(DebugOffsetsOfAFriend, SayWhereTheBitsOfAStringsStateAre) {
  // Free-threaded 3.14 made `interned` a byte of its own in front of the bit-field.
  EXPECT_EQ(testing::offsets_3_13().layout().value().unicode.kind_shift, 2U);
  EXPECT_EQ(testing::offsets_3_13t().layout().value().unicode.kind_shift, 2U);
  EXPECT_EQ(testing::offsets_3_15().layout().value().unicode.kind_shift, 2U);
  EXPECT_EQ(testing::offsets_3_14t().layout().value().unicode.kind_shift, 8U);
  EXPECT_EQ(testing::offsets_3_15t().layout().value().unicode.kind_shift, 8U);
}

TEST(DebugOffsetsOfAFriend, SayHowLargeACompactStringsHeaderIs) {
  DrawnOffsets offsets = testing::offsets_3_15();
  EXPECT_EQ(offsets.layout().value().unicode.compact_size, offsets["unicode_object.compactunicodeobject_size"]);
}

}  // namespace
}  // namespace plimsoll::cpython
