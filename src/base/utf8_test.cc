#include "base/utf8.h"

#include <gtest/gtest.h>

namespace plimsoll {
namespace {

TEST(AppendUtf8, UsesTheFewestBytes) {
  const auto utf8 = [](std::uint32_t code_point) {
    std::string out;
    append_utf8(out, code_point);
    return out.size();
  };
  EXPECT_EQ(utf8(0x7f), 1U);
  EXPECT_EQ(utf8(0x80), 2U);
  EXPECT_EQ(utf8(0x7ff), 2U);
  EXPECT_EQ(utf8(0x800), 3U);
  EXPECT_EQ(utf8(0xffff), 3U);
  EXPECT_EQ(utf8(0x10000), 4U);
}

}  // namespace
}  // namespace plimsoll
