#include "cpython/object_fields.h"

#include <gtest/gtest.h>

namespace plimsoll::cpython {
namespace {

TEST(ObjectFields, AreKnownForEachVersionWithAGil) {
  for (unsigned minor = 9; minor <= 15; ++minor) {
    // GIVEN a version WHEN its fields are asked for
    const Result<ObjectFields> fields = object_fields({3, minor, 0});
    ASSERT_TRUE(fields.ok()) << minor;
    const ObjectFields& at = fields.value();
    // THEN they lie inside of their structures
    for (const std::uint32_t field :
         {at.heap_type.name, at.heap_type.slots, at.heap_type.qualname, at.heap_type.shared_keys, at.heap_type.module})
      EXPECT_TRUE(field >= type_field::kSize - 8 && field + 8 <= at.size.type) << minor;
    for (const std::uint32_t field : {at.interpreter.modules, at.interpreter.dict, at.interpreter.builtins})
      EXPECT_LE(field + 8, at.interpreter.size) << minor;
    EXPECT_LE(at.function_qualname + 8, at.size.function) << minor;
    EXPECT_LE(at.code.names + 8, at.size.code) << minor;
    // AND interpreter frames, in generators and frame objects, are there from 3.11 on
    EXPECT_EQ(at.generator.frame != kNoField, minor >= 11) << minor;
    EXPECT_EQ(at.frame_object.frame != kNoField, minor >= 11) << minor;
    EXPECT_EQ(at.interpreter.built_in != kNoField, minor >= 12) << minor;
  }
}

TEST(ObjectFields, AgreeWithWhatLayoutsSayOfGenerators) {
  const auto layout_of = [](unsigned minor) { return layout_from_table({3, minor, 0}).value(); };
  const auto fields_of = [](unsigned minor) { return object_fields({3, minor, 0}).value(); };
  for (const unsigned minor : {11U, 12U})
    EXPECT_EQ(layout_of(minor).generator.frame, fields_of(minor).generator.frame) << minor;
  EXPECT_EQ(layout_of(11).generator.state, fields_of(11).generator.state);
  EXPECT_EQ(layout_of(12).generator.values, fields_of(12).frame.variables);
}

TEST(ObjectFields, OfOtherBuildsAreRefusedInWords) {
  // GIVEN versions that are too old or not known yet THEN it is said which are known
  for (const unsigned minor : {8U, 16U}) {
    const Result<ObjectFields> other = object_fields({3, minor, 0});
    ASSERT_FALSE(other.ok());
    EXPECT_EQ(other.error().kind, ErrorKind::kUnsupported);
    EXPECT_NE(other.error().message.find("3.9 to 3.15"), std::string::npos);
  }
}

TEST(ObjectFields, AreKnownForEachFreeThreadedVersion) {
  for (const unsigned minor : {13U, 14U, 15U}) {
    // GIVEN a free-threaded build, and the same version with a GIL
    const Result<ObjectFields> with_gil = object_fields({3, minor, 2});
    const Result<ObjectFields> free = object_fields({3, minor, 2, Version::Threading::kFree});
    // THEN its fields, but for the head of objects, are the same, and other things of its interpreter are elsewhere
    ASSERT_TRUE(free.ok()) << minor;
    EXPECT_EQ(free.value().tuple_items, with_gil.value().tuple_items) << minor;
    EXPECT_EQ(free.value().code.cached, with_gil.value().code.cached) << minor;
    EXPECT_GT(free.value().interpreter.built_in, with_gil.value().interpreter.built_in) << minor;
    EXPECT_GT(free.value().interpreter.size, free.value().interpreter.built_in) << minor;
  }
  // (Where testing::kOffsets313Free has imports_modules.)
  EXPECT_EQ(object_fields({3, 13, 2, Version::Threading::kFree}).value().interpreter.modules, 7664U);
}

}  // namespace
}  // namespace plimsoll::cpython
